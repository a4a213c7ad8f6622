"""Read a run: the content of its ledger as values of the data model, checked while it is read."""

import json
import os
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cached_property, lru_cache, partial
from html import escape
from importlib.util import find_spec
from itertools import chain
from math import isnan
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from jurygraph.display import ShortRepr, draw_notebook_html, format_repr_line
from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.messages import did_you_mean, join_names, quote, shorten
from jurygraph.runs.export_table import (
    StoredVerdict,
    TableName,
    TraceWithContent,
    import_library,
    mean_score_by_question,
    verdicts_about_response,
)
from jurygraph.runs.sessions import phase_without_session
from jurygraph.runs.store.folder import (
    CONFIG_FILE,
    LEDGER_FILE,
    SEAL_FILE,
    folder_of_runs_error,
    list_run_folders,
    missing_run_error,
    refuse_links,
    require_run,
)
from jurygraph.runs.store.header import RunHeader, RunOrigin, differences, read_run_header
from jurygraph.runs.store.joined_ledger import JoinedLedger
from jurygraph.runs.store.ledger import Ledger, LedgerRecord, reading, record_label
from jurygraph.runs.store.packing import (
    ERASED_PLACEHOLDER,
    RecordBody,
    RecordTexts,
    read_planning_results,
    read_shared_id_lists,
    read_views,
    unpack_material,
    unpack_response_metadata,
    unpack_reward,
    unpack_stored_response,
    unpack_verdict,
)
from jurygraph.runs.table_reader import TableOptions, open_export_table
from jurygraph.schema import (
    Call,
    Config,
    Decision,
    FrozenModel,
    Plan,
    RecordedVerdict,
    Response,
    SurveyWithoutTexts,
    Task,
    Trace,
    Verdict,
)
from jurygraph.schema.frozen_model import JsonFields, JsonMapping, StrPath, require_argument_type
from jurygraph.schema.plan import task_as_planned
from jurygraph.schema.task import last_request_text
from jurygraph.schema.trace import determine_purpose, group_verdicts_by_response
from jurygraph.schema.verdict import has_transient_failure
from jurygraph.sources.files import close_on_error

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from jurygraph.decision.combiners import Combiners
    from jurygraph.explanation import Explanation
    from jurygraph.sources.user_modules import FolderModules

_Model = TypeVar("_Model", bound=FrozenModel)


class ScoredResponse(NamedTuple):
    """A trace and its response; the response is None where it was erased."""

    trace: Trace
    response: Response | None

    def __repr__(self) -> str:
        return format_repr_line("ScoredResponse", self.trace._repr_parts())


ERASED_CHANGE_TEXT = "was erased"


def changes_by_response(
    stored_responses: Iterable[ScoredResponse],
    responses: Iterable[Response],
    identity: Callable[[Response], object] = attrgetter("content_digest"),
) -> dict[str, str]:
    """Return what became of the stored responses, and which of `responses` are new, by id, as ends of a sentence.

    Responses with the same `identity` are left out.
    """
    response_by_id = {response.id: response for response in responses}
    changes = {}
    for trace, old in stored_responses:
        new = response_by_id.pop(trace.response_id, None)
        if new is None:
            changes[trace.response_id] = "is gone"
        elif old is None:
            changes[trace.response_id] = ERASED_CHANGE_TEXT
        elif identity(old) != identity(new):
            changes[trace.response_id] = "is another one now"
    return changes | dict.fromkeys(response_by_id, "is new")


