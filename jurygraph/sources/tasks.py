"""TASKS, RESPONSES, GRAPHS and PROFILES: every line is validated before any is used, and read again when needed.

Only ids and places are kept in memory: to read a task again takes less than a hundredth of the time to score it.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import FieldPath as FieldPath
from jurygraph.messages import Problem, did_you_mean, quote, shell_quote
from jurygraph.schema import Response, ResponseLine, Rubric, Task, TaskDefaults, TaskLine
from jurygraph.schema.conversation import has_replies, is_left_unanswered
from jurygraph.schema.frozen_model import StrPath
from jurygraph.schema.task import (
    NO_TASK_DEFAULTS,
    Profiles,
    ProfilesLine,
    is_empty_query,
    read_rubric_fields,
)
from jurygraph.sources.files import (
    ByteRange,
    ClosedAtExit,
    FileDigest,
    TaskKeyedFile,
    TextFile,
    TextLine,
    close_on_error,
    explain_full_temp_disk,
    parse_lines,
    raise_line_error,
    read_lines,
    reread_line,
)
from jurygraph.sources.shards import Shard
from jurygraph.sources.task_tables import (
    ConvertedTable,
    TableColumns,
    add_columns_of_chats,
    chat_file_columns,
    convert_table,
    find_outside_table_error,
    folder_of_tasks_file,
    is_table,
    locate_table_files,
    missing_column_options_error,
)


@dataclass(slots=True)
class _TaskPlace:
    """The line of a task, its unit, the number of its responses, and their places in a file of their own.

    `number` counts the tasks of the file, from 0.
    """

    number: int
    line: int
    unit: str
    span: ByteRange
    responses: int
    response_byte_ranges: list[ByteRange] = field(default_factory=list)


_REVIEW_CHANGES_HINT = "have `jurygraph annotate --edges-from` ask about what changed"


class AnnotatedTasksFile(TaskKeyedFile[TaskLine]):
    """A TASKS file with edges and roles for the rubrics of other tasks, as `jurygraph annotate` writes."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(
            TextFile(path),
            TaskLine,
            "id",
            "keep one of the two",
            "name one that `jurygraph annotate` wrote",
        )

    def check_unchanged_tasks(self, lines: Iterable[tuple[str, bytes]]) -> None:
        """Raise `InputError` if its tasks differ from these in more than their graphs, so that no edit is lost."""
        for name, line in lines:
            if name not in self._lines:
                continue
            number, span = self._lines[name]
            if _parse_task_without_graph(self._file.read(span)) != _parse_task_without_graph(line):
                self._file.refuse_line(
                    number,
                    (),
                    f"task {quote(name)} differs from that in TASKS in more than its graph",
                    "name another --out, and this file with --edges-from; or annotate this one",
                )

    def with_reviewed_edges(self, task: Task) -> Task:
        """Return the task with its reviewed roles and edges; unchanged if there are none.

        Raises `InputError` if the query or the criteria differ from the task's own, or if an edge of the task is
        missing.
        """
        entry = self.get(task.id)
        if entry is None or entry.rubric is None:
            return task
        number = self._lines[task.id][0]
        reviewed_rubric = entry.rubric
        rubric = task.rubric
        if rubric is None:
            self._file.refuse_line(
                number, ("rubric",), f"task {quote(task.id)} has none", "leave it out"
            )
        if entry.query != task.query:
            self._file.refuse_line(
                number,
                ("query",),
                f"is not that of task {quote(task.id)}, and the graph was made for it",
                _REVIEW_CHANGES_HINT,
            )
        self._refuse_other_criteria(task.id, number, rubric, reviewed_rubric)
        hand_written_edges = {
            (edge.parent, edge.child): edge for edge in rubric.edges if not edge.model
        }
        reviewed_edges = {(edge.parent, edge.child): edge for edge in reviewed_rubric.edges}
        for ends, edge in hand_written_edges.items():
            if ends not in reviewed_edges:
                self._file.refuse_line(
                    number,
                    ("rubric", "edges"),
                    f"lacks {edge.parent} -> {edge.child}, which task {quote(task.id)} defines itself",
                    "put it in here, or take it out of the task",
                )
        role_by_criterion_id = {
            criterion.id: criterion.role for criterion in reviewed_rubric.criteria
        }
        criteria = []
        for criterion in rubric.criteria:
            role = criterion.role or role_by_criterion_id[criterion.id]
            criteria.append(criterion.model_copy(update={"role": role}))
        # What a person wrote goes before what a model proposed; where both are by hand, the file was reviewed last.
        edges = [
            hand_written_edges.get(ends, edge) if edge.model else edge
            for ends, edge in reviewed_edges.items()
        ]
        update = {
            "criteria": tuple(criteria),
            "edges": tuple(edges),
            "annotation": reviewed_rubric.annotation,
        }
        return task.model_copy(update={"rubric": rubric.model_copy(update=update)})

    def _refuse_other_criteria(
        self, task_id: str, number: int, rubric: Rubric, reviewed_rubric: Rubric
    ) -> None:
        contents = {criterion.id: criterion.content for criterion in rubric.criteria}
        reviewed_criterion_by_id = {
            criterion.id: criterion.content for criterion in reviewed_rubric.criteria
        }
        for name in sorted(contents.keys() | reviewed_criterion_by_id.keys()):
            if contents.get(name) != reviewed_criterion_by_id.get(name):
                self._file.refuse_line(
                    number,
                    ("rubric", "criteria"),
                    f"criterion {quote(name)} is not that of task {quote(task_id)}",
                    _REVIEW_CHANGES_HINT,
                )


