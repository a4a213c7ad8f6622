"""Runs over tasks with profiles in text: the read profiles are stored with their calls, and can be edited."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError, ModelError, PlanError
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.reports.bill import CallBill
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from jurygraph.schema.task import PROFILES_FILE_SOURCE
from jurygraph.sources.tasks import profiles_line
from tests.agents.parser import (
    ANN,
    BEN,
    ZOE,
    Script,
    asks_about_tensions,
    constraints_reply,
    fenced_text,
    parser_script,
    tension,
    trip,
)
from tests.agents.parser import settings as config
from tests.models.server import Answer, Server, run_server, status
from tests.runs.sample_runs import (
    REQUESTED,
    evaluator_config,
    open_job,
    scored_session,
    verify_run,
    write_tasks,
)

TENSIONS = [tension(1, 2, "high", "stakeholder_1 loves the sea, and it is dear")]
READS = 3
"""Calls for the profiles of a task: one for each of two stakeholders, and one for their tension."""


def make_profile_tasks(tasks: int = 3, size: int = 2) -> list[dict[str, Any]]:
    found = []
    for t in range(tasks):
        line = trip(ANN, BEN, name=f"t{t}", query=f"Plan weekend number {t}.").model_dump(
            mode="json"
        )
        line["responses"] = [
            {
                "id": f"t{t}/r{r}",
                "text": f"This is plan {r} for weekend {t}.",
                "data": {"kind@ann": 0.25 + r / 2, "kind@ben": r / 4},
            }
            for r in range(size)
        ]
        found.append(line)
    return found


def profile_config(server: Server, **fields: Any) -> dict[str, Any]:
    return {
        **config(server.url, **fields),
        "evaluators": [evaluator_config("kind", audience="stakeholder")],
    }


def score_profiles(folder: Path, *given: Any, **more: Any) -> CallBill:
    """Score in this process and return the bill."""
    with scored_session(folder, *given, **more) as scored:
        return scored.summary.bill


def read_plans(folder: Path) -> dict[str, jg.Plan]:
    with closing(Run.open(folder)) as run:
        return {record.key: run.plan_of(record.key) for record in run.ledger.records("task")}


def read_rewards(folder: Path) -> dict[str, Any]:
    with closing(Run.open(folder)) as run:
        return {trace.response_id: trace.reward.model_dump(mode="json") for trace in run.traces()}


def stored_keys(folder: Path) -> list[str]:
    with closing(Run.open(folder)) as run:
        return list(run.ledger.keys("call"))


def verify_deeply(folder: Path) -> None:
    with closing(Run.open(folder)) as run:
        assert verify_deep(run, lambda count: None).recomputed


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(parser_script(tensions=TENSIONS)) as running:
        yield running


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, make_profile_tasks())


@pytest.fixture
def run(server: Server, tasks: Path, tmp_path: Path) -> Path:
    score_profiles(tmp_path / "run", tasks, profile_config(server))
    return tmp_path / "run"


class TestPlans:
    def test_plans_survive_in_the_run(self, run: Path, server: Server) -> None:
        assert server.count == 3 * READS
        with jg.Jury.from_config(profile_config(server)) as jury:
            for line in make_profile_tasks():
                del line["responses"]
                made = jury.prepare(jg.Task.model_validate(line))
                found = read_plans(run)[made.task_id]
                assert found.digest == made.digest
                assert found.model_dump() == made.model_dump()
        with closing(Run.open(run)) as opened:
            assert {trace.plan_digest for trace in opened.traces()} == {
                one.digest for one in read_plans(run).values()
            }

    def test_a_second_run_reads_profiles_from_the_cache(
        self, tasks: Path, server: Server, tmp_path: Path
    ) -> None:
        cached = profile_config(server, calls={"cache": True})
        first = score_profiles(tmp_path / "first", tasks, cached)
        second = score_profiles(tmp_path / "second", tasks, cached, max_calls=0)
        assert server.count == 3 * READS
        digests = [
            [one.digest for one in read_plans(tmp_path / each).values()]
            for each in ("first", "second")
        ]
        assert digests[0] == digests[1]
        assert read_rewards(tmp_path / "first") == read_rewards(tmp_path / "second")
        assert {
            source: tally.number for source, tally in first.costs_by_source.items() if tally.number
        } == {"sent": 9}
        assert {
            source: tally.number for source, tally in second.costs_by_source.items() if tally.number
        } == {"cached": 9}
        assert stored_keys(tmp_path / "second") == stored_keys(tmp_path / "first")

    def test_calls_that_read_profiles_are_records_of_their_task(
        self, tasks: Path, tmp_path: Path
    ) -> None:
        with run_server(parser_script(tensions=TENSIONS)) as server:
            score_profiles(tmp_path / "run", tasks, profile_config(server))
        with closing(Run.open(tmp_path / "run")) as opened:
            named = [
                call for record in opened.ledger.records("task") for call in record.content["calls"]
            ]
        assert sorted(call["id"] for call in named) == sorted(stored_keys(tmp_path / "run"))
        assert {call["prompt"] for call in named} == {"profile", "tensions"}
        found = verify_run(tmp_path / "run")
        assert (found.traces, found.closed) == (6, True)
        verify_deeply(tmp_path / "run")


def answer_with_failure(answer: Answer, about: str = "number 1") -> Script:
    """Return a model that fails on one task."""
    read = parser_script(tensions=TENSIONS)

    def script(body: dict[str, Any], number: int) -> Answer:
        return (
            answer
            if about in fenced_text(body, "task") and not asks_about_tensions(body)
            else read(body, number)
        )

    return script


AGAIN = "nothing was written; run the same command again"
FAILURES: dict[str, tuple[Answer, type[Exception], str]] = {
    "down": (
        status(503),
        ModelError,
        rf"the profile of stakeholder 'ann' could not be read.*503.*{AGAIN}: it continues",
    ),
    "empty": (
        constraints_reply(),
        PlanError,
        r"no constraint was found in the profile of stakeholder 'ann'",
    ),
}


class TestInterrupted:
    @pytest.mark.parametrize(("answer", "error", "why"), FAILURES.values(), ids=FAILURES)
    def test_an_unreadable_profile_writes_no_run_and_caches_the_others(
        self, tasks: Path, tmp_path: Path, answer: Answer, error: type[Exception], why: str
    ) -> None:
        script = answer_with_failure(answer)
        with run_server(lambda body, number: script(body, number)) as server:
            cached = profile_config(server, calls={"cache": True})
            with pytest.raises(error, match=rf"^tasks\.jsonl, line 2: task 't1': {why}"):
                score_profiles(tmp_path / "run", tasks, cached)
            assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "tasks.jsonl"]
            before, script = server.count, parser_script(tensions=TENSIONS)
            if error is PlanError:
                return  # the reply would be the same again: only a person can mend that
            score_profiles(tmp_path / "run", tasks, cached)
            assert server.count - before == READS, "the others were not asked about again"
        assert verify_run(tmp_path / "run").closed


def write_profiles(
    folder: Path, edit: Callable[[list[dict[str, Any]]], object] = lambda lines: None
) -> Path:
    """Write a PROFILES file with the edited profiles of a run."""
    found = []
    with closing(Run.open(folder)) as run:
        for name, plan in read_plans(folder).items():
            task = run.task(name)
            assert task is not None
            assert plan.profiles is not None
            found.append(json.loads(profiles_line(task, plan.profiles)))
    edit(found)
    return write_tasks(folder.parent, found, "profiles.jsonl")


def change_task(found: list[dict[str, Any]]) -> None:
    found[1]["stakeholders"][0]["constraints"][0]["text"] = "No nuts anywhere."


class TestEditedProfiles:
    def test_unedited_profiles_give_the_same_questions_and_rewards(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        requested = server.count
        score_profiles(
            tmp_path / "again", tasks, profile_config(server), profiles=write_profiles(run)
        )
        assert server.count == requested, "the model read nothing"
        assert read_rewards(tmp_path / "again") == read_rewards(run)
        for name, plan in read_plans(tmp_path / "again").items():
            assert plan.survey == read_plans(run)[name].survey
            assert plan.profiles is not None
            assert set(plan.profiles.by.values()) == {PROFILES_FILE_SOURCE}
        verify_deeply(tmp_path / "again")

    def test_an_edited_task_changes_only_its_own_plan_and_requests(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        score_profiles(
            tmp_path / "old", tasks, profile_config(server), profiles=write_profiles(run)
        )
        edited, calls = write_profiles(run, change_task), server.count
        with pytest.raises(
            InputError,
            match=r"the profiles file is profiles\.jsonl \(\w+\) in the run and .*--branch",
        ):
            score_profiles(tmp_path / "old", tasks, profile_config(server), profiles=edited)
        score_profiles(
            tmp_path / "new",
            tasks,
            profile_config(server),
            branch=tmp_path / "old",
            profiles=edited,
        )
        assert [question for question, _, _ in REQUESTED] == ["kind@ann"] * 2
        assert {response for _, shown, _ in REQUESTED for response in shown} == {"t1/r0", "t1/r1"}
        before, after = read_plans(tmp_path / "old"), read_plans(tmp_path / "new")
        assert [name for name in before if before[name].digest != after[name].digest] == ["t1"]
        assert server.count == calls
        assert verify_run(tmp_path / "new").closed
        verify_deeply(tmp_path / "new")


def test_a_branch_reuses_read_profiles_and_reads_changed_ones(
    run: Path, server: Server, tmp_path: Path
) -> None:
    changed = make_profile_tasks()
    changed[2]["stakeholders"][1]["profile"] = ZOE
    before = server.count
    bill = score_profiles(
        tmp_path / "new",
        write_tasks(tmp_path, changed, "changed.jsonl"),
        profile_config(server),
        branch=run,
    )
    assert server.count - before == 2, "one profile, and what pulls the two apart"
    assert {response for _, shown, _ in REQUESTED for response in shown} == {"t2/r0", "t2/r1"}
    assert {
        source: tally.number for source, tally in bill.costs_by_source.items() if tally.number
    } == {
        "sent": 2,
        "carried": 7,
    }
    old, new = read_plans(run), read_plans(tmp_path / "new")
    assert [name for name in old if old[name].digest != new[name].digest] == ["t2"]
    assert len(stored_keys(tmp_path / "new")) == 2
    assert verify_run(tmp_path / "new").closed
    verify_deeply(tmp_path / "new")


def test_a_branch_of_a_branch_reuses_the_profiles_that_the_first_run_read(
    run: Path, tasks: Path, server: Server, tmp_path: Path
) -> None:
    score_profiles(tmp_path / "one", tasks, profile_config(server), branch=run)
    before = server.count
    score_profiles(tmp_path / "two", tasks, profile_config(server), branch=tmp_path / "one")
    assert server.count == before


class TestForecast:
    def forecast(
        self, folder: Path, tasks: Path, given_config: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        with open_job(folder, tasks, given_config, **more) as (job, stored):
            return asdict(
                asyncio.run(RemainingWorkEstimator(job, stored).forecast(lambda count: None))
            )

    def test_a_forecast_counts_profiles_and_not_what_depends_on_them(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        expected = self.forecast(tmp_path / "run", tasks, profile_config(server))
        assert server.count == 0
        assert (expected["tasks"], expected["responses"], expected["questions"]) == (3, 6, 0)
        assert expected["model"]["expected"]["calls"] == 6, (
            "two for each task; tensions hang on what comes of them"
        )
        assert not (tmp_path / "run").exists()

    def test_known_profiles_are_not_counted_as_calls(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        known: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (profile_config(server, calls={"cache": True}), {}),
            (profile_config(server), {"branch": run}),
            (profile_config(server), {"profiles": write_profiles(run)}),
        ]
        score_profiles(tmp_path / "warming", tasks, known[0][0])
        before = server.count
        for given_config, more in known:
            expected = self.forecast(tmp_path / "new", tasks, given_config, **more)
            assert (expected["questions"], expected["model"]["worst"]["calls"]) == (6, 0)
        assert server.count == before
