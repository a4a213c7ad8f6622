"""Files that a judge looks into change: a branch looks again, and a run with the old ones is not gone on with."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.cli.scoring import OpenedJob, score_remaining
from jurygraph.errors import BudgetExceeded, InputError
from jurygraph.graphs.investigate_graph import MAX_INVESTIGATION_STEPS
from jurygraph.runs.reports.estimate import CallEstimate
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from tests.runs.investigations import Investigator, results_in
from tests.runs.sample_runs import (
    open_job,
    plan_and_score,
    score,
    traces_of,
    verify_deeply,
    verify_run,
)


def follow_the_files(request: Any, step: int) -> Any:
    if step == 0:
        look_up = ("look_up", {"table": "prices", "where": {"article": "kettle"}})
        return [look_up, ("read_file", {"path": "note.txt"})]
    price, note = results_in(request)
    return {"quotes": ["A kettle is 29 euros"], "met": "29" in price and "paid" in note}


CONFIG: dict[str, Any] = {
    "workspaces": "files",
    "evaluators": [
        {
            "use": "criteria",
            "params": {"criteria": ["The price is right."]},
            "tools": ["look_up", "read_file"],
        }
    ],
}
TASK = {
    "id": "shop",
    "query": "What is a kettle?",
    "facts": {"tables": {"prices": {"key": ["article"], "file": "prices.csv"}}},
    "responses": [{"id": "a", "text": "A kettle is 29 euros.", "workspace": "a"}],
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files" / "a").mkdir(parents=True)
    write_price(29)
    write_note("paid")
    (tmp_path / "tasks.jsonl").write_text(json.dumps(TASK))
    return tmp_path


def write_price(price: int) -> None:
    Path("prices.csv").write_text(f"article,price\nkettle,{price}\n")


def write_note(text: str) -> None:
    Path("files", "a", "note.txt").write_text(text)


def config() -> dict[str, Any]:
    return {**CONFIG, "model": Investigator(follow_the_files)}


@pytest.mark.parametrize(
    ("change", "reward", "sent"),
    [
        (lambda: None, 0.9, 0),
        (lambda: write_price(35), 0.1, 1),
        (lambda: write_note("due"), 0.1, 1),
    ],
    ids=["nothing", "table", "workspace"],
)
def test_a_branch_looks_again_and_asks_again_where_it_sees_something_else(
    shop: Path, change: Callable[[], None], reward: float, sent: int
) -> None:
    score(shop / "run", shop / "tasks.jsonl", config())
    change()
    again = config()
    scored = score(shop / "new", shop / "tasks.jsonl", again, branch=shop / "run")
    (trace,) = traces_of(shop / "new")
    assert trace.reward.value == reward
    assert len(again["model"].sent) == sent
    assert scored.job.branch is not None
    assert (scored.job.branch.reused, scored.job.branch.requested) == (1 - sent, sent)
    verify_run(shop / "new")
    assert verify_deeply(shop / "new").recomputed == 1


@pytest.mark.parametrize(("price", "calls"), [(29, 0), (35, 1)])
def test_a_forecast_looks_again_and_the_worst_case_has_what_other_results_may_bring(
    shop: Path, price: int, calls: int
) -> None:
    score(shop / "run", shop / "tasks.jsonl", config())
    write_price(price)
    expected = forecast(shop / "new", shop / "tasks.jsonl", config(), shop / "run")
    assert expected.low.calls == calls
    assert (expected.expected.calls > 0) == (calls > 0)
    assert expected.worst.calls == MAX_INVESTIGATION_STEPS + 1  # the last is repaired
    assert expected.from_run == 2 - calls


def test_the_worst_case_of_a_run_that_stopped_counts_no_investigation_twice(shop: Path) -> None:
    before = forecast(shop / "run", shop / "tasks.jsonl", config())
    with (
        pytest.raises(BudgetExceeded),
        open_job(shop / "run", shop / "tasks.jsonl", config(), max_calls=1) as (job, stored),
    ):
        asyncio.run(plan_and_score(job, stored))
    after = forecast(shop / "run", shop / "tasks.jsonl", config())
    assert (after.from_run, after.worst) == (1, before.worst)


def forecast(*arguments: Any) -> CallEstimate:
    with open_job(*arguments) as (job, stored):
        work = asyncio.run(RemainingWorkEstimator(job, stored).forecast(lambda count: None))
    assert work.model is not None
    return work.model


def test_a_branch_of_a_branch_finds_the_replies_of_the_first_run(shop: Path) -> None:
    score(shop / "run", shop / "tasks.jsonl", config())
    for old, new in (("run", "one"), ("one", "two"), ("two", "three")):
        again = config()
        branch = score(shop / new, shop / "tasks.jsonl", again, branch=shop / old).job.branch
        assert branch is not None
        assert (len(again["model"].sent), branch.reused, branch.requested) == (0, 1, 0)
    verify_run(shop / "three")
    assert verify_deeply(shop / "three").recomputed == 1


def test_a_finished_run_with_another_table_is_no_complete_one(shop: Path) -> None:
    score(shop / "run", shop / "tasks.jsonl", config())
    with open_job(shop / "run", shop / "tasks.jsonl", config()) as (_, stored):
        assert stored.is_finished
    write_price(35)
    with (
        pytest.raises(InputError, match=r"facts\.tables\.prices\.file has changed; .*--branch"),
        open_job(shop / "run", shop / "tasks.jsonl", config()),
    ):
        pass


def test_a_complete_run_says_that_nothing_was_looked_up_again(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    score(shop / "run", shop / "tasks.jsonl", config())
    write_note("due")
    with open_job(shop / "run", shop / "tasks.jsonl", config()) as (job, stored):
        score_remaining(OpenedJob(job, stored), asyncio.Runner())
    assert (
        f"looked up again: jurygraph verify {shop / 'run'} --deep does so\n"
        in capsys.readouterr().err
    )


def test_a_plan_made_with_another_table_is_refused(shop: Path) -> None:
    task = jg.Task(**{name: TASK[name] for name in ("id", "query", "facts")})
    with jg.Jury.from_config(config()) as jury:
        plan = jury.prepare(task)
        write_price(35)
        with pytest.raises(InputError, match=r"facts\.tables\.prices\.file has changed"):
            jury.score(task, [jg.Response(id="a", text="29 euros")], plan=plan)
