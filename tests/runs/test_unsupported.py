"""Runs whose judge misquotes: the second request and its reply are stored and not repeated."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph import RecordedVerdict
from jurygraph.errors import BudgetExceeded, InputError
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.reports.summary import count_findings, count_trace_findings
from jurygraph.runs.run import Run
from jurygraph.studies.judgements import read_judgements
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import run_overview_context
from jurygraph.viewer.report import render_response_report, render_run_report
from tests.cli.conftest import run_command
from tests.models.judge_scripts import quotable, requested_items, response_in
from tests.models.server import Answer, reply_with, run_server
from tests.runs.sample_runs import verify_run, write_tasks
from tests.runs.test_calls import (
    judge_config,
    read_rewards,
    run_session,
    stored_calls,
    tasks_with_rubrics,
)
from tests.runs.workflows.test_rescoring import rescore_run


def misquoting_judge(body: dict[str, Any], number: int) -> Answer:
    """Misquote; after the correction, improve, worsen or fail, depending on the number in the response."""
    is_corrected, text = len(body["messages"]) > 2, response_in(body)
    quotes = (
        quotable(text)
        if is_corrected and "try 0" in text
        else [f"what nobody wrote, {is_corrected}"]
    )
    if is_corrected and "letter 1" in text and "try 1" in text:
        return reply_with("I cannot.")
    one = {"reason": "so it is", "quotes": quotes, "met": True, "probability": 0.75}
    return reply_with(json.dumps(dict.fromkeys(requested_items(body), one)))


def read_verdicts(folder: Path) -> list[RecordedVerdict]:
    with closing(Run.open(folder)) as run:
        return [verdict for trace in run.traces() for verdict in trace.verdicts]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, tasks_with_rubrics(2))


def test_a_run_stores_the_quote_check_and_verifies_without_the_model(
    tasks: Path, tmp_path: Path
) -> None:
    with run_server(misquoting_judge) as server:
        run_session(tmp_path / "run", tasks, judge_config(server))
        assert server.count == len(stored_calls(tmp_path / "run")) == 2 * 2 * 2 * 2
    verify_run(tmp_path / "run")
    with closing(Run.open(tmp_path / "run")) as run:
        outcomes = {
            t.response_id: {(v.status, v.score, v.unsupported) for v in t.verdicts}
            for t in run.traces()
        }
        found = verify_deep(run, lambda count: None)
        read = read_judgements(run)
    good, bad = {("ok", 0.75, None)}, {("ok", 0.0, "worst-case")}
    assert outcomes == {"t0/r0": good, "t0/r1": bad, "t1/r0": good, "t1/r1": bad}
    judged = {
        (name, judgement.status, judgement.score, judgement.counted)
        for judge, judgements in read.judgements_by_judge.items()
        if not judge.is_reward_judge
        for name, judgement in judgements.items()
    }
    assert judged == {
        (f"t{task}/{name}", *outcome)
        for task in range(2)
        for name, outcome in (
            ("r0", ("judged", 0.75, None)),
            ("r1", ("unsupported", None, 0.0)),
        )
    }
    assert (found.recomputed, found.quotations, any(found[2:])) == (2 * 2 * 5, 2 * 5, False)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_run_interrupted_between_two_replies_reuses_the_first(
    tasks: Path, tmp_path: Path, most: int
) -> None:
    with run_server(misquoting_judge) as server:
        run_session(tmp_path / "whole", tasks, judge_config(server))
        whole = server.count
        with pytest.raises(BudgetExceeded):
            run_session(tmp_path / "run", tasks, judge_config(server), max_calls=most)
        assert server.count == whole + most
        run_session(tmp_path / "run", tasks, judge_config(server))
        assert server.count == 2 * whole
    assert read_verdicts(tmp_path / "run") == read_verdicts(tmp_path / "whole")


def test_a_branch_reads_stored_replies_by_another_rule_of_quotations_without_a_request(
    tasks: Path, tmp_path: Path
) -> None:
    """A request asks for several criteria: the first lacks a quotation, and the others have one."""

    def misquote_first(body: dict[str, Any], number: int) -> Answer:
        answers = {}
        for index, item in enumerate(requested_items(body)):
            quotes = quotable(response_in(body)) if index else ["what nobody wrote"]
            answers[item] = {"reason": "so", "quotes": quotes, "met": True, "probability": 0.75}
        return reply_with(json.dumps(answers))

    run, branch = tmp_path / "run", tmp_path / "branch"
    setting = "safety.evidence=preferred"
    with run_server(misquote_first) as server:
        run_session(run, tasks, judge_config(server))
        sent = server.count
        with pytest.raises(InputError, match=f"{run}.*reads the stored replies again"):
            rescore_run(run, tmp_path / "rescored", setting)
        config = {**judge_config(server), "safety": {"evidence": "preferred"}}
        run_session(branch, tasks, config, branch=run)
        assert server.count == sent
        run_session(tmp_path / "anew", tasks, config)
    assert {verdict.score for verdict in read_verdicts(run)} == {0.0, 0.75}
    assert {verdict.score for verdict in read_verdicts(branch)} == {0.75}
    assert {verdict.unsupported for verdict in read_verdicts(branch)} == {None, "stands"}
    assert read_rewards(branch) == read_rewards(tmp_path / "anew")
    verify_run(branch)
    with closing(Run.open(branch)) as opened:
        assert not verify_deep(opened, lambda count: None).transient_failures


@pytest.mark.parametrize("is_mostly", [True, False])
def test_a_run_says_that_most_findings_have_no_quotation(
    tasks: Path, tmp_path: Path, is_mostly: bool
) -> None:
    def misquote_all(body: dict[str, Any], number: int) -> Answer:
        one = {"reason": "so", "quotes": ["nobody wrote"], "met": True, "probability": 0.75}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), one)))

    folder = tmp_path / "run"
    with run_server(misquote_all if is_mostly else misquoting_judge) as server:
        run_session(folder, tasks, judge_config(server))
    warning = "20 of 20 findings had no quotation that counts"
    assert (warning in run_command("show", folder).err) == is_mostly
    with closing(Run.open(folder)) as run, closing(RunIndex(run, is_index_temporary=True)) as index:
        index.update()
        findings = run_overview_context(index)["findings"]
        assert (warning in (findings.warning or "")) == is_mostly
        report = render_run_report(run, index, 3, lambda count: None)
        assert (warning in report) == is_mostly
        assert "safety:" not in report
        assert f"{findings.unsupported} of {findings.quotable} findings" in report
        assert count_trace_findings(run.traces()) == findings


def test_what_a_judge_quotes_of_something_unmet_is_no_finding_that_needs_it(
    tasks: Path, tmp_path: Path
) -> None:
    def judge(body: dict[str, Any], number: int) -> Answer:
        unmet = {"reason": "no", "quotes": quotable(response_in(body)), "met": False}
        return reply_with(
            json.dumps(dict.fromkeys(requested_items(body), unmet | {"probability": 0.1}))
        )

    with run_server(judge) as server:
        run_session(tmp_path / "run", tasks, judge_config(server))
    with closing(Run.open(tmp_path / "run")) as run:
        names = {trace.response_id for trace in run.traces()}
        assert count_trace_findings(run.traces()) == count_findings(run, names) == (0, 0)


def test_an_unsupported_fault_is_shown_with_the_1_that_it_counts(tmp_path: Path) -> None:
    def rude(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.0, met=False, unsupported="worst-case")

    run = tmp_path / "run"
    with jg.Jury(evaluators=[rude], reward={"rude": -0.3}, record=run) as jury:
        jury.score(jg.Task(id="t", query="Write."), [jg.Response(id="r", text="please")])
    assert "0.0000, counts 1  (" in run_command("show", str(run), "--response", "r").out
    with closing(Run.open(run)) as opened_run:
        (row,) = opened_run.to_arrow("verdicts").to_pylist()
        page = render_response_report(opened_run, "r")
    assert (row["score"], row["counts_as"]) == (0.0, 1.0)
    assert "0.0000, counts 1</span>" in page