class Run(ShortRepr):
    """A stored run, opened for reading.

        with Run.open("run") as run:
            rewards = {trace.response_id: trace.reward.value for trace in run.traces()}
            print(run.explain("task-1/a"))

    The order of the tasks is that of their file; in an open-ended run, that in which their first groups ended.

    Attributes:
        folder: the run's folder.
        header: what the run was made from: files, config, model, evaluators and their versions.
        ledger: the records.

    Raises `TraceMismatch` where the stored content cannot be the content that was written, and `InputError` for an
    unknown id, or if the run was closed.
    """

    def __init__(self, folder: Path, ledger: Ledger, header: RunHeader) -> None:
        self.folder = folder
        self.ledger = ledger
        self.header = header
        self.survey_without_texts = lru_cache(maxsize=1024)(
            partial(_read_validated_record, ledger, "survey", SurveyWithoutTexts)
        )
        self.decision = lru_cache(maxsize=1024)(
            partial(_read_validated_record, ledger, "decision", Decision)
        )

    @classmethod
    def open(cls, folder: StrPath) -> "Run":
        """Open the run in a folder for reading; a folder of runs with the same settings is read as one run.

        Raises `InputError` where there is none, or where two of them differ.
        """
        require_argument_type("folder", folder, StrPath, "give the folder of a run")
        folder = Path(folder)
        members = list_run_folders(folder)
        if members:
            return cls._open_runs_as_one(folder, members)
        require_run(folder)
        run = cls.open_if_begun(folder)
        if run is None:
            raise missing_run_error(folder)
        return run

    @classmethod
    def _open_runs_as_one(cls, folder: Path, members: Sequence[Path]) -> "Run":
        """Open the runs of ranks, or of shards, as one."""
        with ExitStack() as exit_stack:
            runs = [exit_stack.enter_context(Run.open(member)) for member in members]
            first = runs[0].header
            for run in runs:
                if run.header.base is not None:
                    raise InputError(
                        f"{run.folder}: is a re-scored run, which is not read as one with the others in "
                        f"{folder}; name a single run"
                    )
                found = next(
                    differences(first.header_of_all_shards(), run.header.header_of_all_shards()),
                    None,
                )
                if found is not None:
                    raise InputError(
                        f"{run.folder}: has other settings than {runs[0].folder}: {found}; they are not "
                        f"read as one run, so name a single one instead of {folder}"
                    )
            ledger = JoinedLedger(folder, [run.ledger for run in runs])
            for name, number in Counter(ledger.keys("trace")).most_common(1):
                if number > 1:
                    raise InputError(f"{folder}: two of its runs have a response {quote(name)}")
            exit_stack.pop_all()  # closed with the ledger that joins them
        header = first.header_of_all_shards().model_copy(
            update=relocated_header_fields(first, members[0], folder)
        )
        return cls(folder, ledger, header)

    @classmethod
    def open_if_begun(cls, folder: Path) -> "Run | None":
        """Open the run in a folder for reading; None where there is none, or none yet, before its tasks are planned."""
        ledger = open_ledger(folder) if (folder / LEDGER_FILE).is_file() else None
        if ledger is None:
            return None
        with close_on_error(ledger.close):
            return cls(folder, ledger, read_run_header(ledger))

    @classmethod
    def open_if_closed(cls, folder: Path) -> "Run | None":
        """Open the run in a folder for reading if it is closed, so that it needs no lock; None otherwise."""
        run = cls.open_if_begun(folder)
        if run is None or run.is_closed:
            return run
        run.close()
        return None

    def close(self) -> None:
        """Close the run's file; may be called more than once."""
        self.survey_without_texts.cache_clear()
        self.decision.cache_clear()
        if "base" in vars(self) and self.base is not None:
            self.base.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        try:
            return draw_notebook_html("draw_run", self)
        # of a run that is closed, or was changed: a notebook says so
        except JurygraphError as error:
            return f"<p>{escape(str(error))}</p>"

    def _repr_parts(self) -> Iterable[tuple[str, Any]]:
        header = self.header
        yield from (
            ("folder", str(self.folder)),
            ("model", header.config.judging_models),
            ("evaluators", [*header.evaluators]),
        )

    @property
    def id(self) -> str:
        return self.ledger.record_at(1).key

    @property
    def config(self) -> Config:
        return self.header.config

    @property
    def judges(self) -> tuple[str, ...]:
        """Return the models behind the rewards, sorted: all names under which they were requested or replied."""
        names = {model.model for model in self.source.header.model_identities}
        for record in self.source.ledger.records(
            "trace", up_to_record=self.last_base_record_number
        ):
            for call in record.content.get("calls", ()):
                names |= {call["model"], call["served"]}
        return tuple(sorted(names - {None}))

    @property
    def code_folder(self) -> Path | None:
        """Return the folder of the config's own modules when the run was scored; None where all were installed."""
        code = self.header.code
        return None if code is None else Path(os.path.normpath(self.folder.resolve() / code))

    def modules(
        self, revised_config: Config | None = None, *, only_combiners: bool = False
    ) -> "FolderModules | None":
        """Return the modules that the config names, from the folder where they were when the run was scored, if any.

        A `revised_config` may name others; if the run recorded no folder, they are searched in the current one.
        Raises `InputError` if that folder is gone and a module is not installed, with `only_combiners` one with a
        combiner; and `ConfigError` like `FolderModules`.
        """
        from jurygraph.sources.user_modules import FolderModules, iter_config_modules

        configs = list(filter(None, (self.source.config, self.config, revised_config)))
        folder = (
            self.source.code_folder
            or self.code_folder
            or (None if revised_config is None else Path())
        )
        if folder is None:
            return None
        if folder.is_dir():
            return FolderModules(folder, *configs)
        for key, name in chain.from_iterable(map(iter_config_modules, configs)):
            if find_spec(name) is None and (key.startswith("components.") or not only_combiners):
                raise InputError(
                    f"{self.folder}: {key} names {name!r}, which this run looks for in {folder}; "
                    "that folder is missing; move the run and the folder together, "
                    "or install the module"
                )
        return None

    def load_combiners(self, revised_config: Config | None = None) -> "Combiners":
        """Return the combiners of the config, or of a revised one; your own are imported as `modules` describes.

        Raises `InputError` where a version of the config's own differs from that of the run.
        """
        from jurygraph.agents.registry import load_combiners  # lazily: it loads NumPy
        from jurygraph.sources.user_modules import importing_from

        config = revised_config or self.config
        with importing_from(self.modules(revised_config, only_combiners=True)):
            combiners = load_combiners(config, self.header.evaluators.values())
        if config != self.config:
            return combiners
        for name, version in self.header.combiners.items():
            current_version = combiners[name].version if name in combiners else "none"
            if current_version != version:
                raise InputError(
                    f"{self.folder}: was decided with combiner {name} of version {version}, "
                    f"and here it has {current_version}; "
                    "rewards can be recomputed with the version of the run alone"
                )
        return combiners

    @cached_property
    def base(self) -> "Run | None":
        """The run whose verdicts this one refers to, None without one. Raises `InputError` where it cannot be found."""
        origin = self.header.base
        if origin is None:
            return None
        folder = self.folder_of_origin(origin)
        if not (folder / LEDGER_FILE).is_file():
            raise InputError(
                f"{self.folder}: refers to the verdicts of {folder}, which is not there; "
                "put it back there, or move both together"
            )
        base = Run.open(folder)
        if base.id != origin.run:
            base.close()
            raise TraceMismatch(
                f"{folder}: is another run than the one that {self.folder} refers to"
            )
        return base

    def origin(self, folder: Path) -> RunOrigin:
        """Return a reference to this run, as it is now, for the header of a run in another folder.

        Raises `InputError` for a set of runs, of which there is no head.
        """
        self.require_single_run()
        path = os.path.relpath(self.folder.resolve(), folder.resolve())
        return RunOrigin(
            run=self.id, folder=path, records=self.ledger.count, head=self.ledger.head.hex()
        )

    @property
    def is_set_of_runs(self) -> bool:
        """True for several runs that are read as one."""
        return isinstance(self.ledger, JoinedLedger)

    def require_single_run(self) -> None:
        """Raise `InputError` for a set of runs: what concerns chain, head or seal is of each by itself."""
        if self.is_set_of_runs:
            raise folder_of_runs_error(self.folder)

    def folder_of_origin(self, origin: RunOrigin) -> Path:
        return Path(os.path.normpath(self.folder.resolve() / origin.folder))

    def open_origin(self) -> "Run | None":
        """Open the run from which this one was branched; None for no branch, or where that run is not there any more.

        A branch stores only the calls that it made itself: those behind what it reused are in the runs before it.
        """
        origin = self.header.branch
        if origin is None or not (self.folder_of_origin(origin) / LEDGER_FILE).is_file():
            return None
        origin_run = Run.open(self.folder_of_origin(origin))
        if origin_run.id == origin.run:
            return origin_run
        origin_run.close()
        return None

    @property
    def source(self) -> "Run":
        """Return the run that holds the verdicts: the base, or this run."""
        return self.base or self

    @property
    def tasks_scored(self) -> int:
        """The scored tasks, in an open-ended run groups, of which one that was judged again counts once."""
        if self.base is not None:
            return self.header.extent.tasks
        return self.ledger.count_records("group") - len(self.replaced_group_numbers())

    @property
    def replaced_trace_count(self) -> int:
        """The traces of groups that were judged again. A re-scored run, which has only the last ones, has none."""
        if self.base is not None:
            return 0
        groups = map(self.ledger.record_at, self.replaced_group_numbers())
        return sum(group.content["size"] for group in groups)

    @property
    def planned_task_count(self) -> int:
        return self.ledger.count_records("task")

    @property
    def is_closed(self) -> bool:
        """Return whether the run is closed, so that nothing more can be scored into it."""
        return self.ledger.find("close", "") is not None

    @property
    def last_base_record_number(self) -> int | None:
        """Return the number of the last record of the base that belongs to this run; None without a base."""
        return None if self.header.base is None else self.header.base.records

    def stored_task_record(self, task_id: str) -> RecordBody | None:
        """Return the stored text of a task as parsed JSON; None where it was erased.

        It has the keys `task`, `views` and `plan`; `profiles` if some were read; `rubric` if it was annotated.
        """
        text = self.source.ledger.texts_of_record(self.task_record(task_id)).get(0)
        return None if text is None else json.loads(text)

    def task(self, task_id: str) -> Task | None:
        """Return a task as it was given to planning; None where its texts were erased."""
        content = self.stored_task_record(task_id)
        return Task.model_validate(content["task"]) if content else None

    def short_query(self, task_id: str, max_length: int = 60) -> str:
        """Return the first words of what a task asks last, as one line of at most so many characters."""
        task = self.task(task_id)
        if task is None:
            return ERASED_PLACEHOLDER
        return shorten(" ".join(last_request_text(task.query).split()), max_length)

    def task_with_planning_results(self, task_id: str) -> Task | None:
        """Return a task with the content of its profiles and its rubric's graph; None where its texts were erased."""
        content = self.stored_task_record(task_id)
        if content is None:
            return None
        return task_as_planned(
            Task.model_validate(content["task"]), **read_planning_results(content)
        )

    def plan_of(self, task_id: str) -> Plan:
        """Return the plan of a task, with the decision of this run. Raises `InputError` where its texts were erased."""
        content = self.stored_task_record(task_id)
        if content is None:
            raise InputError(
                f"{self.folder}: the texts of task {task_id!r} were erased, its plan with them; "
                "`jurygraph close` ends the run without it"
            )
        return Plan(
            task_id=task_id,
            task_digest=Task.model_validate(content["task"]).content_digest,
            survey=self.survey_without_texts_of(task_id).with_views(read_views(content)),
            decision=self.decision_of(task_id),
            files=content.get("files", {}),
            **read_planning_results(content),
        )

    def planning_calls(self) -> Iterator[Call]:
        """Yield the calls that read profiles and annotated rubrics, task by task."""
        for record in self.ledger.records("task"):
            yield from map(Call.model_validate, record.content.get("calls", ()))

    def survey_without_texts_of(self, task_id: str) -> SurveyWithoutTexts:
        return self.source.survey_without_texts(self.task_record(task_id).content["survey"])

    def task_record(self, task_id: str) -> LedgerRecord:
        return self._task_record(self.source.ledger, task_id)

    def decision_of(self, task_id: str) -> Decision:
        return self.decision(self._task_record(self.ledger, task_id).content["decision"])

    def verdicts_about_trace(
        self,
        trace: Trace,
        get_seat: Callable[[RecordedVerdict], object] = attrgetter("about"),
        superseded: bool = False,
    ) -> Iterable[RecordedVerdict]:
        """Return `verdicts_about_response`; those on turns become one with the value that the reward counts.

        There is one for each value of `get_seat`, such as the judge.
        """
        verdicts = verdicts_about_response(trace, superseded)
        questions = self.survey_without_texts_of(trace.task_id).questions
        if not any(question.scope == "turn" for question in questions):
            return verdicts
        from jurygraph.decision.turns import fold_turns  # lazily: it loads NumPy

        return fold_turns(list(verdicts), self.decision_of(trace.task_id), questions, get_seat)

    def question_scores(self, trace: Trace) -> dict[str, float]:
        """Return the score of each question about a trace's response, of several verdicts the value that counts.

        A question whose verdicts leave nothing that counts, such as votes without a majority, has none.
        """
        from jurygraph.decision.turns import values_by_question  # lazily: it loads NumPy

        values = values_by_question(
            self.decision_of(trace.task_id),
            self.survey_without_texts_of(trace.task_id).questions,
            [trace.response_id],
            lambda: trace.verdicts,
        )
        scores = mean_score_by_question(trace.response_id, self.verdicts_about_trace(trace))
        scores |= {question: float(value) for question, (value,) in values.items()}
        return {question: score for question, score in scores.items() if not isnan(score)}

    def predicted_scores(self, trace: Trace) -> dict[str, float]:
        """Return what each reviewer is predicted to give, by question, on the reviewer's own scale."""
        from jurygraph.explanation.predictions import predicted_scores  # lazily: it loads NumPy

        predictions = predicted_scores(self.explain_trace(trace).explained)
        found = {prediction.verdict.question: prediction.value for prediction in predictions}
        return {question: value for question, value in found.items() if value is not None}

    def _surveys(self) -> Iterator[SurveyWithoutTexts]:
        return map(self.source.survey_without_texts, self.source.ledger.keys("survey"))

    def reviewer_questions(self) -> list[str]:
        """Return the names of the questions about what a reviewer would give, in the order of the surveys."""
        found: dict[str, None] = {}
        for survey in self._surveys():
            for question in survey.questions:
                if survey.members[int(question.view)][0] == "reviewer":
                    found[question.id] = None
        return list(found)

    def _task_record(self, ledger: Ledger, task_id: str, kind: str = "task") -> LedgerRecord:
        """Return the record of a task in a ledger of this run or of its base. Raises `InputError` for an unknown id."""
        require_argument_type("task_id", task_id, str, "use the `task_id` of a trace")
        record = ledger.find_verified_record(kind, task_id)
        if record is not None:
            return record
        if not any(self.source.ledger.find(kind, task_id) for kind in ("task", "group")):
            hint = (
                did_you_mean(task_id, self.source.ledger.keys("task"))
                or "use the `task_id` of a trace"
            )
            raise InputError(f"{self.folder}: there is no task {task_id!r}; {hint}")
        return ledger.require(kind, task_id)

    def decisions(self) -> Iterator[Decision]:
        """Yield every decision of the run, in the order in which they were made."""
        for record in self.ledger.records("decision"):
            yield self.decision(record.key)

    def components(self) -> list[str]:
        """Return the names of all components, in the order of the decisions."""
        specs = chain.from_iterable(decision.specs for decision in self.decisions())
        return list(dict.fromkeys(spec.name for spec in specs))

    def questions(self) -> list[str]:
        """Return the names of all questions except those about pairs, in the order of the surveys."""
        questions = chain.from_iterable(survey.questions for survey in self._surveys())
        return list(dict.fromkeys(q.id for q in questions if q.scope != "pair"))

    def group_records(self) -> Iterator[LedgerRecord]:
        """Yield the record of every group in the order of the tasks; groups are stored in the order of their ends."""
        replaced_record_numbers = self.replaced_group_numbers()
        ledger = self.source.ledger
        groups = ledger.ordered_group_numbers(self.last_base_record_number)
        numbers = array(
            "q", (number for number, _ in groups if number not in replaced_record_numbers)
        )
        return map(ledger.record_at, numbers)

    def replaced_group_numbers(self) -> set[int]:
        """Return the records of groups that were scored again, after infrastructure had failed; others replace them."""
        if not self.header.is_open_ended:
            return set()
        return _find_replaced_groups(
            self.source.ledger.records("group", up_to_record=self.last_base_record_number)
        )

    def scored_responses(self) -> Iterator[ScoredResponse]:
        """Yield every trace with its response, in the order of the tasks.

        Raises `TraceMismatch` at the end if a closed run has lost some: what is read then is not all of it.
        """
        count = self.replaced_trace_count
        for group in self.group_records():
            members = self.group(group)
            count += len(members)
            yield from members
        self._require_all_traces_if_closed(count)

    def traces(self) -> Iterator[Trace]:
        """Yield every trace, in the order of the tasks."""
        return (scored.trace for scored in self.scored_responses())

    def verdicts(self) -> Iterator[StoredVerdict]:
        """Yield every verdict once, in the order of the tasks; one about a pair comes with its first response."""
        for trace, response, task in self.responses_with_tasks():
            for verdict in verdicts_about_response(trace):
                yield StoredVerdict(verdict, trace, response, task)

    def responses_with_tasks(self) -> Iterator[TraceWithContent]:
        task_id = None
        task = None
        for trace, response in self.scored_responses():
            if trace.task_id != task_id:
                task_id = trace.task_id
                task = self.task(trace.task_id)
            yield trace, response, task

    def to_arrow(
        self, name: TableName = "rewards", texts: bool = False, questions: bool = False
    ) -> "pyarrow.Table":
        """Return a table as an Arrow table, for polars too; the arguments are those of `to_pandas`, the error too."""
        pyarrow = import_library("pyarrow")  # before a large run is read
        options = TableOptions(texts=texts, questions=questions)
        with closing(open_export_table(self, name, options)) as table:
            schema, batches = table.arrow_batches()
            return pyarrow.Table.from_batches(batches, schema)

    def to_pandas(
        self, name: TableName = "rewards", texts: bool = False, questions: bool = False
    ) -> "pandas.DataFrame":
        """Return the table `rewards`, one row per response, or `verdicts`, one row each, as a pandas DataFrame.

        The columns are those of `jurygraph export`. `texts` adds the columns `prompt` and `text`, and `questions`
        the score of each question, as it counts, to the rewards. Raises `InputError` without pandas and pyarrow.
        """
        pandas = import_library("pandas")
        pyarrow = import_library("pyarrow")
        nullable_pandas_dtypes = {
            pyarrow.int64(): pandas.Int64Dtype(),
            pyarrow.bool_(): pandas.BooleanDtype(),
        }
        return self.to_arrow(name, texts, questions).to_pandas(
            types_mapper=nullable_pandas_dtypes.get
        )

    def group(self, group: LedgerRecord) -> list[ScoredResponse]:
        """Return the traces of a group; `group` is its record in the run that holds the verdicts.

        Raises `TraceMismatch` where a record does not follow the one before it, or cannot be read.
        """
        with reading(f"{self.ledger.path}, record {group.seq} and those of its traces"):
            return _unpack_group(self, group)

    def group_of(self, task_id: str) -> list[ScoredResponse]:
        """Return the traces of a task's group, in an open-ended run those of its last one."""
        return self.group(self._task_record(self.source.ledger, task_id, "group"))

    def groups_of_task(self, task_id: str) -> Iterator[list[ScoredResponse]]:
        """Yield the traces of each group of a task, of which only an open-ended run has several."""
        records = self.source.ledger.find_all_records("group", task_id)
        replaced_record_numbers = (
            _find_replaced_groups(records) if self.header.is_open_ended else set()
        )
        for record in records:
            if record.seq not in replaced_record_numbers:
                yield self.group(record)

    @cached_property
    def session_count(self) -> int:
        """The sessions of the training that recorded this run: 1, and counted on at each restart.

        0 where it is no such run, as where the label `session` of its responses means something else.
        """
        if not self.header.is_open_ended:
            return 0
        ledger = self.source.ledger
        sessions_by_ledger: dict[Path, list[int | None]] = defaultdict(list)
        for record in ledger.records("group"):
            group = [scored for scored in self.group(record) if scored.response is not None]
            if group:
                path = ledger.path_of_ledger_with(record.seq)
                sessions_by_ledger[path].append(read_session(group))
        counts = list(map(count_sessions, sessions_by_ledger.values()))
        return max(counts, default=0) if all(counts) else 0

    @cached_property
    def is_continued(self) -> bool:
        """True if a later session of the training recorded the last group."""
        last_number = max(self.source.ledger.record_numbers("group"), default=None)
        if not self.header.is_open_ended or last_number is None:
            return False
        # `session_count` would read all groups, which takes long for the explanation of one response.
        last_session = read_session(self.group(self.source.ledger.record_at(last_number)))
        return last_session is not None and last_session > 1

    def labels_with_session(self, trace: Trace) -> JsonMapping:
        """Return the labels of a response, with the first session, which is not stored, where others followed it.

        Blanks around a text are left out, so that cells of a table are one value. An erased response has no labels.
        """
        labels = {
            name: value.strip() if isinstance(value, str) else value
            for name, value in trace.labels.items()
        }
        if "step" in labels and "session" not in labels and self.is_continued:
            labels["session"] = 1
        return labels

    def group_of_response(self, response_id: str) -> list[ScoredResponse]:
        """Return the traces of the group of a response. Raises as `find_trace`."""
        require_argument_type("response_id", response_id, str, "use the `response_id` of a trace")
        record = self.source.ledger.find("trace", response_id)
        if record is None:
            self._require_all_traces_if_closed(self.ledger.count_records("trace"))
            stored_names = list(self.source.ledger.keys("trace"))
            task_prefix = re.split("[@/]", response_id)[0]
            # that of a response to another task would be taken for the right one
            names_of_task = [name for name in stored_names if name.startswith(task_prefix)]
            hint = did_you_mean(response_id, names_of_task or stored_names)
            is_number = response_id.isdecimal()
            task_id = f"row-{response_id}" if is_number else response_id
            if self.source.ledger.find("group", task_id) is not None:
                names = join_names(trace.response_id for trace, _ in self.group_of(task_id))
                hint = f"that is a task; its responses are {names}"
                if is_number:  # in Excel the header is row 1
                    hint = f"row {response_id} below the header, row {int(response_id) + 1} of the sheet, is {names}"
            hint = hint or "`jurygraph show RUN` lists them, with --agent those of an agent"
            raise InputError(f"{self.folder}: there is no response {response_id!r}; {hint}")
        with reading(f"{self.ledger.path}, {record_label(record)}"):
            group_number = record.seq - record.content["group"]
        return self.group(self.source.ledger.record_at(group_number))

    def find_trace(self, response_id: str) -> Trace:
        """Return the trace of one response.

        It includes its plan if profiles or a rubric's graph are stored for that and not erased. Raises `InputError` for
        an unknown response, and `TraceMismatch` if a closed run has lost traces.
        """
        return self.find_scored_response(response_id).trace

    def find_scored_response(self, response_id: str) -> ScoredResponse:
        """Return one response with its trace, which is that of `find_trace`. Raises as it does."""
        scored = next(
            member
            for member in self.group_of_response(response_id)
            if member.trace.response_id == response_id
        )
        trace = scored.trace
        content = self.stored_task_record(trace.task_id) or {}
        if not read_planning_results(content):
            return scored
        return scored._replace(trace=trace.model_copy(update={"plan": self.plan_of(trace.task_id)}))

    def _require_all_traces_if_closed(self, count: int) -> None:
        """Raise `TraceMismatch` if the run is closed and has another number of traces."""
        closing_records = self.ledger.find_all_records("close", "") if self.is_closed else []
        expected = sum(record.content["traces"] for record in closing_records)
        if closing_records and expected != count:
            raise TraceMismatch(
                f"{self.ledger.path}: {expected - count} of its {expected} traces are missing; "
                "it has been changed"
            )

    def explain(self, response_id: str) -> "Explanation":
        """Return the explanation of a response's reward; its `what_if` runs your own combiners, as `verify` does.

        Raises `InputError` and `TraceMismatch` as `find_trace`, and `what_if` as `load_combiners`.
        """
        return self.explain_trace(self.find_trace(response_id))

    def explain_trace(self, trace: Trace) -> "Explanation":
        """Return the explanation of a trace of this run, as `explain` does."""
        from jurygraph.explanation import Explanation  # lazily: it loads NumPy

        return Explanation(
            trace,
            self.decision_of(trace.task_id),
            self.survey_without_texts_of(trace.task_id).questions,
            group=lambda: [scored.trace for scored in self.group_of_response(trace.response_id)],
            combiners=self.load_combiners,
            survey=lambda: self.plan_of(trace.task_id).survey,
        )


