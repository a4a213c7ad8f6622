"""Traces without their texts: they agree with the traces, and a changed record is refused."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.runs.reports.summary import Summary
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import (
    TraceWithoutTexts,
    possible_reward_bounds,
    read_stored_groups,
)
from jurygraph.runs.workflows.rescoring import rescore
from tests.runs.sample_runs import FULL_CONFIG, evaluator_config, make_tasks, score, write_tasks


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which two verdicts failed for different reasons, and one was abstained."""
    folder = tmp_path_factory.mktemp("stored_groups")
    given = make_tasks()
    given[1]["responses"][0]["data"]["same"] = "infrastructure"
    given[2]["responses"][1]["data"]["same"] = "response"
    score(folder / "run", write_tasks(folder, given), FULL_CONFIG)
    return folder / "run"


@pytest.fixture(scope="module")
def rescored(scored: Path) -> Path:
    with closing(Run.open(scored)) as run:
        weights = {**run.config.reward, "tone": -2.0}
        folder = scored.with_name("rescored")
        rescore(run, folder, run.config.model_copy(update={"reward": weights}), lambda count: None)
    return folder


def read_traces(run: Run) -> Iterator[TraceWithoutTexts]:
    return (trace for group in read_stored_groups(run) for trace in group.traces)


@pytest.fixture(params=["scored", "rescored"])
def run(request: pytest.FixtureRequest) -> Run:
    return Run.open(request.getfixturevalue(request.param))


def test_traces_without_texts_agree_with_their_traces(run: Run) -> None:
    found = [
        (
            o.response_id,
            o.agent,
            o.value,
            o.status,
            o.coverage,
            [o.component(name) for name in o.names],
        )
        for o in read_traces(run)
    ]
    assert found == [
        (
            *(t.response_id, t.agent, t.reward.value, t.reward.status, t.reward.coverage),
            [(t.reward.components[term.name], term.value) for term in t.reward.terms],
        )
        for t in run.traces()
    ]
    assert next(read_traces(run)).component("no component") == (None, None)


def test_the_best_reward_is_within_the_clip(run: Run) -> None:
    trace = next(read_traces(run))
    for clip, best in (((-9.0, -8.0), -8.0), ((8.0, 9.0), 8.0)):
        clipped = trace.decision.model_copy(update={"clip": clip})
        assert trace._replace(decision=clipped).best == best


def test_traces_with_and_without_texts_give_the_same_summary(run: Run) -> None:
    summary, traces = Summary(), list(run.traces())
    for group in read_stored_groups(run):
        questions = run.source.survey_without_texts(group.survey).questions
        for o in group.traces:
            texts = partial(run.source.ledger.texts_of_record, o.record)
            summary.add(
                group.record.key, o.response_id, questions, o.body, o.reward, texts, o.names
            )
    verdicts = [
        verdict
        for trace in traces
        for verdict in trace.verdicts
        if verdict.about == trace.response_id
    ]
    counts, failed = (
        summary.to_json()["verdicts"],
        [v.failure for v in verdicts if v.failure and v.status == "failed"],
    )
    assert counts["requested"] == len(verdicts)
    assert counts["judged"] == sum(verdict.status == "ok" for verdict in verdicts)
    assert (summary.responses, counts["failed"]) == (len(traces), len(failed))
    assert {(row.cause, row.kind, row.message) for row in summary.failures} == {
        (failure.cause, failure.kind, failure.message) for failure in failed
    }
    assert {row.message for row in summary.failures} >= {
        "provoked by the response",
        "the server did not answer",
    }


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = replace(body, '\"reward\"', '\"rewurd\"') WHERE kind = 'trace'",
        "UPDATE records SET key = 'other' WHERE kind = 'group'",
        "DELETE FROM records WHERE kind = 'trace' AND seq % 2 = 0",
        "DELETE FROM records WHERE kind = 'task'",
    ],
)
def test_a_changed_record_is_refused(scored: Path, tmp_path: Path, statement: str) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    for file in scored.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    with closing(sqlite3.connect(copy / "run.sqlite")) as database, database:
        database.execute(statement)
    with pytest.raises(TraceMismatch):
        list(read_traces(Run.open(copy)))


def test_every_reward_was_possible_also_where_a_criterion_does_not_apply(tmp_path: Path) -> None:
    weights = {"clear": 1, "kind": 1, "rude": -1}
    rubric = {
        "criteria": [
            {"id": name, "text": f"It is {name}.", "weight": weight}
            for name, weight in weights.items()
        ]
    }
    answers = [{"met@clear": 1.0, "met@kind": 1.0, "met@rude": 0.0}]
    answers.append({"met@clear": 0.0, "met@kind": {"status": "not_applicable"}, "met@rude": 1.0})
    given = [
        {
            "id": f"t{n}",
            "query": "?",
            "rubric": rubric,
            "responses": [{"id": f"r{n}", "text": "a", "data": data}],
        }
        for n, data in enumerate(answers)
    ]
    config = {
        "evaluators": [evaluator_config("met", audience="criterion")],
        "reward": {"rubric": 1.0},
    }
    score(tmp_path / "run", write_tasks(tmp_path, given), config)
    with closing(Run.open(tmp_path / "run")) as run:
        assert [trace.reward.value for trace in run.traces()] == [1.0, -1.0]
        assert possible_reward_bounds(run, run.load_combiners()) == [(-0.5, 1.0), (-1.0, 1.0)]
