"""Evaluators with `isolate: process`: the same verdicts as without, from a process that can be killed."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.schema import RecordedVerdict, Response, TaskView, Verdict

HERE = "tests.agents.test_isolation"
TASK = jg.Task(id="t", query="What is 9 + 9?", reference="18", reviewers=("ann", "bo"))
PATIENCE = 60  # seconds that a test waits before it calls a process stuck
BOMB = "a" * 60 + "!"


def score(*texts: str, derivers: Sequence[str] = (), **use: Any) -> list[RecordedVerdict]:
    """The verdicts on responses with these texts, by one evaluator."""
    config = {"evaluators": [use], "derivers": list(derivers)}
    with jg.Jury.from_config(config) as jury:
        traces = jury.score(
            TASK, [Response(id=f"r{number}", text=text) for number, text in enumerate(texts)]
        )
        return [verdict for trace in traces for verdict in trace.verdicts]


class Letters(jg.Deriver):
    gives = "letters"

    def derive(self, inputs: jg.DeriverInput) -> jg.Material:
        return jg.Material(name="letters", data=len(inputs.response.text))


def counts(task: TaskView, response: Response, most: int = 9) -> Verdict:
    evidence = (jg.Evidence(quote=response.text[:2]),) if response.text else ()
    return Verdict(
        score=min(1.0, len(response.text) / most), reason=f"of {most}", native=1, evidence=evidence
    )


async def counts_later(task: TaskView, response: Response) -> Verdict:
    return counts(task, response)


@jg.evaluator(layer="check", needs=["letters"])
def counts_letters(task: TaskView, response: Response, letters: jg.Material) -> float:
    assert isinstance(letters.data, int)
    return 1 / (1 + letters.data)


@jg.evaluator(layer="check", scope="group")
def ranks(task: TaskView, responses: Sequence[Response]) -> list[Any]:
    return [Verdict(score=1.0), *[0.25] * (len(responses) - 1)]


@jg.evaluator(layer="check", scope="pair")
def longer_text(task: TaskView, first: Response, second: Response) -> bool:
    return len(first.text) > len(second.text)


@jg.evaluator(layer="check", audience="reviewer")
def by_reviewer(task: TaskView, response: Response) -> float:
    return 1.0 if task.member == "ann" else 0.0


def returns_text(task: TaskView, response: Response) -> Any:
    return {"fine": "yes", "odd": 7, "": {"score": 1.0}}[response.text]


def breaks(task: TaskView, response: Response) -> bool:
    if response.text == "exit":
        sys.exit(2)
    raise ValueError("it broke")


@pytest.mark.parametrize(
    "use",
    [
        {"use": f"{HERE}.counts", "params": {"most": 5}, "name": "short"},
        {"use": f"{HERE}:counts_later"},
        {"use": f"{HERE}.counts_letters"},
        {"use": f"{HERE}.ranks"},
        {"use": f"{HERE}.longer_text"},
        {"use": f"{HERE}.by_reviewer"},
        {"use": f"{HERE}.breaks"},
        {"use": "maths.accuracy"},
    ],
    ids=lambda use: use["use"],
)
@pytest.mark.exhaustive
def test_an_isolated_evaluator_gives_the_same_verdicts(use: dict[str, Any]) -> None:
    derivers = [f"{HERE}.Letters"] if "letters" in use["use"] else ()
    texts = ("fine", "The answer is 18", "exit", "")
    assert score(*texts, derivers=derivers, **use, isolate="process") == score(
        *texts, derivers=derivers, **use
    )


@pytest.mark.exhaustive
def test_what_is_no_judgement_is_no_score() -> None:
    failures = [
        verdict.failure
        for verdict in score("fine", "odd", "", use=f"{HERE}.returns_text", isolate="process")
    ]
    assert [failure and failure.kind for failure in failures] == [
        "malformed",
        "malformed",
        "TypeError",
    ]


def bomb(task: TaskView, response: Response) -> bool:
    if response.text == "crash":
        os.abort()
    return re.match(r"(a+)+$", response.text) is None


@pytest.mark.exhaustive
def test_c_code_that_holds_the_gil_is_killed_at_its_limit() -> None:
    began = time.monotonic()
    verdicts = score(
        "fine", BOMB, "fine", "crash", "fine", use=f"{HERE}.bomb", isolate="process", timeout=1
    )
    assert [verdict.failure.kind if verdict.failure else verdict.score for verdict in verdicts] == [
        *(1.0, "time-limit", 1.0),
        *("worker-died", 1.0),
    ]
    assert {verdict.failure.cause for verdict in verdicts if verdict.failure} == {"response"}
    assert "bomb' ran past its time limit of 1 s and was killed" in verdicts[1].reason
    assert time.monotonic() - began < PATIENCE


def shows_surroundings(task: TaskView, response: Response) -> Verdict:
    names = " ".join(name for name in os.environ if name.startswith("PLANTED"))
    return Verdict(score=1.0, reason=f"{names}, input {sys.stdin.read()!r}, process {os.getpid()}")


@pytest.mark.exhaustive
def test_its_process_has_no_secrets_and_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "secret")
    first, second = score("fine", "odd", use=f"{HERE}.shows_surroundings", isolate="process")
    assert first.reason.startswith(", input '', process ")
    assert first.reason == second.reason
    assert not first.reason.endswith(f" {os.getpid()}")


@pytest.mark.exhaustive
def test_a_module_next_to_the_config_is_found(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "import helper\n\ndef one(task, response):\n    return helper.ONE\n"
    )
    (tmp_path / "helper.py").write_text("ONE = 1.0\n")
    (tmp_path / "jury.yaml").write_text("evaluators: [{use: beside.one, isolate: process}]\n")
    with jg.Jury.from_config(tmp_path / "jury.yaml") as jury:
        (trace,) = jury.score(TASK, [Response(id="a", text="a")])
    assert trace.reward.value == 1.0, trace.verdicts[0].reason


class NeedsModel(jg.Evaluator):
    uses_model = True

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("criteria", "uses the config's model, which no other process can reach"),
        (f"{HERE}.NeedsModel", "uses the config's model"),
        ("longer_text", "name it by its dotted path"),
    ],
)
def test_an_evaluator_that_no_other_process_can_run_is_refused(name: str, message: str) -> None:
    with pytest.raises(jg.ConfigError, match=rf"evaluators\[0\]: '{name}'.*{message}"):
        jg.Jury.from_config({"evaluators": [{"use": name, "isolate": "process"}]})


class KnowsAnn(jg.Evaluator):
    predictable_reviewers = ("ann",)

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 1.0


def test_what_an_evaluator_says_of_itself_holds_in_another_process() -> None:
    with jg.Jury.from_config(
        {"evaluators": [{"use": f"{HERE}.KnowsAnn", "isolate": "process"}]}
    ) as jury:
        (isolated,) = jury.evaluators.values()
        assert list(isolated.predictable_reviewers) == ["ann"]


def wait_for_end(process: str) -> None:
    status, end = Path(f"/proc/{process}/stat"), time.monotonic() + PATIENCE
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


class StartsProcess(jg.Evaluator):
    """Starts another process, writes its id to a file, and hangs if the response has that text."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        with self.file.open("a") as opened:
            opened.write(f"{subprocess.Popen(['sleep', str(10 * PATIENCE)]).pid}\n")
        time.sleep(10 * PATIENCE if inputs.response.text == "hang" else 0)
        return 1.0


@pytest.mark.exhaustive
def test_what_its_process_started_ends_with_it(tmp_path: Path) -> None:
    use = {
        "use": f"{HERE}.StartsProcess",
        "params": {"file": str(tmp_path / "started")},
        "timeout": 1,
    }
    verdicts = score("hang", "fine", isolate="process", **use)
    found = [verdict.failure.kind if verdict.failure else verdict.score for verdict in verdicts]
    assert found == ["time-limit", 1.0]
    started = (tmp_path / "started").read_text().split()
    assert len(started) == 2
    for process in started:
        wait_for_end(process)