def relocated_header_fields(header: RunHeader, member: Path, folder: Path) -> JsonFields:
    """Return the fields of a member's header that name other folders, relative to another folder, such as its set's."""

    def move(path: str) -> str:
        return os.path.relpath(member.resolve() / path, folder.resolve())

    branch = header.branch
    return {
        "code": None if header.code is None else move(header.code),
        "branch": branch and branch.model_copy(update={"folder": move(branch.folder)}),
    }


def _read_validated_record(ledger: Ledger, kind: str, model: type[_Model], digest: str) -> _Model:
    return model.model_validate(ledger.require(kind, digest).content)


def open_ledger(folder: Path, write: bool = False) -> Ledger | None:
    """Open the ledger in a folder; None where creating a run was stopped before it had a record."""
    path = folder / LEDGER_FILE
    refuse_links(folder)
    if not path.stat().st_size and (folder / CONFIG_FILE).exists():
        raise TraceMismatch(
            f"{path}: is empty, but {CONFIG_FILE} shows that there was a run; it has been changed"
        )
    ledger = Ledger.open(path, write)
    if ledger is None and (folder / SEAL_FILE).exists():
        raise TraceMismatch(
            f"{path}: has no record, but {SEAL_FILE} shows that there was a run; it has been changed"
        )
    return ledger


