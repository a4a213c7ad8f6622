"""The index follows its run, and keeps no text that the run has erased."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.runs.reports.summary import compare_failed_rewards
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources.config import apply_settings
from jurygraph.studies.compared_responses import iter_compared_responses
from jurygraph.studies.ranking import AgentRanker
from jurygraph.viewer.index import _CREATE_TABLES_SQL, INDEX_VERSION, RunIndex
from jurygraph.viewer.overview import run_overview_context
from jurygraph.viewer.pages import DisplayedRun
from jurygraph.viewer.table import (
    NO_FAILURE_LABEL,
    TableQuery,
    filter_values_by_field,
    read_table_page,
)
from jurygraph.views.rewards import ResponseSelection
from tests.runs.sample_runs import Outage, make_tasks, score, write_tasks
from tests.studies.figures import means_by_agent
from tests.viewer.conftest import HOSTILE, LETTERS, polite, record


def names(index: RunIndex, **query: str) -> list[str]:
    """Return the responses of all pages of a query, two a page."""
    found = []
    asked = TableQuery(**query)
    while True:
        page = read_table_page(index, asked, rows=2)
        found += [row.response for row in page.rows]
        if not page.following:
            assert page.total == len(found)
            return found
        asked = TableQuery.from_url({**query, "after": page.following})


def test_pages_follow_each_other_in_any_order_and_the_missing_come_last(letters: Path) -> None:
    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        assert index.update()
        assert not index.update()
        stored = {trace.response_id: trace.reward.value for trace in run.traces()}
        assert names(index) == list(stored)
        judged = [name for name, value in stored.items() if value is not None]
        missing = [name for name, value in stored.items() if value is None]
        by_reward = sorted(judged, key=lambda name: stored[name] or 0.0)
        assert names(index, sort="reward") == by_reward + missing
        assert (
            names(index, sort="-reward")
            == sorted(judged, key=lambda name: -(stored[name] or 0.0)) + missing
        )
        assert sorted(names(index, sort="-brief")) == sorted(stored)


def test_a_table_begins_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    """The first task ends last: it alone is asked what depends on another verdict."""
    tasks = make_tasks(tasks=2, size=1)
    for task, same in zip(tasks, (1.0, 0.0), strict=True):
        task["responses"][0]["data"]["same"] = same
    score(tmp_path / "run", write_tasks(tmp_path, tasks))
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        assert [record.key for record in run.ledger.records("group")] == ["t1", "t0"]
        assert names(index) == [trace.response_id for trace in run.traces()] == ["t0/r0", "t1/r0"]


def test_what_does_not_apply_to_a_response_is_not_left_out_of_a_mean(tmp_path: Path) -> None:
    @jg.evaluator(layer="check")
    def signed(task: jg.TaskView, response: jg.Response) -> jg.Verdict | float:
        if response.text == "a note":
            return jg.Verdict.not_applicable("a note has no signature")
        return 1.0

    @jg.evaluator(layer="check")
    def long(task: jg.TaskView, response: jg.Response) -> jg.Verdict | float:
        return jg.Verdict.abstained("I cannot tell") if response.text == "a" else 1.0

    reward = {"signed": 1.0, "long": 0.5}
    failure = {"min_coverage": 0.5}
    folder = tmp_path / "run"
    with jg.Jury(evaluators=[signed, long], reward=reward, failure=failure, record=folder) as jury:
        jury.score(jg.Task(id="t", query="Write."), ["a note", "a", "a letter"])
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        components = run_overview_context(index)["components"]
    assert [tuple(row) for row in components] == [("long", 1.0, 1), ("signed", 1.0, 0)]


def test_the_overview_warns_of_failed_rewards_as_the_run_has_them(tmp_path: Path) -> None:
    @jg.evaluator(layer="check")
    def polite(task: jg.TaskView, response: jg.Response) -> float:
        return len(response.text) % 3 / 10 + (0.5 if "?" in response.text else 0.0)

    @jg.evaluator(layer="check")
    def brief(task: jg.TaskView, response: jg.Response) -> jg.Verdict | float:
        return jg.Verdict.abstain("no end") if "?" in response.text else 1.0

    texts = ["a" * length + end for length in range(1, 7) for end in ("?", ".")]
    reward = {"polite": 0.5, "brief": 0.5}
    with jg.Jury(evaluators=[polite, brief], reward=reward, record=tmp_path / "run") as jury:
        jury.score(jg.Task(id="t", query="Write."), texts)
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        warning = run_overview_context(index)["means_warning"]
        assert warning == compare_failed_rewards(run).warning
    assert warning.startswith(
        "means mislead: they leave out 6 failed rewards, whose mean on polite"
    )


def test_an_unjudged_prerequisite_makes_no_failed_reward_another(tmp_path: Path) -> None:
    """Without it its children count nothing, however they were judged."""

    @jg.evaluator(audience="criterion", layer="check")
    def met(task: jg.TaskView, response: jg.Response) -> jg.Verdict | float:
        assert isinstance(task.about, jg.Criterion)
        is_unknown = task.about.id == "parent" and "?" in response.text
        return jg.Verdict.abstain("no end") if is_unknown else 0.9 + len(response.text) % 3 / 100

    names = ("parent", "one", "two")
    criteria = [jg.Criterion(id=name, text=f"It has {name}.", weight=1.0) for name in names]
    edges = [{"parent": "parent", "child": name, "kind": "strong"} for name in names[1:]]
    task = jg.Task(id="t", query="Write.", rubric={"criteria": criteria, "edges": edges})
    texts = ["a" * length + end for length in range(1, 7) for end in ("?", ".")]
    config = {"evaluators": [met], "rubric": {"aggregation": "hard-local"}}
    with jg.Jury(**config, record=tmp_path / "run") as jury:
        traces = jury.score(task, texts)
    assert {
        trace.reward.components["rubric"] for trace in traces if trace.reward.value is None
    } == {0.0}
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        assert run_overview_context(index)["means_warning"] is None
        assert compare_failed_rewards(run).warning is None


def test_a_value_of_the_failure_rule_is_marked_and_a_grid_may_have_one_more_column(
    letters: Path,
) -> None:
    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        index.update()
        rows = read_table_page(index, TableQuery()).rows
        grid = read_table_page(index, TableQuery(grid="polite", columns="unsupported"))
        filled_in = {row.response: set(row.filled_in) for row in rows if row.filled_in}
    assert filled_in == {"bob/1": {"brief"}}
    assert grid.columns == ["response", "reward", "status", "task", "agent", "unsupported"]
    assert not any(row.filled_in for row in grid.rows)


def test_pages_follow_each_other_by_any_value(tmp_path: Path) -> None:
    texts = ("please come", "come", "please please")
    record(tmp_path / "run", {"line\nfeed": texts, "zoë\u200b": texts, "1": texts})
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        stored = [trace.response_id for trace in run.traces()]
        assert sorted(names(index, sort="task")) == sorted(stored)
        assert sorted(names(index, sort="-response")) == sorted(stored)


def test_a_selection_is_of_words_agents_and_failures(letters: Path) -> None:
    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        index.update()
        assert names(index, search="quixotic") == ["bob/1"]
        assert names(index, search="Write bob") == ["bob/0", "bob/1"]
        for condition in ("question.polite>0.5", "best>0.5 and polite>0.5"):
            assert read_table_page(index, TableQuery(where=[condition])).total == 1
        excerpts = {"": ("", "", "", "quixotic"), "QUIXOTIC": ("", "", "quixotic", "")}
        excerpts["bob"] = ("query", "Write to ", "bob", f". {HOSTILE}")
        for search, excerpt in excerpts.items():
            rows = read_table_page(index, TableQuery(search=search, task="bob")).rows
            assert rows[-1].excerpt == excerpt
        assert names(index, agent="agent 2") == ["ann/2"]
        ((failure, count),) = filter_values_by_field(index)["failure"]
        assert count == 1
        assert names(index, failure=failure) == ["bob/1"]


def test_a_word_that_is_written_without_a_space_after_it_is_found(tmp_path: Path) -> None:
    record(tmp_path / "run", {"ja": ("はい。日本語です", "日本", "arts")})
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        for search, found in {"日本": ["ja/0", "ja/1"], "日本語": ["ja/0"], "art": []}.items():
            assert names(index, search=search) == found
        (row,) = read_table_page(index, TableQuery(search="日本語")).rows
        assert row.excerpt == ("", "はい。", "日本語", "です")


def test_a_response_that_failed_without_a_failed_verdict_is_among_the_failures(
    tmp_path: Path,
) -> None:
    @jg.evaluator(layer="check")
    def unsure(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        if response.text == "unclear":
            return jg.Verdict.abstain("it cannot be told")
        return jg.Verdict(score=1.0)

    with jg.Jury(evaluators=[unsure], record=tmp_path / "run") as jury:
        jury.score(jg.Task(id="eggs", query="How long?"), ["clear", "unclear"])
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        assert filter_values_by_field(index)["failure"] == [(NO_FAILURE_LABEL, 1)]
        assert (
            names(index, failure=NO_FAILURE_LABEL) == names(index, status="failed") == ["eggs@1/2"]
        )


def test_an_index_grows_with_its_run_and_is_made_anew_where_it_does_not_fit(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    record(folder, {"ann": LETTERS["ann"]})
    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        index.update()
        record(folder, {"bob": LETTERS["bob"]})
        assert index.update()
        grown = index.fetch_rows("SELECT * FROM responses ORDER BY number")
    (folder / "index.sqlite").write_bytes(b"no index at all, but longer than nothing")
    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        index.update()
        assert index.fetch_rows("SELECT name, reward FROM responses ORDER BY number") == [
            (row[3], row[6]) for row in grown
        ]


def test_an_index_of_other_tables_has_another_version() -> None:
    """Without one, an index that is there is kept, and lacks a column that is asked for."""
    tables = sha256(_CREATE_TABLES_SQL.encode()).hexdigest()[:16]
    assert (INDEX_VERSION, tables) == (22, "867b34dbfb8954e8")


def test_a_viewer_of_a_growing_run_is_right_and_never_keeps_its_writer_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite can empty its log only while nobody reads: between two batches no read transaction is open."""
    monkeypatch.setattr("jurygraph.viewer.index._GROUPS_PER_BATCH", 1)
    folder = tmp_path / "run"
    tasks = dict.fromkeys(("ann", "bea", "cas"), LETTERS["ann"])
    record(folder, {"ann": LETTERS["ann"]})
    busy: list[int] = []

    def empty_log(count: int) -> None:
        with closing(sqlite3.connect(folder / "run.sqlite")) as writer:
            busy.append(writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])

    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        opened = DisplayedRun(run, index)
        index.update(empty_log)
        record(folder, {name: tasks[name] for name in ("bea", "cas")})
        index.update(empty_log)
        empty_log(0)
        assert busy == [0, 0, 0, 0]
        opened.update()
        assert names(index) == [trace.response_id for trace in run.traces()]
        means = {row.agent: row.mean.value for row in opened.figures["agents"] if row.mean}
        assert means == pytest.approx(means_by_agent(AgentRanker(run)))


