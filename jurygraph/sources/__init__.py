"""Readers: load files as validated models, or raise an error with the line and what to write instead."""

from jurygraph.sources.config import locate_config_errors as locate_config_errors
from jurygraph.sources.config import parse_config_mapping as parse_config_mapping
from jurygraph.sources.config import read_config as read_config
from jurygraph.sources.files import FileDigest as FileDigest
from jurygraph.sources.shards import Shard as Shard
from jurygraph.sources.task_tables import TableColumns as TableColumns
from jurygraph.sources.tasks import TaskSource as TaskSource
from jurygraph.sources.tasks import open_task_source as open_task_source
from jurygraph.sources.tasks import read_tasks as read_tasks