def _find_replaced_groups(groups: Iterable[LedgerRecord]) -> set[int]:
    """Return the numbers of the groups of an open-ended run that are there again, under the same name."""
    last: dict[tuple[Any, ...], int] = {}
    replaced_record_numbers = set()
    for group in groups:
        with reading(record_label(group)):
            body = group.content
            name = group.key, body.get("phase"), body["step"]
            if body.get("again"):
                replaced_record_numbers.add(last[name])
        last[name] = group.seq
    return replaced_record_numbers


def has_erased_text(verdict: Verdict) -> bool:
    return ERASED_PLACEHOLDER in (
        verdict.reason,
        *(evidence.quote for evidence in verdict.evidence),
    )


EVALUATION_PHASE = "eval"
"""The phase of groups that a training's evaluation scores, and a label: their step is one of the training, too."""


def is_evaluation(record: LedgerRecord, group: Sequence[ScoredResponse]) -> bool:
    """Return whether an evaluation scored a group, by its label, or its `record`, which keeps it after an erasure."""
    phase = phase_without_session(record.content.get("phase"))
    return EVALUATION_PHASE in (phase, group[0].trace.labels.get("phase"))


def read_group_labels(group: Sequence[ScoredResponse]) -> JsonMapping:
    """Return the labels of the first response of a group that was not erased, as an erased one has none."""
    return next((item.trace.labels for item in group if item.trace.labels), {})


