"""Every line of `explain` follows from the numbers printed in it, and every what-if from deciding again."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import prod
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jurygraph.decision.decide import compute_rewards
from jurygraph.explanation import Explanation
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentInput, Decision, RecordedVerdict, Trace
from tests.cli.conftest import Command, project, run
from tests.examples import at_most
from tests.explanation.test_sentences import decide, explain, spec, verdict
from tests.models.server import Server
from tests.test_panel_example import NAME, judge

__all__ = ["judge", "project", "run"]

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIGS = {
    "maths": ("maths/tasks.jsonl", "maths/jury.yaml"),
    "macrm": ("maths/tasks.jsonl", "maths/macrm.yaml"),
    "trip": ("group_trip/tasks.jsonl.gz", "group_trip/jury.yaml"),
    "rubric": ("rubric/tasks.jsonl.gz", "rubric/read.yaml"),
    "monitor": ("monitor/tasks.jsonl.gz", "monitor/jury.yaml"),
    "panel": ("panel/tasks.jsonl", "panel/jury.yaml"),
    "reviewers": ("reviewers/tasks.jsonl.gz", "reviewers/jury.yaml"),
}
N = r"-?\d+(?:\.\d+)?"
POINTS = re.compile(
    rf"(?P<indent> *)(?P<word>Lost|Gained) (?P<points>{N}): (?P<penalty>penalty )?(?P<names>.+?)(?:, each)? "
    rf"(?:(?P<native>{N}) on a scale of (?P<low>{N}) to (?P<high>{N})(?: \((?P<on_scale>{N})\))?|"
    rf"(?P<value>{N})(?: of 1)?|(?:not )?met(?:, but its score is not [01]| \({N}\), reduced by what it depends on) "
    rf"\((?P<unsure>{N})\)), "
    rf"weight (?P<weight>{N})(?: × (?P<number>\d+))?(?=[.; ])"
)
PRODUCT = re.compile(rf"; ({N}) = ({N})(?: \({N} on a scale [^()]*\))? × ({N}), by ([^()]+ λ {N})")
PARENT = re.compile(rf"(?: at ({N})| not judged), λ ({N})(?:;|$)")
SCALE = re.compile(rf"Scale: ({N}) × ({N}) = ({N})\.")
HALF = 0.5e-4  # of the last decimal that is printed
ROUNDED = Decimal("0.00005")


def ends(number: str) -> tuple[float, float]:
    """Return the least and the greatest number that is printed like this; the weights here have few decimals."""
    return float(number) - HALF, float(number) + HALF


def product_ends(factors: Sequence[tuple[float, float]]) -> tuple[float, float]:
    low, high = 1.0, 1.0
    for factor in factors:
        corners = [first * second for first in (low, high) for second in factor]
        low, high = min(corners), max(corners)
    return low, high


def require_within(found: str, low: float, high: float, units: float, line: str) -> None:
    assert low - units * 1.01e-4 <= float(found) <= high + units * 1.01e-4, line


def check_points(line: str) -> tuple[str, Decimal]:
    """Recompute the points of a line; return its indentation and what it lost."""
    found = POINTS.match(line)
    assert found, line
    if found["native"]:
        native, low, high = (float(found[name]) for name in ("native", "low", "high"))
        assert (native - low) / (high - low) == pytest.approx(
            float(found["on_scale"] or found["native"]), abs=HALF
        ), line
    value = ends(found["on_scale"] or found["native"] or found["value"] or found["unsure"])
    number = float(found["number"] or 1)
    factors = [ends(found["weight"]), (number, number)]
    is_penalty = float(found["weight"]) < 0
    assert is_penalty == bool(found["penalty"]), line
    if found["word"] == "Lost":
        value = (-value[1], -value[0]) if is_penalty else (1.0 - value[1], 1.0 - value[0])
    low, high = product_ends([*factors, value])
    require_within(found["points"], low, high, 1, line)
    assert (number > 1) == (", each " in line), line
    assert found["word"] == "Gained" or float(found["points"]) >= 0, line
    return found["indent"], Decimal(found["points"]) if found["word"] == "Lost" else Decimal(0)


def check_notes(line: str) -> None:
    """Recompute what a line says of how its numbers follow from others."""
    for value, own, factor, text in PRODUCT.findall(line):
        require_within(value, *product_ends([ends(own), ends(factor)]), 0.5, line)
        alone = [
            float(kept) + (1 - float(kept)) * float(held or 0)
            for held, kept in PARENT.findall(text)
        ]
        assert len(alone) == text.count("; ") + 1, line
        assert prod(alone) - 3e-4 <= float(factor) <= min(alone) + 2e-4 or factor == "1", line
    for before, factor, after in SCALE.findall(line):
        assert float(after) == pytest.approx(
            float(before) * float(factor), abs=1e-4 * float(factor)
        ), line


def check_lines(explanation: Explanation) -> None:
    """Recompute every line from what is printed, and require that printed sums add up but for rounding."""
    term_lost, lost, parts = Decimal(0), [], []
    for line in [*explanation.sentences(), "end"]:
        if not line.startswith("  "):  # the parts of a term end here
            assert not parts or abs(sum(parts) - term_lost) <= (len(parts) + 1) * ROUNDED, line
            parts = []
        if line.strip().startswith(("Lost ", "Gained ")):
            indent, points = check_points(line)
            if indent:
                parts.append(points)
            else:
                term_lost = points
                lost.append(points)
        check_notes(line)
        if line.startswith("Sum: ") or "he sum would be " in line:
            left, _, right = line.rstrip(".").rpartition(" = ")
            best, *summands = re.findall(rf"(?:- )?{N}", left)
            assert [Decimal(one.removeprefix("- ")) for one in summands] == [
                one for one in lost if one
            ], line
            assert abs(Decimal(best) - sum(lost) - Decimal(right)) <= (len(lost) + 2) * ROUNDED, (
                line
            )
    assert lost == sorted(lost, reverse=True)


def check_changes(explanation: Explanation, run: Run) -> None:
    """Decide again for every verdict at 0 and at 1, and require that what-if gives the best of them, once each.

    A score that is given already is no change, and a second change is the other one of both.
    """
    trace = explanation.trace
    group = [scored.trace for scored in run.group_of(trace.task_id)]
    decision, questions = (
        run.decision_of(trace.task_id),
        run.survey_without_texts_of(trace.task_id).questions,
    )
    names, combiners = [one.response_id for one in group], run.load_combiners()
    verdicts = [v for one in group for v in one.verdicts if v.about == one.response_id]

    def value_with(replaced: Sequence[RecordedVerdict], score: float) -> float:
        update = {
            "score": score,
            "met": score > 0,
            "status": "ok",
            "failure": None,
            "confidence": None,
        }
        revised = [v.model_copy(update=update) if v in replaced else v for v in verdicts]
        reward = compute_rewards(decision, questions, names, revised, combiners)[
            names.index(trace.response_id)
        ]
        return float("-inf") if reward.value is None else reward.value

    found = explanation.what_if()
    values = sorted(
        float("-inf") if one.value is None else one.value for one in found if one.kind == "verdict"
    )
    expected = []
    for group_of_samples in verdict_groups(trace):
        scores = {0.0, 1.0}
        recorded_scores = {v.score for v in group_of_samples}
        if len(recorded_scores) == 1 and all(map(counts_as_given, group_of_samples)):
            scores -= recorded_scores
        *others, best = sorted(value_with(group_of_samples, score) for score in scores)
        expected.append(best)
        question = group_of_samples[0].question
        if sum(one.question == question for one in found) > 1:
            expected += others
    assert values == sorted(expected)
    for change in (one for one in found if one.kind == "reward gate"):
        others = tuple(gate for gate in decision.gates if f"{gate.kind} gate" != change.name)
        opened = decision.model_copy(update={"gates": others})
        rewards = compute_rewards(opened, questions, names, verdicts, combiners)
        assert change.value == rewards[names.index(trace.response_id)].value
    assert {one.name for one in found if one.kind == "reward gate"} == {
        f"{gate.kind} gate" for gate in decision.gates
    }


def counts_as_given(verdict: RecordedVerdict) -> bool:
    return verdict.status == "ok" and not (verdict.gated_by or verdict.unsupported)


def verdict_groups(trace: Trace) -> Iterator[list[RecordedVerdict]]:
    groups: dict[tuple[object, ...], list[RecordedVerdict]] = {}
    for v in trace.verdicts:
        if v.status != "not_applicable":
            groups.setdefault((v.question, v.about, v.responses), []).append(v)
    yield from groups.values()


def explanations(run: Run) -> Iterator[Explanation]:
    for trace in run.traces():
        yield run.explain(trace.response_id)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CONFIGS)
def test_lines_and_changes_of_an_example(
    name: str, tmp_path: Path, run: Command, judge: Server
) -> None:
    tasks, config = CONFIGS[name]
    model = ["--model", f"openai-compatible:{judge.url}#{NAME}"] if name == "panel" else []
    done = run(
        "score",
        EXAMPLES / tasks,
        "--config",
        EXAMPLES / config,
        "--out",
        tmp_path / "run",
        "--limit",
        2,
        *model,
    )
    assert done.code == (1 if name == "reviewers" else 0), done.err
    with Run.open(tmp_path / "run") as stored:
        for place, explanation in enumerate(explanations(stored)):
            check_lines(explanation)
            if place < 3:
                check_changes(explanation, stored)


GATED = """
evaluators: [manners.polite, manners.shaky]
reward: {polite: 0.7, shaky: -0.3}
gates:
  - {kind: format, component: polite, below: 0.2}
  - {kind: precision, component: polite, below: 0.5, auxiliary: [shaky], fraction: 0.5}
  - {kind: repetition, component: shaky, above: 0.9}
