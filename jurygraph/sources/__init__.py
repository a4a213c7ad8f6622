"""Readers: load files as validated models, or raise an error with the line and what to write instead."""

from jurygraph.sources.config import line_of_key, parse_config, read_config
from jurygraph.sources.files import FileDigest
from jurygraph.sources.tasks import TaskSource, ValidatedFiles, read_tasks, read_work

__all__ = [
    "FileDigest",
    "TaskSource",
    "ValidatedFiles",
    "line_of_key",
    "parse_config",
    "read_config",
    "read_tasks",
    "read_work",
]
