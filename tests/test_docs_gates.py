"""The table of gates in docs/reference.md: every row is tried, and acts where and as the table says."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.cli.exit_codes import ExitCode
from tests.cli.conftest import run_command, write_project
from tests.graphs.scripted import criterion, evaluator_use, find_verdict, jury, response, task
from tests.judges.few_shot.reviewers import QUALITY, judge_use, replying_values, score_with
from tests.judges.few_shot.reviewers import task as reviewed_task
from tests.rows import all_rows

_, _, SECTION = (
    (Path(__file__).parent.parent / "docs" / "reference.md").read_text(encoding="utf-8").partition("\n## Gates\n")
)
ROWS = re.findall(r"^\| ([a-z`A-Z ]+) \| .* \|$", SECTION.partition("\n## ")[0], re.MULTILINE)[1:]


def score(*evaluators: Any, about: jg.Task | None = None, text: str = "a text", config: Any = (), **script: Any) -> Any:
    """Return the trace of one response whose questions are answered as scripted."""
    with jury(*evaluators, **dict(config)) as made:
        (trace,) = made.score(about or task(), [response("r", text, **script)])
    return trace


def explained(trace: jg.Trace, text: str) -> bool:
    return any(text in sentence for sentence in trace.explain().sentences())


def gated(kind: str, value: float, **gate: Any) -> jg.Trace:
    """Return the trace of a response with `main` 1 and `other` as given, under one reward gate on `other`."""
    config = {"reward": {"main": 1.0, "other": 0.5}, "gates": [{"kind": kind, "component": "other", **gate}]}
    return score(evaluator_use("main"), evaluator_use("other"), config=config, main=1.0, other=value)


def response_gate() -> None:
    for weight, worst in ((1.0, 0.0), (-1.0, 1.0)):
        about = task(criterion("good"), criterion("other", weight))
        judge = evaluator_use("judge", audience="criterion", layer="model")
        trace = score(judge, evaluator_use("check"), about=about, text=" ", check=1.0, config={"reward": {"rubric": 1}})
        verdict = find_verdict(trace, "judge@other")
        assert (verdict.score, verdict.gated_by, find_verdict(trace, "check").score) == (worst, "empty-response", 1.0)
        assert explained(trace, "Response gate empty-response")
    penalty = evaluator_use("penalty", layer="model")
    trace = score(
        penalty, evaluator_use("check"), text=" ", check=1.0, config={"reward": {"penalty": -0.5, "check": 1}}
    )
    assert (trace.reward.value, trace.reward.components["penalty"]) == (0.5, 1.0)


def format_gate() -> None:
    trace = gated("format", 0.2, below=0.4)
    assert (trace.reward.value, trace.reward.gates[0].before, trace.reward.gates[0].after) == (0.0, 1.1, 0.0)
    assert explained(trace, "other 0.2 < 0.4 → reward 0")
    assert gated("format", 0.4, below=0.4).reward.gates[0].after == 1.2


def precision_gate() -> None:
    trace = gated("precision", 0.2, below=0.5, auxiliary=["main"], fraction=0.5)
    assert (trace.reward.value, trace.reward.gates[0].before) == (0.6, 1.1)
    assert gated("precision", 0.5, auxiliary=["main"], fraction=0.5).reward.value == 1.25


def repetition_gate() -> None:
    config = {
        "reward": {"main": 1.0, "other": 0.0},
        "gates": [{"kind": "repetition", "component": "other", "above": 0.3}],
    }
    for value, reward in ((0.3, 1.0), (0.5, 0.5)):
        trace = score(evaluator_use("main"), evaluator_use("other"), config=config, main=1.0, other=value)
        assert (trace.reward.value, trace.reward.gates[0].after) == (reward, reward)


def screening() -> None:
    second = evaluator_use("second", when={"question": "first", "threshold": 0.5})
    for rule, value in (("left-out", None), ("zero", 0.0)):
        component = {"both": {"inputs": {"second": {"verdicts_of": "second", "if_skipped": rule}}}}
        config = {"reward": {"first": 1.0, "both": 1.0}, "components": component}
        trace = score(evaluator_use("first"), second, config=config, first=0.2, second=1.0)
        verdict = find_verdict(trace, "second")
        assert (verdict.status, verdict.gated_by) == ("not_applicable", "first")
        assert trace.reward.components["both"] == value


def of_two_constraints(met: bool, **weights: Any) -> jg.Trace:
    constraints = [{"id": name, "kind": "hard", "text": name} for name in ("a", "b")]
    people = [{"id": name, "constraints": constraints} for name in ("ann", "bob")]
    use = evaluator_use("needs", audience="stakeholder", subjects=["a", "b"])
    script = {f"needs/{name}@{who}": 1.0 for name in "ab" for who in ("ann", "bob")} | {"needs/b@ann": 1.0 * met}
    config = {"weights": {"method": "uniform", **weights}}
    return score(use, about=task(stakeholders=people), config=config, **script)


def hard_constraint() -> None:
    for cap, utility in ((0.5, 0.25), (0.0, 0.0)):
        trace = of_two_constraints(False, cap=cap)
        assert trace.reward.parts["stakeholders"] == {"ann": utility, "bob": 1.0}
    assert of_two_constraints(True, cap=0.5).reward.parts["stakeholders"]["ann"] == 1.0
    assert of_two_constraints(False).reward.parts["stakeholders"]["ann"] == 0.5


def floor() -> None:
    for least, value in ((0.5, 0.25), (0.2, 0.625)):
        trace = of_two_constraints(False, welfare="egalitarian", floor=least, cap=0.5)
        assert trace.reward.components["stakeholders"] == value
        assert trace.reward.diagnostics["stakeholders"]["least utility"] == 0.25


def prerequisite() -> None:
    about = task(criterion("parent"), criterion("child"), edges=[("parent", "child", "strong")])
    for rule, left in (("gear", 0.2), ("hard-local", 0.0), ("hard-transitive", 0.0), ("flat", 1.0)):
        script = {"met@parent": 0.0, "met@child": 1.0}
        config = {"rubric": {"aggregation": rule}}
        trace = score(evaluator_use("met", audience="criterion"), about=about, config=config, **script)
        assert trace.reward.parts["rubric"]["child"] == pytest.approx(left)


def confidence() -> None:
    settings = {"panel": {"min_confidence": 0.8}, "failure": {"min_coverage": 0.0}}
    traces, _ = score_with(
        replying_values(4, confidence=(50,)),
        judge_use("zero-shot", dimensions=QUALITY),
        reviewed_task("ann"),
        **settings,
    )
    reward = traces[0].reward
    assert (reward.value, reward.diagnostics["zero-shot"]["discarded"], reward.coverage) == (None, 1.0, 0.0)
    assert any("Discarded" in line for line in traces[0].explain().sentences())


def coverage() -> None:
    for least, status in ((0.8, "failed"), (0.5, "degraded")):
        config = {"reward": {"main": 1.0, "other": 1.0}, "failure": {"min_coverage": least}}
        trace = score(evaluator_use("main"), evaluator_use("other"), config=config, main=1.0, other="abstained")
        assert (trace.reward.coverage, trace.reward.status, trace.reward.value is None) == (
            0.5,
            status,
            status == "failed",
        )
        assert any("0.5 of the weight" in note for note in trace.reward.notes)


TRIED: Mapping[str, Callable[[], None]] = {
    "response gate": response_gate,
    "reward gate `format`": format_gate,
    "reward gate `precision`": precision_gate,
    "reward gate `repetition`": repetition_gate,
    "screening": screening,
    "hard constraint": hard_constraint,
    "floor": floor,
    "prerequisite": prerequisite,
    "confidence": confidence,
    "coverage": coverage,
}
AT_THE_END_OF_A_COMMAND = ["error rate", "CI threshold"]


def test_every_row_is_tried() -> None:
    assert [*TRIED, *AT_THE_END_OF_A_COMMAND] == ROWS


@all_rows("name", TRIED)
def test_a_gate_acts_as_its_row_says(name: str) -> None:
    TRIED[name]()


@pytest.mark.exhaustive
def test_gates_at_the_end_of_a_command_change_its_exit_code_alone(tmp_path: Path) -> None:
    responses = [{"id": "salt/a", "text": "salt, please"}, {"id": "salt/b", "text": "crash"}]
    recipe = "evaluators: [manners.polite, manners.shaky]\nreward: {polite: 1, shaky: 0}\n"
    exports, codes = [], []
    for rate in ("0.9", "0.1"):
        tasks = [{"id": "salt", "query": "Ask for the salt.", "responses": responses}]
        project = write_project(tmp_path / rate, tasks, f"{recipe}failure: {{max_error_rate: {rate}}}\n")
        codes.append(run_command("score", project / "tasks.jsonl", "--out", project / "run").code)
        exports.append(run_command("export", project / "run", "--to", "csv").out)
    assert codes == [ExitCode.DONE, ExitCode.INCONCLUSIVE]
    assert exports[0] == exports[1]
    for gate, code in (("n>=0", ExitCode.DONE), ("n<0", ExitCode.SOME_FAILED)):
        compared = run_command("compare", tmp_path / "0.9" / "run", tmp_path / "0.1" / "run", "--gate", gate)
        assert (compared.code, "threshold missed" in compared.err) == (code, code != ExitCode.DONE)