scale: 3
clip: [-0.5, 1.5]
"""


def test_lines_and_changes_under_gates_scale_and_clip(project: Path, run: Command) -> None:
    (project / "jury.yaml").write_text(GATED, encoding="utf-8")
    assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    with Run.open(project / "run") as stored:
        for explanation in explanations(stored):
            check_lines(explanation)
            check_changes(explanation, stored)
            assert sum("gate: " in line for line in explanation.sentences()) == 3


@settings(max_examples=at_most(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.7, 1.0]), st.sampled_from(["no date", "no name"])),
        min_size=2,
    ),
    st.sampled_from([1.0, 0.4, -0.3, 0.002, 0.00004]),
)
@example([(0.0, "no date")] * 10 + [(0.0, "no name")] * 20, 1.0)
def test_the_parts_of_a_component_add_up_to_it(
    parts: list[tuple[float, str]], weight: float
) -> None:
    verdicts = [
        verdict(f"c{place}", score=score, reason=reason)
        for place, (score, reason) in enumerate(parts)
    ]
    questions = ComponentInput(
        questions=tuple(v.question for v in verdicts), weights=(1.0,) * len(parts)
    )
    component = spec("crit", weight).model_copy(update={"inputs": {"crit": questions}})
    decision = Decision(specs=(component, spec("good", 0.5)))
    check_lines(explain(decide(decision, *verdicts, verdict("good", score=1 / 3)), decision))