def test_a_viewer_of_a_growing_run_pauses_twenty_times_as_long_as_an_update_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    record(folder, {"ann": LETTERS["ann"]})
    times = iter((100.0, 101.0, 120.9, 121.1, 121.2))
    monkeypatch.setattr("jurygraph.viewer.pages.monotonic", lambda: next(times))
    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        opened = DisplayedRun(run, index)
        opened.update()
        record(folder, {"bob": LETTERS["bob"]})
        opened.update()
        assert (opened.figures["responses"], run.tasks_scored) == (3, 1)
        opened.update()
        assert (opened.figures["responses"], run.tasks_scored) == (5, 2)


def test_an_erased_text_is_nowhere_in_the_index(letters: Path) -> None:
    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        index.update()
        index.complete()
    assert b"quixotic" in b"".join(path.read_bytes() for path in letters.glob("index*"))
    erase(letters, "response", "bob/1", "as the author wished")
    with closing(Run.open(letters)) as run, closing(RunIndex(run)) as index:
        index.update()
        assert names(index, search="quixotic") == []
        assert len(names(index)) == 5
    assert b"quixotic" not in b"".join(path.read_bytes() for path in letters.glob("index*"))


def test_a_run_with_the_texts_of_another_one_leaves_no_index(letters: Path, tmp_path: Path) -> None:
    """An erasure in the other one does not know of it."""
    with closing(Run.open(letters)) as run:
        config = apply_settings(run.config, ["scale=2"])
        rescore(run, tmp_path / "other", config, lambda count: None)
    with closing(Run.open(tmp_path / "other")) as run, closing(RunIndex(run)) as index:
        index.update()
        assert len(names(index, search="please")) == 3
    assert not list((tmp_path / "other").glob("index*"))


