"""The index of a run: what the pages filter, sort and search, derived from the ledger into a SQLite file next to it.

It is bound to a head of the ledger, grows with the run, and is made again where it does not fit. It proves nothing:
whatever a page shows of a single response is read from the run itself. Texts are searchable words without the texts.
Its verdicts are those of the run in the form that rankings and comparisons need: to read them takes 17 µs for each.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any
from zlib import compress, decompress

from pydantic_core import from_json, to_json

from jurygraph.decision.turns import is_about_whole_response, values_by_question
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import TraceMismatch
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.reports.bill import source_of_reply
from jurygraph.runs.reports.summary import needs_quotation
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD, reading
from jurygraph.runs.store.packing import (
    StoredBody,
    unpack_response_metadata,
    unpack_response_text,
)
from jurygraph.runs.stored_groups import (
    StoredGroup,
    TraceWithoutTexts,
    read_stored_group,
    read_stored_groups,
)
from jurygraph.runs.workflows.deciding import DecisionKey, PackedGroupVerdicts, pack_group
from jurygraph.schema import Call, Question
from jurygraph.schema.frozen_model import JsonMapping
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.sources.files import create_private_file
from jurygraph.studies.compared_responses import (
    ComparedResponse,
    ComparedVerdictKey,
    SampleMeanVerdict,
    compared_responses,
)
from jurygraph.views.rewards import largest_disagreement

INDEX_VERSION = 22
"""Version of the tables; an index of another one is made again."""
_FASTEST_COMPRESSION_LEVEL = 1
"""Level of compression; a higher one takes longer and saves no more."""
_GROUPS_PER_BATCH = 256
"""Groups that are added in one transaction."""

_CREATE_TABLES_SQL = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE names (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE responses (
    number INTEGER PRIMARY KEY, group_number INTEGER NOT NULL, task INTEGER NOT NULL, name TEXT NOT NULL,
    agent INTEGER, status TEXT NOT NULL, reward REAL, least REAL NOT NULL, most REAL NOT NULL, best REAL NOT NULL,
    coverage REAL NOT NULL, gates TEXT NOT NULL, failed INTEGER NOT NULL, quotable INTEGER NOT NULL,
    unsupported INTEGER NOT NULL, calls INTEGER NOT NULL, cost REAL, disagreement REAL,
    at INTEGER NOT NULL);
CREATE INDEX responses_of_a_task ON responses (task);
CREATE INDEX responses_by_reward ON responses (coalesce(reward, 9e999), number);
CREATE TABLE components (
    component INTEGER NOT NULL, response INTEGER NOT NULL, judged REAL, counted REAL,
    PRIMARY KEY (component, response)) WITHOUT ROWID;
CREATE TABLE gates (gate INTEGER NOT NULL, response INTEGER NOT NULL, lost REAL NOT NULL,
    PRIMARY KEY (gate, response)) WITHOUT ROWID;
CREATE TABLE verdicts (
    response INTEGER NOT NULL, question INTEGER NOT NULL, position INTEGER NOT NULL, score REAL, failure INTEGER,
    turn INTEGER, gate TEXT, PRIMARY KEY (response, question, position)) WITHOUT ROWID;
CREATE INDEX verdicts_of_a_failure ON verdicts (failure, response) WHERE failure IS NOT NULL;
CREATE TABLE labels (
    label INTEGER NOT NULL, response INTEGER NOT NULL, text TEXT NOT NULL, value NUMERIC NOT NULL,
    PRIMARY KEY (label, response)) WITHOUT ROWID;
CREATE TABLE inputs (component INTEGER NOT NULL, question INTEGER NOT NULL, PRIMARY KEY (component, question))
    WITHOUT ROWID;
CREATE TABLE groups (
    number INTEGER PRIMARY KEY, plan TEXT NOT NULL, cells BLOB NOT NULL, rewards TEXT NOT NULL, verdicts BLOB NOT NULL);
CREATE TABLE units (task INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE calls (id TEXT PRIMARY KEY, cost REAL, is_cached INTEGER NOT NULL, fault TEXT) WITHOUT ROWID;
CREATE VIEW present_groups AS SELECT * FROM groups WHERE number IN (SELECT group_number FROM responses)
    ORDER BY number;
CREATE VIRTUAL TABLE queries USING fts5 (text, content = '', detail = 'column');
CREATE VIRTUAL TABLE texts USING fts5 (text, reasons, content = '', detail = 'column');
"""