def add_annotation_to_line(line: bytes, rubric: Rubric) -> bytes:
    """Return a line of TASKS with the roles, edges and record of its rubric's annotation; the rest is unchanged."""
    content = json.loads(line)
    rubric_json = content["rubric"] = read_rubric_fields(content["rubric"])
    roles = {criterion.id: criterion.role for criterion in rubric.criteria}
    for criterion in rubric_json["criteria"]:
        role = roles[criterion["id"]]
        if role is not None:
            criterion["role"] = role
    rubric_json["edges"] = [
        edge.model_dump(mode="json", exclude_none=True) for edge in rubric.edges
    ]
    record = rubric.annotation
    if record is not None:
        rubric_json["annotation"] = record.model_dump(mode="json", exclude_none=True)
    return json.dumps(content, ensure_ascii=False).encode()


def _parse_task_without_graph(line: bytes) -> Any:
    """Parse a line of TASKS as JSON, without the roles, the edges and the record of an annotation."""
    content = json.loads(line)
    rubric = content["rubric"] = read_rubric_fields(content.get("rubric"))
    if isinstance(rubric, dict):
        for name in ("edges", "annotation"):
            rubric.pop(name, None)
        for criterion in rubric["criteria"]:
            criterion.pop("role", None)
    return content


TaskAndResponses = tuple[Task, tuple[Response, ...]]
_EMPTY_TASKS_FILE_HINT = "write one task per line, each a JSON object"