def test_an_index_that_was_interrupted_goes_on_where_it_was(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.viewer.index._GROUPS_PER_BATCH", 1)

    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    with closing(Run.open(letters)) as run:
        with closing(RunIndex(run)) as index, pytest.raises(KeyboardInterrupt):
            index.update(interrupt)
        with closing(RunIndex(run)) as index:
            added: list[int] = []
            index.update(added.append)
            assert added == [2]
            assert names(index) == [trace.response_id for trace in run.traces()]
            assert names(index, search="Write ann") == ["ann/0", "ann/1", "ann/2"]


@pytest.mark.parametrize("name", ["letters", "rubrics"])
def test_a_comparison_from_the_index_is_that_of_the_runs(
    name: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(name)
    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        index.update()
        index.complete()
        found = [
            response._replace(verdicts=dict(response.verdicts))
            for response in index.compared_responses()
        ]
        # as text, because NaN is not equal to itself
        assert [str(tuple(response)) for response in found] == [
            str(tuple(response)) for response in iter_compared_responses(run)
        ]


def test_a_second_viewer_of_a_run_has_an_index_of_its_own(letters: Path) -> None:
    with (
        closing(Run.open(letters)) as run,
        closing(RunIndex(run)) as first,
        closing(RunIndex(run)) as second,
    ):
        assert first.update()
        assert second.update()
        assert names(first) == names(second)
        assert first.run.folder == second.run.folder
        assert {path.stat().st_mode & 0o777 for path in letters.glob("index*")} == {0o600}
    with (
        closing(Run.open(letters)) as run,
        closing(RunIndex(run, is_index_temporary=True)) as index,
    ):
        index.update()
        assert (
            index.fetch_rows("PRAGMA database_list")[0][2] == ""
        )  # no file that outlives the process


def test_a_group_that_is_scored_again_replaces_the_one_that_infrastructure_failed(
    tmp_path: Path,
) -> None:
    line = Outage()

    folder = tmp_path / "run"
    task = jg.Task(id="eggs", query="How long?")
    with jg.Jury(evaluators=[line.evaluator()], record=folder) as jury:
        jury.score(task, ["ten minutes"], step=1)
        with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
            index.update()
            index.complete()
            assert [facet.value for facet in filter_values_by_field(index)["failure"]]
            line.is_down = False
            jury.score(task, ["ten minutes"], step=1)
            index.update()
            assert names(index, search="how long") == ["eggs@1/1"]
            assert filter_values_by_field(index)["failure"] == []
            assert index.fetch_rows("SELECT judged FROM components") == [(1.0,)]
            index.complete()
            index.complete()
            assert means_by_agent(AgentRanker(run, index.iter_packed_groups())) == {"": 1.0}
            assert [response.reward for response in index.compared_responses()] == [1.0]


def test_labels_are_columns_choices_and_words(tmp_path: Path) -> None:
    values: list[Any] = [2, 10, "ten and a bit", True, 0.5, {"of": [1]}, None]
    responses = [
        jg.Response(
            id=f"r{number}", text="well", labels={"step": value, "by": f"hand {number % 2}"}
        )
        for number, value in enumerate(values)
    ]
    with jg.Jury(evaluators=[polite], record=tmp_path / "run") as jury:
        jury.score(
            jg.Task(id="letters", query="Write"), [*responses, jg.Response(id="bare", text="well")]
        )
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        facets = filter_values_by_field(index)
        assert facets["label.by"] == [("hand 0", 4), ("hand 1", 3)]
        in_order = ["0.5", "2", "10", "null", "ten and a bit", "true", '{"of": [1]}']
        assert [facet.value for facet in facets["label.step"]] == in_order
        for text in in_order:
            query = TableQuery.from_url({"label.step": text, "columns": "label.by"})
            selected = ResponseSelection(label=[f"step={text}"])
            shown = list(selected.select(run, lambda trace: trace.response_id))
            assert [row.response for row in read_table_page(index, query).rows] == shown
            assert TableQuery.from_url(dict(parse_qsl(query.to_url()))) == query
        assert (
            TableQuery.from_url({"label.step": ""}) == TableQuery()
        )  # any value, as the form has it
        by_step = names(index, sort="label.step")
        assert by_step[:3] == ["r4", "r0", "r1"]
        assert by_step[-1] == "bare"
        assert names(index, sort="-label.step")[-2:] == ["r4", "bare"]
        assert names(index, search="hand ten") == ["r2"]
        for conditions, number in (
            (["label.step=2"], 1),
            (["polite<0.3", "label.step=2"], 1),
            (["polite<0.3 and label.by=hand 1 and label.step=10"], 1),
            (["label.by=hand 0 and label.step=ten and a bit"], 1),
            (["label.step=ten and a bit"], 1),
            (["label.step=2 and polite<0.3"], 1),
            (["reward>=1"], 0),
        ):
            selected = ResponseSelection(where=conditions)
            shown = list(selected.select(run, lambda trace: trace.response_id))
            assert len(shown) == number
            rows = read_table_page(index, TableQuery.from_url({}, conditions)).rows
            assert [row.response for row in rows] == shown
        for condition, message in (("reward", "is no condition"), ("rewrd<1", "mean reward")):
            with pytest.raises(InputError, match=message):
                read_table_page(index, TableQuery(where=[condition]))
        for query in ({"label.stpe": "2"}, {"columns": "label.stpe"}):
            with pytest.raises(InputError, match=r"did you mean label\.step"):
                read_table_page(index, TableQuery.from_url(query))
    erase(tmp_path / "run", "response", "r2", "as the author wished")
    with closing(Run.open(tmp_path / "run")) as run, closing(RunIndex(run)) as index:
        index.update()
        assert "ten" not in [facet.value for facet in filter_values_by_field(index)["label.step"]]