def read_session(group: Sequence[ScoredResponse]) -> int | None:
    """Return the number of the session of a training that a group's labels name, 1 where it is not stored.

    None where the labels are not those of a training.
    """
    labels = read_group_labels(group)
    session = labels.get("session", 1)
    return session if "step" in labels and isinstance(session, int) else None


def count_sessions(sessions: Iterable[int | None]) -> int:
    """Return the last session of a record's groups, in their order; 0 if new ones do not count on from 1 by one.

    Other numbers are of another kind, such as the ids of chats. Sessions of which all was erased are not counted. A
    server may end, or judge again, a group of an earlier session in a later one.
    """
    last_session = 1
    for session in sessions:
        if session is None or not 1 <= session <= last_session + 1:
            return 0
        last_session = max(session, last_session)
    return last_session


def is_verdict_reusable(verdict: RecordedVerdict) -> bool:
    """Return whether a verdict comes from its evaluator, without a transient failure, and was not erased."""
    is_permanent_result = not has_transient_failure(verdict) and not has_erased_text(verdict)
    return bool(verdict.responses) and is_permanent_result


def _unpack_group(run: Run, group: LedgerRecord) -> list[ScoredResponse]:
    ledger = run.source.ledger
    last = group.seq + group.content["size"]
    records = [(record, record.content) for record in ledger.verified_records(group.seq, last)]
    texts = ledger.texts({record.seq: body["texts"] for record, body in records})
    (_, group_body), *trace_records = records
    task_id = group.key
    stored_task_record = run.stored_task_record(task_id)
    survey = run.survey_without_texts_of(task_id)
    decision = run.decision_of(task_id)
    shared_id_lists = read_shared_id_lists(group_body)
    verdicts = []
    for record, body in trace_records:
        verdicts += [
            unpack_verdict(verdict, record.key, survey, texts[record.seq], shared_id_lists)
            for verdict in body["verdicts"]
        ]
    verdicts.sort(key=lambda verdict: verdict.key.sort_key)
    response_ids = [record.key for record, _ in trace_records]
    verdicts_by_response = group_verdicts_by_response(survey.questions, response_ids, verdicts)
    plan_digest = ERASED_PLACEHOLDER
    if stored_task_record is not None:
        plan_digest = (
            stored_task_record["plan"] if run.base is None else run.plan_of(task_id).digest
        )
    shared_trace_fields = {
        "task_id": task_id,
        "group": texts[group.seq].get(0, ERASED_PLACEHOLDER.encode()).decode(),
        "plan_digest": plan_digest,
        "statistics": group_body["statistics"],
    }
    members = []
    for record, body in trace_records:
        fields = shared_trace_fields | {"verdicts": verdicts_by_response[record.key]}
        members.append(_unpack_trace(run, record, body, texts[record.seq], decision, fields))
    return members


def _unpack_trace(
    run: Run,
    record: LedgerRecord,
    body: RecordBody,
    texts: RecordTexts,
    decision: Decision,
    shared_trace_fields: JsonMapping,
) -> ScoredResponse:
    about = unpack_response_metadata(body, texts)
    calls = body.get("calls", ())
    current_run_record = record if run.base is None else run.ledger.require("trace", record.key)
    reward = (
        body["reward"] if current_run_record is record else current_run_record.content["reward"]
    )
    judges = [model.model for model in run.header.model_identities]
    served = [call["served"] for call in calls if call["served"] is not None]
    material = [unpack_material(item, record.key, texts) for item in body.get("material", ())]
    previous = run.ledger.record_at(current_run_record.seq - 1)
    trace = Trace.model_validate(
        {
            **shared_trace_fields,
            "response_id": record.key,
            "agent": body.get("agent"),
            "labels": about["labels"],
            "reward": unpack_reward(reward, decision),
            "material": material,
            "calls": calls,
            "lookups": body.get("lookups", ()),
            "purpose": determine_purpose(run.config.purpose, judges, served),
            "previous": previous.link.hex(),
        }
    )
    return ScoredResponse(trace, unpack_stored_response(body, record.key, texts))