class TaskSource(ClosedAtExit):
    """Tasks with their responses, in the order of the tasks file.

    `tasks_file`, `responses_file` and `edges_file` are the digests of the source files, which stay open until `close`;
    `columns` are those of a table, whose digest is that of the tasks; `unjudged_replies` is the number of its chats
    with replies before the last message of a user, where by default no response begins. `field_counts` and
    `label_counts` count what a table's tasks and responses have, by name, and `answers` those of each agent to a unit.
    `unanswered_chats` names the responses that end in a call of a tool or its result. `graphs` is the number of tasks
    with a line in the `edges` file. With a `shard`, the whole files are validated, and the other tasks are left out.
    """

    def __init__(
        self,
        path: StrPath,
        responses: StrPath | None,
        edges: StrPath | None,
        *,
        columns: TableColumns | None,
        folder: Path | None,
        defaults: TaskDefaults,
        shard: Shard | None = None,
    ) -> None:
        """Open the files, and validate every line; tasks may name files below `folder`."""
        self._folder = folder
        self._tasks_folder = folder_of_tasks_file(path)
        self._defaults = defaults
        self.shard = shard
        with ExitStack() as exit_stack, explain_full_temp_disk():
            enter_context = exit_stack.enter_context
            self.columns = columns
            self._responses: TextFile | None = None
            self.responses_file: FileDigest | None = None
            self._tasks: TextFile
            if columns is not None:  # the responses of a table have the table's digest
                self._tasks = tasks = enter_context(ConvertedTable())
                self._responses = table_responses = enter_context(ConvertedTable())
                convert_table(path, columns, tasks, table_responses)
            else:
                self._tasks = enter_context(TextFile(path))
                if responses is not None:
                    self._responses = enter_context(TextFile(responses))
                    self.responses_file = self._responses.file_digest
            self.tasks_file = self._tasks.file_digest
            self._edges: AnnotatedTasksFile | None = None
            self.edges_file: FileDigest | None = None
            self.graphs = 0
            if edges is not None:
                self._edges = enter_context(AnnotatedTasksFile(edges))
                self.edges_file = self._edges.file_digest
                self.graphs = len(self._edges)
            self._index: dict[str, _TaskPlace] = {}
            self._response_lines: dict[str, int] = {}
            self.unjudged_replies = 0
            self.field_counts: Counter[str] = Counter()
            self.label_counts: Counter[str] = Counter()
            self.answers: Counter[tuple[str, str | None]] = Counter()
            self.empty_answers: list[str] = []
            self.unanswered_chats: list[str] = []
            # Before the shard is chosen: a faulty line is refused by every shard, or by none.
            self._validate_tasks()
            self._all = list(self._index.values())
            self._ordered = self._all
            if shard is not None:
                self._ordered = [
                    entry for name, entry in self._index.items() if shard.includes_task(name)
                ]
            self._resources = exit_stack.pop_all()

    def _validate_tasks(self) -> None:
        for line, task in parse_lines(self._tasks, TaskLine):
            if isinstance(task, Problem):
                if task.path == ("messages",) and self._tasks.name == "standard input":
                    remedy = "chats are read from a file that is named, and tasks have a `query`"
                    task = replace(task, remedy=remedy)
                raise_line_error(self._tasks.name, line.number, task)
            self._add_task(line, task)
        if not self._index:
            raise InputError(f"{self._tasks.name}: the file is empty; {_EMPTY_TASKS_FILE_HINT}")
        if self._responses is not None:
            self._add_responses(self._responses)
        if self._edges is not None:
            self._edges.refuse_unknown(self._index.__contains__, self._index, "leave the line out")
        for name, entry in self._index.items():
            if not entry.responses:
                problem = f"task {quote(name)} has no responses"
                hint = "give it one, or leave it out"
                self._tasks.refuse_line(entry.line, ("responses",), problem, hint)

    def _add_task(self, line: TextLine, task: TaskLine) -> None:
        """Add a task and its responses to the index. Raises `InputError` with file, line and field."""
        refuse = partial(self._tasks.refuse_line, line.number)
        if self._responses is not None and task.responses:
            refuse(
                ("responses",),
                "is set although --responses names a file with responses",
                "leave out one of the two",
            )
        task = _with_absolute_table_files(task, self._tasks_folder)
        if task.id in self._index:
            problem = f"task {quote(task.id)} is already in line {self._index[task.id].line}"
            refuse(("id",), problem, "give each task an id of its own")
        unit = task.group or task.id
        self._index[task.id] = _TaskPlace(
            len(self._index), line.number, unit, line.place, len(task.responses)
        )
        for position, response in enumerate(task.responses):
            path = ("responses", position, "id")
            if not response.id:
                refuse(path, "is missing", "every response needs it")
            self._add_response_id(self._tasks, line.number, path, response)
        self.field_counts.update(name for name in task.model_fields_set if getattr(task, name))
        columns = self.columns
        if columns is not None and columns.messages and columns.response_from is None:
            self.unjudged_replies += has_replies(task.query)
        if task.query == ():
            refuse(("query",), "is an empty list", "give it one message at least")
        outside_file_problem = find_outside_table_error(task.facts, self._folder)
        if outside_file_problem is not None:
            raise_line_error(self._tasks.name, line.number, outside_file_problem)

    def _add_response_id(
        self, file: TextFile, number: int, path: FieldPath, response: Response
    ) -> None:
        """Note the line of a response, and how it ends. Raises `InputError` if another one has its id."""
        name = response.id
        if name in self._response_lines:
            problem = f"response {quote(name)} is already in line {self._response_lines[name]}"
            file.refuse_line(number, path, problem, "give each response an id of its own")
        self._response_lines[name] = number
        if is_left_unanswered(response.messages or ()):
            self.unanswered_chats.append(name)

    def _add_responses(self, file: TextFile) -> None:
        for line, response in read_lines(file, ResponseLine):
            if response.task not in self._index:
                hint = did_you_mean(response.task, self._index) or "name a task of the tasks file"
                problem = f"there is no task {quote(response.task)}"
                file.refuse_line(line.number, ("task",), problem, hint)
            self._add_response_id(file, line.number, ("id",), response)
            entry = self._index[response.task]
            entry.responses += 1
            entry.response_byte_ranges.append(line.place)
            if self.columns is not None:
                self.field_counts["agent"] += response.agent is not None
                self.label_counts.update(response.labels.keys())
                self.answers[entry.unit, response.agent] += 1
                if not response.text.strip():
                    self.empty_answers.append(response.id)
        if not self._response_lines:
            raise InputError(
                f"{file.name}: the file is empty; write one response a line, each a JSON object"
            )

    def extent(
        self, start: int = 0, stop: int | None = None, skipped_task_numbers: Collection[int] = ()
    ) -> tuple[int, int]:
        """Count the tasks from the one numbered `start` (from 0) up to `stop`, and the responses to them.

        The tasks of `skipped_task_numbers` do not count.
        """
        response_counts = [
            entry.responses for entry in self._task_places(start, stop, skipped_task_numbers)
        ]
        return len(response_counts), sum(response_counts)

    def file_extent(self) -> tuple[int, int]:
        """Count all tasks of the file, those of other shards too, and the responses to them."""
        return len(self._all), sum(entry.responses for entry in self._all)

    def count_leading_tasks(self, limit: int) -> int:
        """Return how many of the first tasks of the file, up to `limit`, are in the shard."""
        return sum(entry.number < limit for entry in self._ordered)

    def _task_places(
        self, start: int, stop: int | None, skipped_task_numbers: Collection[int]
    ) -> Iterator[_TaskPlace]:
        for number in range(*slice(start, stop).indices(len(self._ordered))):
            if number not in skipped_task_numbers:
                yield self._ordered[number]

    def pairs(
        self, start: int = 0, stop: int | None = None, skipped_task_numbers: Collection[int] = ()
    ) -> Iterator[TaskAndResponses]:
        """Yield these tasks, each with its responses in the order of their file; may be called again.

        Raises `InputError` if a file was changed since it was validated, or if a reviewed graph does not fit its task.
        """
        return self._read_task_entries(self._task_places(start, stop, skipped_task_numbers))

    def unsharded_pairs(self) -> Iterator[TaskAndResponses]:
        """Yield all tasks of the file, those of other shards too, as `pairs` does."""
        return self._read_task_entries(self._all)

    def _read_task_entries(self, entries: Iterable[_TaskPlace]) -> Iterator[TaskAndResponses]:
        for entry in entries:
            task, responses = reread_line(self._tasks, entry.span, TaskLine).split()
            task = _with_absolute_table_files(task, self._tasks_folder)
            task = self._defaults.complete(task)
            if self._responses is not None:
                reread_responses = []
                for span in entry.response_byte_ranges:
                    _, response = reread_line(self._responses, span, ResponseLine).split()
                    reread_responses.append(response)
                responses = tuple(reread_responses)
            if self._edges is not None:
                task = self._edges.with_reviewed_edges(task)
            yield task, responses

    def place(self, task_id: str) -> str | None:
        """Return the line of a task in its file, or its row: "line 7"; None if there is no such task."""
        entry = self._index.get(task_id)
        return None if entry is None else f"{self._tasks.unit} {entry.line}"

    def task_number(self, task_id: str) -> int:
        """Return the number of a task in its whole file, from 0."""
        return self._index[task_id].number

    def close(self) -> None:
        self._resources.close()


