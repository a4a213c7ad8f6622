"""Readers: load files as validated models, or raise an error with the line and what to write instead."""

from jurygraph.sources.complaint import nearest, shortened
from jurygraph.sources.config import line_of_key, parse_config, read_config
from jurygraph.sources.files import FileMark
from jurygraph.sources.tasks import CheckedFiles, Work, read_tasks, read_work

__all__ = [
    "CheckedFiles",
    "FileMark",
    "Work",
    "line_of_key",
    "nearest",
    "parse_config",
    "read_config",
    "read_tasks",
    "read_work",
    "shortened",
]