class RunIndex:
    """The index of one run, in its folder.

    It is a temporary file without a name instead, which goes with the process, where the run's folder may not be
    written, while another viewer has that one open, and where the texts are those of other runs: an erasure in one of
    these does not know of it; and on request.
    """

    def __init__(self, run: Run, *, is_index_temporary: bool = False) -> None:
        self.run = run
        has_own_texts = run.base is None and not run.is_set_of_runs
        self._may_stay = has_own_texts and not is_index_temporary and os.access(run.folder, os.W_OK)
        self._open_database()
        if not self._fits_run():
            self._recreate_index()

    def _open_database(self) -> None:
        connection = _open_index_connection(self.run.folder) if self._may_stay else None
        self._may_stay = connection is not None
        # A temporary file has no name: SQLite makes it for this connection alone.
        self._connection = connection or sqlite3.connect("", check_same_thread=False)
        self._numbers: dict[tuple[str, str], int] = {}
        self._last_decision = ""

    def close(self) -> None:
        self._connection.close()

    def fetch_rows(self, query: str, *values: Any) -> list[Any]:
        return list(self.iter_rows(query, *values))

    def iter_rows(self, query: str, *values: Any) -> Iterator[Any]:
        """Yield the rows as they are read: a hundred thousand and more take much memory at once."""
        return self._connection.execute(query, values)

    def fetch_single_row(self, query: str) -> dict[str, Any]:
        """Return the only row of a query by the names of its columns."""
        rows = self._connection.execute(query)
        (values,) = rows
        return dict(zip([name for name, *_ in rows.description], values, strict=True))

    def names(self, kind: str) -> dict[str, int]:
        """Return the names of a kind with their numbers: agent, component, question, failure, task, or `label.NAME`."""
        rows = self.fetch_rows(
            "SELECT name, number FROM names WHERE kind = ? ORDER BY number", kind
        )
        return dict(rows)

    def neighbours(self, response: str) -> list[Any]:
        """Return the responses before and after one in the order of rewards, the lowest first; None at either end."""
        return self.fetch_rows(
            "SELECT (SELECT name FROM responses WHERE coalesce(reward, 9e999) <= here.key"
            " AND (coalesce(reward, 9e999), number) < (here.key, here.number)"
            " ORDER BY coalesce(reward, 9e999) DESC, number DESC LIMIT 1),"
            " (SELECT name FROM responses WHERE coalesce(reward, 9e999) >= here.key"
            " AND (coalesce(reward, 9e999), number) > (here.key, here.number)"
            " ORDER BY coalesce(reward, 9e999), number LIMIT 1)"
            " FROM (SELECT coalesce(reward, 9e999) AS key, number FROM responses WHERE name = ?) AS here",
            response,
        )

    @property
    def records(self) -> int:
        """The number of records of the ledger that the index contains."""
        ((value,),) = self.fetch_rows("SELECT value FROM facts WHERE name = 'records'")
        return int(value)

    def complete(self, report: ProgressCallback = ignore_progress) -> None:
        """Add what a search, a ranking and a comparison need of new groups; `report` receives numbers of responses.

        It takes twice as long as all the rest: it is done when a run is opened, and not for each page while it grows.
        """
        ((last,),) = self.fetch_rows("SELECT coalesce(max(number), 0) FROM groups")
        self._index_groups_after(self._index_group_texts, last, self.records, report)

    def _index_group_texts(self, group: StoredGroup) -> None:
        number = self._intern_name("task", group.record.key)
        if not self.fetch_rows("SELECT 1 FROM queries WHERE rowid = ?", number):
            task = self.run.task(group.record.key)
            if task is not None:  # else it was erased
                row = number, chat_to_prompt_text(task.query)
                self._insert_index_rows("queries (rowid, text)", [row])
        self._insert_index_rows("texts (rowid, text, reasons)", self._text_rows(group))
        self._index_group_verdicts(group)

    def _text_rows(self, group: StoredGroup) -> Iterator[tuple[int, str, str]]:
        """Yield the text of each response, and the words of its labels and reasons, where they were not erased."""
        texts = self._read_texts(group.record.seq, group.body["size"])
        for trace in group.traces:
            text, notes = _unpack_words(trace.body, texts[trace.record.seq])
            yield trace.record.seq, text or "", notes

    def read_searched_texts(self, response: int, task: str) -> dict[str, str]:
        """Return what a search looks through, by what it is: a response, by its number, its notes, and a task's query.

        They are read from the run: the index itself has no texts, so that an erasure leaves none in it. Those of a
        response are not checked, or a changed one would hide the table, and the page that says what was changed; a note
        is in place of what cannot be read.
        """
        try:
            with reading("the response"):
                body = self.run.source.ledger.record_at(response).content
                text, notes = _unpack_words(body, self._read_texts(response, 0)[response])
                stored_task = self.run.task(task) if task else None
        except TraceMismatch:
            return {"": "cannot be read: it was changed"}
        query = chat_to_prompt_text(stored_task.query) if stored_task else ""
        return {"": text or "", "reason or label": notes, "query": query}

    def _read_texts(self, first: int, count: int) -> Mapping[int, Mapping[int, bytes]]:
        """Return the texts of a record and the `count` next by their place; those that were erased are missing."""
        texts: dict[int, dict[int, bytes]] = defaultdict(dict)
        for text in self.run.source.ledger.stored_texts(first, first + count):
            number, place = divmod(text.id, MAX_TEXTS_PER_RECORD)
            texts[number][place] = text.content
        return texts

    def _label_rows(self, group: StoredGroup) -> Iterator[tuple[int, int, str, str]]:
        """Yield the labels of each response that were not erased; as a value, SQLite makes numbers of their texts."""
        if not any("about" in trace.body for trace in group.traces):
            return
        texts = self._read_texts(group.record.seq, group.body["size"])
        for trace in group.traces:
            labels = unpack_response_metadata(trace.body, texts[trace.record.seq])["labels"]
            if "step" in labels and self.run.header.is_open_ended:
                labels = {"session": 1, **labels}  # the first session is not stored
            for name, value in labels.items():
                text = json_value_to_text(value).strip()
                yield self._intern_name("label", f"label.{name}"), trace.record.seq, text, text

    def _index_group_verdicts(self, group: StoredGroup) -> None:
        verdicts = group.verdicts(self.run.source.survey_without_texts(group.survey))
        packed_group = pack_group(self.run, group, verdicts)
        plan = to_json(packed_group[:-1])
        cells = compress(packed_group.cells, _FASTEST_COMPRESSION_LEVEL)
        # in the order of the packed group, which has their other facts
        responses = sorted(compared_responses(self.run, group, verdicts), key=attrgetter("id"))
        rewards = to_json([response.reward for response in responses])
        items = to_json([list(response.verdicts.items()) for response in responses])
        row = group.record.seq, plan, cells, rewards, compress(items, _FASTEST_COMPRESSION_LEVEL)
        self._connection.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?)", row)

    def iter_packed_groups(self) -> Iterator[PackedGroupVerdicts]:
        """Yield the groups for a ranking, in any thread."""
        query = "SELECT plan, cells FROM present_groups"
        for facts, cells in self.iter_rows(query):
            plan, *others = from_json(facts)
            yield PackedGroupVerdicts._make([DecisionKey(*plan), *others, decompress(cells)])

    def compared_responses(self) -> Iterator[ComparedResponse]:
        """Yield the responses for a comparison, in any thread."""
        query = "SELECT plan, rewards, verdicts FROM present_groups"
        for facts, rewards, compressed_rows in self.iter_rows(query):
            _, task, task_cluster, names, agents, _ = from_json(facts)
            responses = zip(names, agents, from_json(rewards), strict=True)
            for row, (name, agent, reward) in enumerate(responses):
                verdicts = _PackedVerdicts(compressed_rows, row)
                yield ComparedResponse(name, task, agent, reward, verdicts, task_cluster)

    def update(self, report: ProgressCallback = ignore_progress) -> bool:
        """Add the groups that were stored since the last time, and return whether there were any.

        `report` receives the numbers of responses added.
        """
        ledger = self.run.ledger
        ledger.refresh()
        before = self.records
        if ledger.count == before:
            return False
        # The words of erased texts can only be dropped with all others. The traces of a re-scored run refer to groups
        # of its base, and have no numbers to go on from.
        has_erasures = any(self.run.source.ledger.records("erasure", before))
        if has_erasures or (before and self.run.base is not None):
            self._recreate_index()
            before = 0
        # An update that was interrupted has added some of the groups.
        ((last,),) = self.fetch_rows("SELECT coalesce(max(group_number), 0) FROM responses")
        end = ledger.count
        # Names are numbered in this order; groups are stored in the order of their ends.
        with self._connection:
            for record in ledger.records("task", before, end):
                self._intern_name("task", record.key)
        self._index_groups_after(self._add_group, max(last, before), end, report)
        with self._connection:
            self._set_index_property("records", end)
            self._set_index_property("head", ledger.record_at(end).link.hex())
        return True

    def _index_groups_after(
        self,
        add: Callable[[StoredGroup], None],
        after: int,
        up_to_record: int,
        report: ProgressCallback,
    ) -> None:
        """Add the groups whose records have numbers above `after` and up to `up_to_record`, some in each
        transaction."""
        if self.run.base is None:
            groups = self._read_groups(after, up_to_record)
        else:
            groups = iter(()) if after else read_stored_groups(self.run)
        while batch := list(islice(groups, _GROUPS_PER_BATCH)):
            with self._connection:
                for group in batch:
                    add(group)
            report(sum(len(group.traces) for group in batch))

    def _read_groups(self, after: int, up_to_record: int) -> Iterator[StoredGroup]:
        """Yield the groups as they were stored, with those that are replaced, but for any that cannot be read."""
        for record in self.run.ledger.records("group", after, up_to_record):
            try:
                yield read_stored_group(self.run, record)
            except TraceMismatch as error:
                self._set_index_property("fault", str(error))

    @property
    def fault(self) -> str:
        """The record for which a group is missing in the index, since it cannot be read; empty without one."""
        ((value,),) = self.fetch_rows("SELECT max(value) FROM facts WHERE name = 'fault'")
        return value or ""

    def _fits_run(self) -> bool:
        try:
            facts = dict(self.fetch_rows("SELECT name, value FROM facts"))
        except sqlite3.DatabaseError:
            return False
        if facts.get("version") != INDEX_VERSION or facts.get("run") != self.run.id:
            return False
        if "fault" in facts:  # which may be mended
            return False
        records = facts["records"]
        if records > self.run.ledger.count:
            return False
        return not records or self.run.ledger.record_at(records).link.hex() == facts["head"]

    def _recreate_index(self) -> None:
        self._connection.close()
        if self._may_stay:
            run_folder.discard_index(self.run.folder)
        self._open_database()
        with self._connection:
            self._connection.executescript(_CREATE_TABLES_SQL)
            for name, value in (("version", INDEX_VERSION), ("run", self.run.id), ("records", 0)):
                self._set_index_property(name, value)

    def _set_index_property(self, name: str, value: Any) -> None:
        self._connection.execute("REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _intern_name(self, kind: str, name: str) -> int:
        number = self._numbers.get((kind, name))
        if number is None:
            self._connection.execute(
                "INSERT OR IGNORE INTO names (kind, name) VALUES (?, ?)", (kind, name)
            )
            query = "SELECT number FROM names WHERE kind = ? AND name = ?"
            ((number,),) = self.fetch_rows(query, kind, name)
            self._numbers[kind, name] = number
        return number

    def _add_group(self, group: StoredGroup) -> None:
        task = self._intern_name("task", group.record.key)
        if group.body.get("again"):  # infrastructure had failed: it replaces the one before it
            self._drop_earlier_groups(task, group)
        survey = self.run.source.survey_without_texts(group.survey)
        unit = unit_name_of_task(self.run, group.record.key)
        self._connection.execute("REPLACE INTO units VALUES (?, ?)", (task, unit))
        questions = {}
        for question in survey.questions:
            # The score of verdicts about a whole response is a figure of it: a column of the table.
            kind = "question" if is_about_whole_response(question) else "other question"
            questions[question.id] = self._intern_name(kind, question.id)
        self._index_component_inputs(group.decision, questions)
        numbers = list(questions.values())
        traces = group.traces
        self._insert_index_rows(
            "responses",
            [self._response_row(task, group, trace, survey.questions) for trace in traces],
        )
        self._insert_index_rows(
            "components", chain.from_iterable(map(self._component_rows, traces))
        )
        gate_rows = (
            (self._intern_name("gate", name), trace.record.seq, lost)
            for trace in traces
            for name, lost in trace.gate_losses.items()
        )
        self._insert_index_rows("gates", gate_rows)
        self._insert_index_rows("labels", self._label_rows(group))
        values = values_by_question(
            self.run.decision(group.decision),
            survey.questions,
            [trace.response_id for trace in traces],
            lambda: group.verdicts(survey),
        )
        indices = {name: index for index, name in enumerate(questions)}
        # What counts of several verdicts on a question, for each response; SQLite stores NaN as NULL.
        scores = {indices[name]: column.tolist() for name, column in values.items()}
        verdicts = []
        for row, trace in enumerate(traces):
            counted_scores = {index: column[row] for index, column in scores.items()}
            verdicts.append(self._verdict_rows(trace, numbers, counted_scores))
        self._insert_index_rows("verdicts", chain.from_iterable(verdicts))
        bodies = self.run.task_record(group.record.key).content, *(trace.body for trace in traces)
        contents = chain.from_iterable(body.get("calls", ()) for body in bodies)
        # Several responses may share a call, under enough of its digest to tell it apart.
        call_rows = []
        for call in map(Call.model_validate, contents):
            is_kept = source_of_reply(self.run, call) in ("cached", "carried")
            call_rows.append((call.id[:24], call.cost, is_kept, call.fault))
        self._insert_index_rows("calls", call_rows)

    def _insert_index_rows(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert the rows of a group into a table, but for those that it has: calls that several responses share."""
        rows = list(rows)
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)

    def _index_component_inputs(self, decision: str, questions: Mapping[str, int]) -> None:
        """Note which questions the components of a decision are made from."""
        if decision == self._last_decision:  # most groups of a run share one
            return
        self._last_decision = decision
        rows = []
        for spec in self.run.decision(decision).specs:
            component = self._intern_name("component", spec.name)
            for name in spec.questions:
                if name in questions:
                    rows.append((component, questions[name]))
        self._insert_index_rows("inputs", rows)

    def _drop_earlier_groups(self, task: int, group: StoredGroup) -> None:
        name = group.body.get("phase"), group.body["step"]
        ledger = self.run.source.ledger
        query = "SELECT DISTINCT group_number FROM responses WHERE task = ?"
        for (number,) in self.fetch_rows(query, task):
            body = ledger.record_at(number).content
            if (body.get("phase"), body["step"]) != name:
                continue
            members = "SELECT number FROM responses WHERE group_number = ?"
            for table in ("components", "gates", "labels", "verdicts"):
                statement = f"DELETE FROM {table} WHERE response IN ({members})"
                self._connection.execute(statement, (number,))
            self._connection.execute("DELETE FROM responses WHERE group_number = ?", (number,))

    def _response_row(
        self,
        task: int,
        group: StoredGroup,
        trace: TraceWithoutTexts,
        questions: Sequence[Question],
    ) -> tuple[Any, ...]:
        verdicts = list(_verdicts_not_superseded(trace))
        calls = trace.body.get("calls", ())
        costs = [call["cost"] for call in calls if call.get("cost") is not None]
        return (
            trace.record.seq,
            group.record.seq,
            task,
            trace.response_id,
            None if trace.agent is None else self._intern_name("agent", trace.agent),
            trace.status,
            trace.value,
            *trace.span,
            trace.best,
            trace.coverage,
            ", ".join(trace.gates),
            sum(verdict.get("status") == "failed" for verdict in verdicts),
            sum(needs_quotation(verdict, questions[verdict["question"]]) for verdict in verdicts),
            sum("unsupported" in verdict for verdict in verdicts),
            len(calls),
            sum(costs) if costs else None,
            largest_disagreement(trace),
            trace.current_run_record.at,
        )

    def _component_rows(self, trace: TraceWithoutTexts) -> Iterator[tuple[Any, ...]]:
        for name in trace.names:
            judged, counted_value = trace.component(name)
            yield self._intern_name("component", name), trace.record.seq, judged, counted_value

    def _verdict_rows(
        self,
        trace: TraceWithoutTexts,
        questions: Sequence[int],
        score_by_question_index: Mapping[int, float],
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of verdicts; several on a question have the score that counts, by the question's index."""
        for position, verdict in enumerate(_verdicts_not_superseded(trace)):
            failure = verdict.get("failure")
            yield (
                trace.record.seq,
                questions[verdict["question"]],
                position,
                score_by_question_index.get(verdict["question"], verdict.get("score")),
                None if failure is None else self._intern_name("failure", " ".join(failure)),
                verdict.get("turn"),
                verdict.get("gated_by"),
            )


def _unpack_words(body: StoredBody, texts: Mapping[int, bytes]) -> tuple[str | None, str]:
    """Return the text of a stored response, None if it was erased, and its labels and reasons, a line each."""
    labels = unpack_response_metadata(body, texts)["labels"]
    notes = [json_value_to_text(value) for value in labels.values()]
    for verdict in body["verdicts"]:
        content = texts.get(verdict.get("text", -1))
        if content is not None:
            notes.append(from_json(content).get("reason", ""))
    return unpack_response_text(body, texts), "\n".join(notes)


def _verdicts_not_superseded(trace: TraceWithoutTexts) -> Iterator[JsonMapping]:
    """Yield the verdicts of a trace; those that another judge's superseded count nowhere."""
    return (verdict for verdict in trace.body["verdicts"] if not verdict.get("superseded"))


@lru_cache(maxsize=32)
def _unpack_verdicts(compressed_rows: bytes) -> list[dict[ComparedVerdictKey, SampleMeanVerdict]]:
    """Return the verdicts on each response of a group; the last groups are kept, since each response is wanted."""
    return [
        {
            ComparedVerdictKey(question, tuple(responses), *judge): SampleMeanVerdict(*judged)
            for (question, responses, *judge), judged in row
        }
        for row in from_json(decompress(compressed_rows))
    ]


class _PackedVerdicts(Mapping[ComparedVerdictKey, SampleMeanVerdict]):
    """The verdicts on a response in the bytes of its group, in a twentieth of the memory of a dict."""

    __slots__ = ("_packed_bytes", "_row")

    def __init__(self, compressed_rows: bytes, row: int) -> None:
        self._packed_bytes = compressed_rows
        self._row = row

    @property
    def _verdicts(self) -> dict[ComparedVerdictKey, SampleMeanVerdict]:
        return _unpack_verdicts(self._packed_bytes)[self._row]

    def __getitem__(self, verdict_key: ComparedVerdictKey) -> SampleMeanVerdict:
        return self._verdicts[verdict_key]

    def __iter__(self) -> Iterator[ComparedVerdictKey]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def items(self) -> ItemsView[ComparedVerdictKey, SampleMeanVerdict]:
        return self._verdicts.items()


def _open_index_connection(folder: Path) -> sqlite3.Connection | None:
    """Open the index in a folder for this process alone; None if another one has it open."""
    path = folder / run_folder.INDEX_FILE
    create_private_file(path)  # SQLite's other files get its permissions
    # The thread of the rankings reads, too; SQLite lets one of them in at a time, for a row.
    connection = sqlite3.connect(path, timeout=0.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # what is lost is made again
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError:
        connection.close()
        return None
    except sqlite3.DatabaseError:
        pass  # no index, which is found when it is read
    return connection