def read_tasks(
    path: StrPath,
    responses: StrPath | None = None,
    *,
    columns: TableColumns | None = None,
    allow_files_outside: bool = False,
) -> list[TaskAndResponses]:
    """Read the tasks of a JSONL file (`.gz` too; `-` is standard input), each with its responses, into memory.

    `responses` names a second file for the responses; `columns` those of a table, which is read instead. Table files
    that tasks name must be below the folder of the file, unless files outside are allowed. Raises `InputError` with
    file, line and field.
    """
    with open_task_source(
        path, responses, columns=columns, allow_files_outside=allow_files_outside
    ) as work:
        return list(work.pairs())


def open_task_source(
    path: StrPath,
    responses: StrPath | None = None,
    edges: StrPath | None = None,
    *,
    columns: TableColumns | None = None,
    allow_files_outside: bool = False,
    defaults: TaskDefaults = NO_TASK_DEFAULTS,
    shard: Shard | None = None,
) -> TaskSource:
    """Read files as `read_tasks` does, but of any size: every line is validated here, and read again when needed.

    A file whose first line is `{"messages": […]}` is read as a table of conversations (see `TableColumns`).
    `edges` names a TASKS file whose rubric graphs are used. A task gets the `defaults` for parts that it lacks; their
    table files must be below the same folder. With a `shard`, the tasks of the others are left out.
    """
    if edges is not None and str(edges) == "-":
        raise InputError("reviewed graphs are read from a file; name it")
    if responses is not None and str(path) == str(responses) == "-":
        raise InputError(
            "tasks and responses cannot both come from standard input; put one of them in a file"
        )
    if columns is not None and responses is not None:
        raise InputError(
            "a table holds the responses to its tasks; leave out --responses, or give the tasks as JSONL"
        )
    if columns is None and is_table(path):
        raise missing_column_options_error(path)
    if responses is not None:
        refuse_table_file(responses, """{"task": "t1", "text": "…"} for each response""")
    _refuse_yaml_file(path)
    if columns is None and responses is None:
        columns = chat_file_columns(path)
    folder = None if allow_files_outside else folder_of_tasks_file(path)
    outside_file_problem = find_outside_table_error(defaults.facts, folder)
    if outside_file_problem is not None:
        raise ConfigError(f"task_defaults.{outside_file_problem.field}: {outside_file_problem}")
    return TaskSource(
        path, responses, edges, columns=columns, folder=folder, defaults=defaults, shard=shard
    )


