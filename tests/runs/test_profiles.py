"""Runs over tasks that tell of stakeholders in text alone: what was read is frozen, kept with its calls, and edited."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import BudgetExceeded, InputError, ModelError, PlanError
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.reports.estimate import Bill
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.branch import Branch
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import apply_settings, rescore
from jurygraph.runs.workflows.session import ScoringSession
from jurygraph.schema.profile import READ_FROM_FILE
from jurygraph.sources import read_work
from jurygraph.sources.profiles import open_profiles, profiles_line
from tests.agents.parser import (
    ANN,
    BEN,
    NEEDS,
    ZOE,
    Script,
    asks_about_tensions,
    fenced,
    needs,
    parsing,
    pull,
    pulls,
    trip,
)
from tests.agents.parser import settings as config
from tests.models.server import Answer, Server, said, serving, slow, status
from tests.runs.made import ASKED, checked, counted, sat, write_tasks

TENSIONS = [pull(1, 2, "high", "stakeholder_1 loves the sea, and it is dear")]
READS = 3
"""Calls for the profiles of a task: one for each of two, one for what pulls them apart."""


def lines(tasks: int = 3, size: int = 2) -> list[dict[str, Any]]:
    found = []
    for t in range(tasks):
        line = trip(ANN, BEN, name=f"t{t}", query=f"Plan weekend number {t}.").model_dump(mode="json")
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


def settings(server: Server, **fields: Any) -> dict[str, Any]:
    return {**config(server.url, **fields), "evaluators": [counted("kind", audience="stakeholder")]}


def sit(folder: Path, *given: Any, **more: Any) -> Bill:
    """Score in this process."""
    with sat(folder, *given, **more) as session:
        return session.summary.bill


def plans(folder: Path) -> dict[str, jg.Plan]:
    with closing(Run.open(folder)) as run:
        return {record.key: run.plan_of(record.key) for record in run.ledger.records("task")}


def rewards(folder: Path) -> dict[str, Any]:
    with closing(Run.open(folder)) as run:
        return {trace.response_id: trace.reward.model_dump(mode="json") for trace in run.traces()}


def kept(folder: Path) -> list[str]:
    with closing(Run.open(folder)) as run:
        return list(run.ledger.keys("call"))


def deep(folder: Path) -> None:
    with closing(Run.open(folder)) as run:
        assert verify_deep(run, lambda count: None).recomputed


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(parsing(tensions=TENSIONS)) as running:
        yield running


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, lines())


@pytest.fixture
def run(server: Server, tasks: Path, tmp_path: Path) -> Path:
    sit(tmp_path / "run", tasks, settings(server))
    return tmp_path / "run"


class TestFrozen:
    def test_a_run_gives_back_the_plans_that_were_made(self, run: Path, server: Server) -> None:
        assert server.count == 3 * READS
        with jg.Jury.from_config(settings(server)) as jury:
            for line in lines():
                del line["responses"]
                made = jury.prepare(jg.Task.model_validate(line))
                found = plans(run)[made.task_id]
                assert found.digest == made.digest
                assert found.model_dump() == made.model_dump()
        with closing(Run.open(run)) as opened:
            assert {trace.plan_digest for trace in opened.traces()} == {one.digest for one in plans(run).values()}

    def test_the_second_run_has_it_from_the_cache_whatever_the_model_would_say_by_then(self, tmp_path: Path) -> None:
        changing = count(1)

        def script(body: dict[str, Any], number: int) -> Answer:
            if asks_about_tensions(body):
                return pulls(pull(1, 2, "low" if next(changing) % 2 else "high"))
            return needs(*[{**one, "text": f"{one['text']} {number}"} for one in NEEDS[fenced(body, "profile")]])

        tasks = write_tasks(tmp_path, lines())
        with serving(script) as server:
            cached = settings(server, calls={"cache": True})
            first = sit(tmp_path / "first", tasks, cached)
            asked = server.count
            second = sit(tmp_path / "second", tasks, cached, max_calls=0)
            assert asked == server.count == 3 * READS
            sit(tmp_path / "anew", tasks, settings(server))
        digests = [{name: one.digest for name, one in plans(tmp_path / each).items()} for each in ("first", "second")]
        assert digests[0] == digests[1]
        assert digests[0] != {name: one.digest for name, one in plans(tmp_path / "anew").items()}
        assert rewards(tmp_path / "first") == rewards(tmp_path / "second")
        assert {source: tally.number for source, tally in first.tallies.items() if tally.number} == {"sent": 9}
        assert {source: tally.number for source, tally in second.tallies.items() if tally.number} == {"cached": 9}
        assert kept(tmp_path / "second") == kept(tmp_path / "first")

    def test_plans_stand_in_the_order_of_the_file_whoever_is_answered_first(self, tmp_path: Path) -> None:
        read = parsing(tensions=TENSIONS)

        def script(body: dict[str, Any], number: int) -> Answer:
            return slow(0.3, read(body, number)) if "number 0" in fenced(body, "task") else read(body, number)

        with serving(script) as server:
            sit(tmp_path / "run", write_tasks(tmp_path, lines(5)), settings(server))
            last = fenced(server.requests[-1].body, "task")
        assert last == "Plan weekend number 0.", "the others were asked about meanwhile"
        assert list(plans(tmp_path / "run")) == [f"t{t}" for t in range(5)]


class TestKept:
    def test_every_call_is_a_record_and_its_task_names_it(self, run: Path) -> None:
        with closing(Run.open(run)) as opened:
            named = [call for record in opened.ledger.records("task") for call in record.content["calls"]]
        assert sorted(call["id"] for call in named) == sorted(kept(run))
        assert {call["prompt"] for call in named} == {"profile", "tensions"}

    def test_it_verifies_and_nobody_is_asked_for_that(self, tasks: Path, tmp_path: Path) -> None:
        with serving(parsing(tensions=TENSIONS)) as server:
            sit(tmp_path / "run", tasks, settings(server))
            asked = server.count
            found = checked(tmp_path / "run")
            deep(tmp_path / "run")
            assert server.count == asked
        assert (found.traces, found.closed) == (6, True)
        deep(tmp_path / "run")

    def test_the_bill_has_them_in_the_sitting_that_made_them_and_in_one_that_goes_on(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        priced = settings(server, calls={"prices": {"tiny": {"input": 2.0, "output": 10.0}}})
        first = sit(tmp_path / "run", tasks, priced, limit=2)
        assert (first.tallies["sent"].number, first.tallies["sent"].cost > 0) == (2 * READS, True)
        second = sit(tmp_path / "run", tasks, priced)
        assert second.tallies["sent"].number == 3 * READS == server.count
        assert checked(tmp_path / "run").closed

    def test_equal_profiles_of_equal_tasks_are_one_call(self, server: Server, tmp_path: Path) -> None:
        twins = lines(2)
        twins[1]["query"] = twins[0]["query"]
        sit(tmp_path / "run", write_tasks(tmp_path, twins), settings(server))
        assert server.count == len(kept(tmp_path / "run")) == READS
        assert checked(tmp_path / "run").closed


def failing(answer: Answer, about: str = "number 1") -> Script:
    """A model that reads well, but for one task."""
    read = parsing(tensions=TENSIONS)

    def script(body: dict[str, Any], number: int) -> Answer:
        return answer if about in fenced(body, "task") and not asks_about_tensions(body) else read(body, number)

    return script


AGAIN = "nothing was written; run the same command again"
FAILURES: dict[str, tuple[Answer, type[Exception], str]] = {
    "refused": (
        said("", refusal="no"),
        ModelError,
        rf"the profile of stakeholder 'ann' could not.*refused.*{AGAIN}: it continues",
    ),
    "down": (
        status(503),
        ModelError,
        rf"the profile of stakeholder 'ann' could not be read.*503.*{AGAIN}: it continues",
    ),
    "empty": (needs(), PlanError, r"no constraint was found in the profile of stakeholder 'ann'"),
}


class TestCutShort:
    @pytest.mark.parametrize(("answer", "error", "why"), FAILURES.values(), ids=FAILURES)
    def test_one_profile_that_cannot_be_read_leaves_nothing_and_the_rest_in_the_cache(
        self, tasks: Path, tmp_path: Path, answer: Answer, error: type[Exception], why: str
    ) -> None:
        script = failing(answer)
        with serving(lambda body, number: script(body, number)) as server:
            cached = settings(server, calls={"cache": True})
            with pytest.raises(error, match=rf"^tasks\.jsonl, line 2: task 't1': {why}"):
                sit(tmp_path / "run", tasks, cached)
            assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "tasks.jsonl"]
            before, script = server.count, parsing(tensions=TENSIONS)
            if error is PlanError:
                return  # what it said is what it says again: only a person can mend that
            sit(tmp_path / "run", tasks, cached)
            assert server.count - before == READS, "the others were not asked about again"
        assert checked(tmp_path / "run").closed

    def test_without_a_cache_the_error_does_not_speak_of_one(self, tasks: Path, tmp_path: Path) -> None:
        with serving(failing(status(503))) as server, pytest.raises(ModelError) as error:
            sit(tmp_path / "run", tasks, settings(server))
        assert str(error.value).endswith(f"; {AGAIN}: it continues with the stored replies")

    def test_a_limit_that_is_reached_leaves_nothing_and_the_same_command_with_more_asks_nothing_twice(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        cached = settings(server, calls={"cache": True, "concurrency": 1})
        with pytest.raises(BudgetExceeded, match=r"line \d: task 't\d': .*the limit of 4 calls is reached.*" + AGAIN):
            sit(tmp_path / "run", tasks, cached, max_calls=4)
        assert server.count == 4
        assert not (tmp_path / "run").exists()
        sit(tmp_path / "run", tasks, cached, max_calls=5)
        assert server.count == 3 * READS
        assert checked(tmp_path / "run").closed

    def test_what_is_planned_later_leaves_the_run_as_it_was(self, tasks: Path, tmp_path: Path) -> None:
        with serving(failing(status(503), "number 2")) as server:
            sit(tmp_path / "run", tasks, settings(server), limit=2)
            calls = kept(tmp_path / "run")
            with pytest.raises(ModelError, match="line 3"):
                sit(tmp_path / "run", tasks, settings(server))
        assert kept(tmp_path / "run") == calls
        assert (list(plans(tmp_path / "run")), checked(tmp_path / "run").closed) == (["t0", "t1"], False)

    @pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
    def test_stopped_while_profiles_are_read_it_goes_on_with_what_the_cache_has(
        self, tmp_path: Path, sign: signal.Signals
    ) -> None:
        read = parsing(tensions=TENSIONS)

        def script(body: dict[str, Any], number: int) -> Answer:
            return slow(60, read(body, number)) if held and number == 5 else read(body, number)

        held, tasks = True, write_tasks(tmp_path, lines(4))
        with serving(script) as server:
            cached = settings(server, calls={"cache": True, "concurrency": 1, "timeout": 120.0})
            (tmp_path / "jury.yaml").write_text(json.dumps(cached))
            with scoring(tmp_path, tasks) as process:
                wait(lambda: server.count == 5)
                process.send_signal(sign)
                _, said = process.communicate()
            if sign == signal.SIGINT:
                assert process.returncode == 130
                assert b"nothing was written" in said
                assert b"requests: 5 by this command" in said
                assert not (tmp_path / "run").exists()
            held = False
            sit(tmp_path / "run", tasks, cached)
            assert server.count in (4 * READS + 1, 4 * READS + 2), "but for the one that was under way"
        assert checked(tmp_path / "run").closed
        deep(tmp_path / "run")


def scoring(folder: Path, tasks: Path) -> "subprocess.Popen[bytes]":
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from jurygraph.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "score", str(tasks), "--out", str(folder / "run")]
    root = Path(jg.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, env=environment, cwd=root, stderr=subprocess.PIPE)


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.01)


class TestDecidedAnew:
    def test_a_rescored_run_decides_as_if_it_had_been_scored_so(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        asked = server.count
        with closing(Run.open(run)) as opened:
            other = apply_settings(opened.config, ["weights.temperature=0.5", "weights.beta=0.25"])
            assert rescore(opened, tmp_path / "other", other, lambda count: None).changed == 6
        assert server.count == asked
        anew = settings(server, weights={"temperature": 0.5, "beta": 0.25})
        sit(tmp_path / "anew", tasks, anew)
        assert rewards(tmp_path / "other") == rewards(tmp_path / "anew")
        assert checked(tmp_path / "other").base is not None
        with closing(Run.open(tmp_path / "other")) as opened:
            assert {trace.plan_digest for trace in opened.traces()} == {
                plan.digest for plan in plans(tmp_path / "anew").values()
            }

    def test_uniform_and_back_is_what_it_was(self, run: Path, tmp_path: Path) -> None:
        for old, new, method in (("run", "uniform", "uniform"), ("uniform", "back", "calibrated")):
            with closing(Run.open(tmp_path / old)) as opened:
                other = apply_settings(opened.config, [f"weights.method={method}"])
                rescore(opened, tmp_path / new, other, lambda count: None)
        assert rewards(tmp_path / "back") == rewards(run)
        assert rewards(tmp_path / "uniform") != rewards(run)


def by_hand(folder: Path, edit: Callable[[list[dict[str, Any]]], object] = lambda lines: None) -> Path:
    """A PROFILES file of what a run froze, edited."""
    found = []
    with closing(Run.open(folder)) as run:
        for name, plan in plans(folder).items():
            task = run.task(name)
            assert task is not None
            assert plan.profiles is not None
            found.append(json.loads(profiles_line(task, plan.profiles)))
    edit(found)
    return write_tasks(folder.parent, found, "profiles.jsonl")


def softer(found: list[dict[str, Any]]) -> None:
    found[1]["stakeholders"][0]["constraints"][0] |= {"kind": "soft", "restrictiveness": 0.5}


def told_of_another_task(found: list[dict[str, Any]]) -> None:
    found[1]["stakeholders"][0]["constraints"][0]["text"] = "No nuts anywhere."


class TestByHand:
    def test_as_it_was_read_it_asks_the_same_and_decides_the_same(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        asked = server.count
        sit(tmp_path / "again", tasks, settings(server), profiles=by_hand(run))
        assert server.count == asked, "the model read nothing"
        assert rewards(tmp_path / "again") == rewards(run)
        for name, plan in plans(tmp_path / "again").items():
            assert plan.survey == plans(run)[name].survey
            assert plan.profiles is not None
            assert set(plan.profiles.by.values()) == {READ_FROM_FILE}
        deep(tmp_path / "again")

    @pytest.mark.parametrize(("edit", "asked"), [(softer, ["kind@ann"] * 2), (told_of_another_task, ["kind@ann"] * 2)])
    def test_editing_one_task_changes_its_plan_alone_and_a_branch_asks_its_questions_alone(
        self,
        run: Path,
        server: Server,
        tasks: Path,
        tmp_path: Path,
        edit: Callable[[list[dict[str, Any]]], object],
        asked: list[str],
    ) -> None:
        sit(tmp_path / "old", tasks, settings(server), profiles=by_hand(run))
        edited, calls = by_hand(run, edit), server.count
        with pytest.raises(InputError, match=r"the profiles file is profiles\.jsonl \(\w+\) in the run and .*--branch"):
            sit(tmp_path / "old", tasks, settings(server), profiles=edited)
        sit(tmp_path / "new", tasks, settings(server), branch=tmp_path / "old", profiles=edited)
        assert [question for question, _, _ in ASKED] == asked
        assert {response for _, shown, _ in ASKED for response in shown} == {"t1/r0", "t1/r1"}
        before, after = plans(tmp_path / "old"), plans(tmp_path / "new")
        assert [name for name in before if before[name].digest != after[name].digest] == ["t1"]
        assert server.count == calls
        assert checked(tmp_path / "new").closed
        deep(tmp_path / "new")

    def test_a_run_is_gone_on_with_by_the_same_file_alone(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        profiles = by_hand(run)
        sit(tmp_path / "new", tasks, settings(server), profiles=profiles, limit=1)
        with pytest.raises(InputError, match=r"the profiles file is profiles.jsonl \(\w+\) in the run and none here"):
            sit(tmp_path / "new", tasks, settings(server))
        with pytest.raises(InputError, match=r"the profiles file is none in the run and profiles.jsonl"):
            sit(run, tasks, settings(server), profiles=profiles)
        sit(tmp_path / "new", tasks, settings(server), profiles=profiles)
        assert checked(tmp_path / "new").closed

    def test_once_something_was_erased_its_contents_are_compared(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "new", tasks, settings(server), profiles=by_hand(run), limit=2)
        erase(tmp_path / "new", "response", "t0/r0", "")
        assert b'"sha256":"' not in (tmp_path / "new" / "run.sqlite").read_bytes()
        for edit, task in ((softer, "t1"), (lambda lines: lines.pop(0), "t0")):
            with pytest.raises(
                InputError, match=f"profiles.jsonl has other content for task '{task}' than the run was"
            ):
                sit(tmp_path / "new", tasks, settings(server), profiles=by_hand(run, edit))
        with pytest.raises(InputError, match=r"the profiles file is profiles\.jsonl in the run and none here"):
            sit(tmp_path / "new", tasks, settings(server))
        sit(tmp_path / "new", tasks, settings(server), profiles=by_hand(run))
        assert checked(tmp_path / "new").closed


def test_a_branch_has_what_the_old_run_read_and_reads_what_changed(run: Path, server: Server, tmp_path: Path) -> None:
    changed = lines()
    changed[2]["stakeholders"][1]["profile"] = ZOE
    before = server.count
    bill = sit(tmp_path / "new", write_tasks(tmp_path, changed, "changed.jsonl"), settings(server), branch=run)
    assert server.count - before == 2, "one profile, and what pulls the two apart"
    assert {response for _, shown, _ in ASKED for response in shown} == {"t2/r0", "t2/r1"}
    assert {source: tally.number for source, tally in bill.tallies.items() if tally.number} == {"sent": 2, "carried": 7}
    old, new = plans(run), plans(tmp_path / "new")
    assert [name for name in old if old[name].digest != new[name].digest] == ["t2"]
    assert len(kept(tmp_path / "new")) == 2
    assert checked(tmp_path / "new").closed
    deep(tmp_path / "new")


class TestForecast:
    def foreseen(self, folder: Path, tasks: Path, stated: dict[str, Any], **more: Any) -> tuple[dict[str, Any], int]:
        branch = Branch(more["branch"]) if "branch" in more else None
        with (
            jg.Jury.from_config(stated) as jury,
            read_work(tasks) as work,
            open_profiles(more.get("profiles"), work) as by_hand,
            closing(ScoringSession(folder, jury, work, None, branch, by_hand)) as session,
        ):
            return asyncio.run(session.forecast(lambda count: None)).to_json(), session.tasks_needing_model

    def test_profiles_that_must_be_read_first_are_counted_and_nothing_that_hangs_on_them(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        expected, unread = self.foreseen(tmp_path / "run", tasks, settings(server))
        assert server.count == 0
        assert unread == 3
        assert (expected["tasks"], expected["responses"], expected["questions"]) == (3, 6, 0)
        assert expected["model"]["expected"]["calls"] == 6, "two for each task; tensions hang on what comes of them"
        assert not (tmp_path / "run").exists()

    def test_what_the_cache_a_file_or_another_run_has_is_no_call(
        self, run: Path, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        known: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (settings(server, calls={"cache": True}), {}),
            (settings(server), {"branch": run}),
            (settings(server), {"profiles": by_hand(run)}),
        ]
        sit(tmp_path / "warming", tasks, known[0][0])
        before = server.count
        for stated, more in known:
            expected, unread = self.foreseen(tmp_path / "new", tasks, stated, **more)
            assert (unread, expected["questions"], expected["model"]["worst"]["calls"]) == (0, 6, 0)
        assert server.count == before

    def test_one_of_which_no_constraint_can_be_found_is_an_error_here_too(self, tasks: Path, tmp_path: Path) -> None:
        with serving(failing(needs())) as server:
            cached = settings(server, calls={"cache": True})
            for _ in range(2):
                with pytest.raises(PlanError, match="line 2: task 't1'"):
                    sit(tmp_path / "run", tasks, cached)
            with pytest.raises(PlanError, match="line 2: task 't1'"):
                self.foreseen(tmp_path / "run", tasks, cached)


def test_the_trace_of_a_response_comes_with_what_was_read(run: Path) -> None:
    with closing(Run.open(run)) as opened:
        trace = opened.find_trace("t1/r0")
        assert trace.plan is not None
        assert trace.plan.digest == trace.plan_digest
        assert trace == opened.find_trace("t1/r0")
        assert trace.digest == next(one.digest for one in opened.traces() if one.response_id == "t1/r0")