_T = TypeVar("_T", bound=Task)


def _with_absolute_table_files(task: _T, folder: Path) -> _T:
    facts = locate_table_files(task.facts, folder)
    return task if facts is None else task.model_copy(update={"facts": facts})


def _refuse_yaml_file(path: StrPath) -> None:
    if str(path).lower().endswith((".yaml", ".yml")):
        raise InputError(
            f"{Path(path).name}: is YAML, as a config is, and not tasks; "
            "name a file of JSON lines, or a table, and give a config with --config"
        )


_TASK_LINE = """{"id": "t1", "query": "…"} for each task"""


def refuse_table_file(path: StrPath, line: str = _TASK_LINE) -> None:
    """Raise `InputError` for a table where only lines of JSON are read, with one and with what reads the table."""
    if is_table(path):
        problem = f"{path}: is a table, and JSON lines are read here"
        command = f"jurygraph score {shell_quote(path)} --prompt-column C --response-column C"
        raise InputError(f"{problem}; write {line}, or score it as it is: `{command}`")


class TaskLinesFile(TaskKeyedFile[TaskLine]):
    """The tasks of a TASKS file that are `wanted`, completed by `defaults`; `len` counts these alone.

    They need no response, and may name files below `folder`, or anywhere without one. Of chats (see `TableColumns`)
    the queries are read, by the `columns` that a user named for them.
    """

    def __init__(
        self,
        path: StrPath,
        should_read_task: Callable[[Task], bool] = lambda task: True,
        defaults: TaskDefaults = NO_TASK_DEFAULTS,
        folder: Path | None = None,
        columns: TableColumns | None = None,
    ) -> None:
        """Validate the file. Raises `InputError` with file, line and field, and for a file without a line."""
        _refuse_yaml_file(path)
        refuse_table_file(path)
        self._is_wanted = should_read_task
        self._defaults = defaults
        self._folder = folder
        self._tasks_folder = folder_of_tasks_file(path)
        self._wanted: list[str] = []
        super().__init__(
            _open_tasks_or_chats(path, columns),
            TaskLine,
            "id",
            "give each task an id of its own",
            _EMPTY_TASKS_FILE_HINT,
        )

    def _check(self, number: int, entry: TaskLine) -> None:
        entry = _with_absolute_table_files(entry, self._tasks_folder)
        outside_file_problem = find_outside_table_error(entry.facts, self._folder)
        if outside_file_problem is not None:
            raise_line_error(self._file.name, number, outside_file_problem)
        if not isinstance(entry.query, str) and is_empty_query(entry.query):
            self._file.refuse_line(
                number, ("query",), "is a chat that asks nothing", "write the last message"
            )
        if self._is_wanted(self._defaults.complete(entry)):
            self._wanted.append(entry.id)

    def __len__(self) -> int:
        return len(self._wanted)

    def _reread_line(self, span: ByteRange) -> TaskLine:
        return _with_absolute_table_files(super()._reread_line(span), self._tasks_folder)

    def tasks(self) -> Iterator[tuple[int, Task]]:
        """Yield each wanted task, with its line."""
        for task_id in self._wanted:
            number, span = self._lines[task_id]
            task, _ = self._reread_line(span).split()
            yield number, self._defaults.complete(task)

    def iter_raw_lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield every line, wanted or not, without its end, and the id of its task: as written unless completed."""
        for task_id, (_, span) in self._lines.items():
            entry = reread_line(self._file, span, TaskLine)
            task_with_defaults = self._defaults.complete(entry)
            if task_with_defaults is entry:
                yield task_id, self._file.read(span).rstrip()
            else:
                yield task_id, task_with_defaults.model_dump_json(exclude_defaults=True).encode()

    @property
    def ids(self) -> Collection[str]:
        return self._lines.keys()


def _open_tasks_or_chats(path: StrPath, columns: TableColumns | None) -> TextFile:
    """Open a TASKS file, or the tasks of a file of chats, which has columns."""
    columns = chat_file_columns(path) if columns is None else add_columns_of_chats(path, columns)
    if columns is None:
        return TextFile(path)
    tasks = ConvertedTable()
    with close_on_error(tasks.close), explain_full_temp_disk():
        convert_table(path, columns, tasks)
    return tasks


class ProfilesFile(TaskKeyedFile[ProfilesLine]):
    """A PROFILES file: constraints read from textual profiles, one task a line, as `jurygraph profiles` writes them.

    People may edit them. Raises `InputError` also for a line whose task is not in the tasks file.
    """

    def __init__(self, path: StrPath, source: TaskSource) -> None:
        super().__init__(TextFile(path), ProfilesLine, "task", "keep one of the two")
        hint = f"name a task of {source.tasks_file.name}, or leave the line out"
        with close_on_error(self.close):
            self.refuse_unknown(source.place, (), hint)

    def profiles_of(self, task: Task) -> ProfilesLine | None:
        """Return the line of a task; None if there is none. Raises `InputError` if it does not fit the task."""
        entry = self.get(task.id)
        for problem in () if entry is None else profile_line_problems(task, entry):
            raise_line_error(self._file.name, self._lines[task.id][0], problem)
        return entry


def open_profiles(
    path: StrPath | None, source: TaskSource
) -> AbstractContextManager[ProfilesFile | None]:
    """Return the PROFILES file about the tasks of a source, which the caller closes; None if no path is given.

    Raises `InputError`.
    """
    if path is None:
        return nullcontext()
    source_file_names = [source.tasks_file.name]
    if source.responses_file is not None:
        source_file_names.append(source.responses_file.name)
    if str(path) == "-" and "standard input" in source_file_names:
        raise InputError(
            "tasks, responses and profiles cannot share standard input; put all but one in a file"
        )
    return ProfilesFile(path, source)


def profile_line_problems(task: Task, entry: ProfilesLine) -> Iterator[Problem]:
    """Yield the errors of a line that does not fit the task."""
    if entry.task != task.id:
        yield Problem(
            ("task",),
            f"is {quote(entry.task)}",
            f"name task {quote(task.id)}, or give it the line of that",
        )
    people = {stakeholder.id: stakeholder for stakeholder in task.stakeholders}
    for index, profile in enumerate(entry.stakeholders):
        if profile.id not in people:
            yield _unknown_stakeholder_problem(task, ("stakeholders", index, "id"), profile.id)
            continue
        person = people[profile.id]
        if person.constraints:
            yield Problem(
                ("stakeholders", index, "id"),
                f"{quote(profile.id)} has constraints of its own in task {quote(task.id)}",
                "leave them out there, or the stakeholder out here",
            )
        if profile.profile and profile.profile != person.profile:
            yield Problem(
                ("stakeholders", index, "profile"),
                f"is not the profile of {quote(profile.id)} in task {quote(task.id)}",
                "see what follows from the new one and copy it here, or have it read again",
            )
    for index, tension in enumerate(entry.tensions or ()):
        for position, member in enumerate(tension.between):
            if member not in people:
                yield _unknown_stakeholder_problem(
                    task, ("tensions", index, "between", position), member
                )
    if entry.tensions and task.tensions:
        yield Problem(
            ("tensions",),
            f"task {quote(task.id)} has tensions of its own",
            "leave them out there, or here",
        )


def _unknown_stakeholder_problem(task: Task, path: FieldPath, name: str) -> Problem:
    names = [stakeholder.id for stakeholder in task.stakeholders]
    hint = did_you_mean(name, names) or "name one that the task has"
    return Problem(
        path, f"names {quote(name)}, which is not a stakeholder of task {quote(task.id)}", hint
    )


def profiles_line(task: Task, profiles: Profiles) -> bytes:
    """Return a task's profiles as a line that a person can edit; the text of each profile is included."""
    profile_by_stakeholder_id = {
        stakeholder.id: stakeholder.profile for stakeholder in task.stakeholders
    }
    stakeholders = []
    for person in profiles.stakeholders:
        constraints = person.model_dump(mode="json", include={"constraints"}, exclude_none=True)
        text = {"id": person.id, "profile": profile_by_stakeholder_id[person.id]}
        stakeholders.append({**text, **constraints})
    content = {"task": task.id, "stakeholders": stakeholders}
    if profiles.tensions_by is not None:
        content["tensions"] = [tension.model_dump(mode="json") for tension in profiles.tensions]
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
