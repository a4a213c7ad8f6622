"""A panel of reviewers' judges: who of them is heard, what they say together, and how far apart they are."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury, Plan, PlanError, Reward, ScoreMatrix, Task, Verdict
from jurygraph.decision.decide import compute_rewards
from jurygraph.errors import ConfigError
from jurygraph.graphs.routing import make_stamp
from jurygraph.judges.panel import Panel
from jurygraph.schema import ComponentInput, RecordedVerdict
from tests.graphs.cast import BY_RESPONSE, BY_US, CANNOT_TELL
from tests.judges.few_shot.reviewing import QUALITY, saying, scored, task, use

JUDGE = "zero-shot"
COMBINERS = {"panel": Panel()}
OUT = RecordedVerdict(status="not_applicable", gated_by="gate")
STOPPED = RecordedVerdict(score=0.0, met=False, gated_by="empty-response")
STAGED: Mapping[str, Any] = {
    "depth": {"text": "How deep it is.", "scale": [1, 4]},
    "reach": {"text": "How far it reaches.", "scale": [1, 4], "above": {"depth": 2}},
}

# A panel, and what its judges say


def plan(*reviewers: str, samples: int = 3, dimensions: Mapping[str, Any] = QUALITY, **settings: Any) -> Plan:
    """The plan of a judge for each of these reviewers; nobody is asked."""
    judge = {"use": JUDGE, "params": {"dimensions": dimensions, "samples": samples}}
    config = {"model": "openai-compatible:http://127.0.0.1:9/v1#tiny", "evaluators": [judge], **settings}
    with Jury.from_config(config) as jury:
        return jury.prepare(task(*reviewers))


def said(score: float, confidence: float | None = 0.9) -> Verdict:
    return Verdict(score=score, confidence=confidence)


def rewarded(of: Plan, verdicts: Mapping[str, Sequence[Verdict]]) -> Reward:
    """The reward of one response; verdicts by question, one for each sample, or one for a question left out."""
    by_id = {question.id: question for question in of.survey.questions}
    stamped = [
        make_stamp(by_id[name], of.survey.views[by_id[name].view])(
            verdict, "r", () if verdict is OUT else ("r",), sample
        )
        for name, given in verdicts.items()
        for sample, verdict in enumerate(given)
    ]
    (reward,) = compute_rewards(of.decision, of.survey.questions, ["r"], stamped, COMBINERS)
    return reward


def asked(who: str, dimension: str = "quality") -> str:
    return f"{JUDGE}/{dimension}@{who}"


def heard(*given: Verdict, **panel: Any) -> Reward:
    """What one judge's samples come to; however little of it is heard, it is the reward."""
    of = plan("ann", samples=len(given), panel=panel, failure={"min_coverage": 0.0})
    return rewarded(of, {asked("ann"): given})


def figures(reward: Reward) -> Mapping[str, float]:
    return reward.diagnostics[JUDGE]


# A majority of all seats


VOTES: Mapping[str, tuple[Sequence[Verdict], float | None]] = {
    "all agree": ([said(0.5)] * 3, 0.5),
    "two of three": ([said(0.5), said(1.0), said(0.5)], 0.5),
    "all differ": ([said(0.0), said(0.5), said(1.0)], None),
    "half is no majority": ([said(0.5), said(0.5), said(1.0), said(0.25)], None),
    "two of three, one abstains": ([said(0.5), CANNOT_TELL, said(0.5)], 0.5),
    "one of three, two abstain": ([said(0.5), CANNOT_TELL, CANNOT_TELL], None),
    "one against one, one abstains": ([said(0.5), said(0.75), CANNOT_TELL], None),
    "two of four, two abstain": ([said(0.5), said(0.5), CANNOT_TELL, CANNOT_TELL], None),
    "three of five, two fail": ([said(0.5), BY_US, said(0.5), BY_RESPONSE, said(0.5)], 0.5),
    "a failure keeps its seat too": ([said(0.5), said(0.5), BY_US, BY_US], None),
    "nobody votes": ([CANNOT_TELL] * 3, None),
    "one alone": ([said(0.25)], 0.25),
    "a majority for nothing": ([said(0.0), said(0.0), said(1.0)], 0.0),
}


@pytest.mark.parametrize(("given", "value"), VOTES.values(), ids=VOTES)
def test_more_than_half_of_all_judges_must_agree(given: Sequence[Verdict], value: float | None) -> None:
    reward = heard(*given)
    assert reward.value == value
    assert reward.coverage == (0.0 if value is None else 1.0)
    divided = value is None and any(one.status == "ok" for one in given)
    assert figures(reward)["without a majority"] == float(divided)


votes = st.sampled_from([said(0.0), said(0.5), said(1.0), said(1.0, 0.3), CANNOT_TELL, BY_US])


@given(st.lists(votes, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_a_majority_is_that_of_those_who_are_sure_and_hangs_on_no_order(given: list[Verdict], random: Any) -> None:
    of = PLANS[len(given)]
    reward = rewarded(of, {asked("ann"): given})
    counted = [one.score for one in given if one.status == "ok" and (one.confidence or 0) >= 0.8]
    winners = [score for score in set(counted) if 2 * counted.count(score) > len(given)]
    assert reward.value == (winners[0] if winners else None)
    turned = list(given)
    random.shuffle(turned)
    assert rewarded(of, {asked("ann"): turned}).value == reward.value


PLANS = {size: plan("ann", samples=size, failure={"min_coverage": 0.0}) for size in range(2, 6)}


def test_without_a_majority_there_is_no_credit_but_a_wider_range() -> None:
    reward = heard(said(0.5), said(1.0), said(0.0))
    assert (reward.value, reward.status, reward.range) == (None, "failed", (0.0, 1.0))
    assert reward.counts.judged == 3


# Confidence


def test_who_is_not_sure_is_discarded_and_counted() -> None:
    reward = heard(said(0.5), said(0.5), said(1.0, 0.79))
    assert (reward.value, figures(reward)["discarded"]) == (0.5, 1.0)
    assert (reward.counts.total, reward.counts.judged) == (3, 3)


def test_a_discarded_verdict_still_counts_in_the_size_of_the_panel() -> None:
    reward = heard(said(0.5), said(1.0, 0.5), said(1.0, 0.5))
    assert (reward.value, figures(reward)["discarded"], figures(reward)["without a majority"]) == (None, 2.0, 1.0)


@pytest.mark.parametrize(("confidence", "value"), [(0.8, 0.5), (0.7999, None), (1.0, 0.5), (0.0, None), (None, 0.5)])
def test_a_confidence_at_the_threshold_suffices_and_none_counts_as_sure(
    confidence: float | None, value: float | None
) -> None:
    assert heard(said(0.5, confidence)).value == value


def test_a_gate_that_stopped_a_response_is_never_unsure() -> None:
    reward = heard(STOPPED)
    assert (reward.value, figures(reward)["discarded"]) == (0.0, 0.0)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), min_size=3, max_size=3))
def test_at_confidence_0_every_judge_counts(given: list[tuple[float, float]]) -> None:
    reward = rewarded(ALL_HEARD, {asked("ann"): [said(*one) for one in given]})
    assert "discarded" not in figures(reward)
    assert reward.value == pytest.approx(sum(score for score, _ in given) / 3)


ALL_HEARD = plan("ann", panel={"confidence": 0.0, "reduce": "mean"})


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), min_size=3, max_size=3), st.floats(0, 1))
def test_discarded_verdicts_are_below_the_threshold(given: list[tuple[float, float]], threshold: float) -> None:
    stated = {"confident": threshold, "reduce": None}
    (spec,) = ALL_HEARD.decision.specs
    inputs = {name: ComponentInput.model_validate({**one.model_dump(), **stated}) for name, one in spec.inputs.items()}
    decision = ALL_HEARD.decision.model_copy(update={"specs": (spec.model_copy(update={"inputs": inputs}),)})
    reward = rewarded(
        ALL_HEARD.model_copy(update={"decision": decision}), {asked("ann"): [said(*one) for one in given]}
    )
    found = reward.diagnostics.get(JUDGE, {}).get("discarded", 0.0)
    assert found == sum(sure < threshold for _, sure in given)


# What else the config says


@pytest.mark.parametrize(("reduce", "value"), [("mean", 0.5), ("min", 0.0), ("max", 1.0), ("majority", None)])
def test_samples_may_come_to_something_else_than_a_majority(reduce: str, value: float | None) -> None:
    assert heard(said(0.0), said(0.5), said(1.0), reduce=reduce).value == value


def test_one_unsure_sample_leaves_a_mean_unjudged_and_the_range_open() -> None:
    reward = heard(said(0.5), said(0.5), said(1.0, 0.1), reduce="mean")
    assert reward.range == pytest.approx((1 / 3, 2 / 3))
    assert figures(reward)["discarded"] == 1.0


WRONG: Sequence[Mapping[str, Any]] = (
    {"confidence": 80},
    {"confidence": -0.1},
    {"confidence": "sure"},
    {"reduce": "median"},
    {"gated": "one"},
    {"threshold": 0.8},
)


@pytest.mark.parametrize("panel", WRONG)
def test_an_unknown_setting_is_refused_by_name(panel: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"panel\.?{next(iter(panel))}|{next(iter(panel))}"):
        plan("ann", panel=panel)


# Staged screening


def stages(*reviewers: str, **panel: Any) -> Plan:
    return plan(*reviewers, samples=1, dimensions=STAGED, panel=panel)


def test_gated_must_be_configured_for_screened_verdicts() -> None:
    with pytest.raises(PlanError, match=r"panel\.gated: question 'zero-shot/reach@ann' may be left out"):
        stages("ann")


@pytest.mark.parametrize(("gated", "value"), [("missing", 0.25), ("zero", 0.125)])
def test_an_omitted_verdict_is_missing_or_zero_as_configured(gated: str, value: float) -> None:
    reward = rewarded(stages("ann", gated=gated), {asked("ann", "depth"): [said(0.25)], asked("ann", "reach"): [OUT]})
    assert (reward.value, reward.coverage, reward.status) == (value, 1.0, "ok")
    assert reward.counts.not_applicable == 1
    assert figures(reward)["without a majority"] == 0.0


def test_a_reviewer_for_whom_all_is_left_out_is_none_of_the_panel() -> None:
    of = stages("ann", "bob", gated="missing")
    verdicts = {
        asked("ann", "depth"): [said(0.5)],
        asked("ann", "reach"): [said(1.0)],
        asked("bob", "depth"): [OUT],
        asked("bob", "reach"): [OUT],
    }
    reward = rewarded(of, verdicts)
    assert (reward.value, figures(reward)["disagreement"]) == (0.75, 0.0)
    assert (figures(reward)["lowest"], figures(reward)["highest"]) == (0.75, 0.75)


# Disagreement


def together(**given: float | Verdict | None) -> Reward:
    """What a panel says where each judge says one thing; one that says None is not sure enough."""
    of = plan(*given, samples=1, failure={"min_coverage": 0.0})
    unsure = said(1.0, 0.1)
    verdicts = {
        who: unsure if one is None else one if isinstance(one, Verdict) else said(one) for who, one in given.items()
    }
    return rewarded(of, {asked(who): [verdict] for who, verdict in verdicts.items()})


def test_each_reviewer_is_a_part_and_all_count_alike() -> None:
    reward = together(ann=0.0, bob=0.5, cyd=1.0)
    assert reward.value == 0.5
    assert reward.parts[JUDGE] == {"ann": 0.0, "bob": 0.5, "cyd": 1.0}


def test_the_diagnostics_contain_the_differences() -> None:
    found = figures(together(ann=0.0, bob=0.5, cyd=1.0))
    assert found["disagreement"] == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert (found["lowest"], found["highest"]) == (0.0, 1.0)


def test_equal_means_may_hide_a_dispute_and_the_figures_do_not() -> None:
    calm, torn = together(ann=0.5, bob=0.5), together(ann=0.0, bob=1.0)
    assert calm.value == torn.value == 0.5
    assert [figures(one)["disagreement"] for one in (calm, torn)] == [0.0, 1.0]


def test_a_discarded_judge_neither_agrees_nor_disagrees() -> None:
    found = figures(together(ann=0.25, bob=None, cyd=0.75))
    assert (found["disagreement"], found["lowest"], found["highest"], found["discarded"]) == (0.5, 0.25, 0.75, 1.0)
    alone = figures(together(ann=0.25, bob=CANNOT_TELL))
    assert (alone["disagreement"], alone["lowest"], alone["highest"]) == (0.0, 0.25, 0.25)


def test_without_counted_judges_there_is_no_disagreement() -> None:
    reward = together(ann=None, bob=CANNOT_TELL)
    assert reward.value is None
    found = figures(reward)
    assert found.keys() == {"discarded", "without a majority"}


# The arithmetic


@st.composite
def panels(draw: st.DrawFn) -> tuple[dict[str, ScoreMatrix], dict[str, ScoreMatrix], dict[str, ScoreMatrix]]:
    """Cells of up to four judges for up to three responses: filled in some way, by 0 and by 1."""
    rows, made = draw(st.integers(1, 3)), ({}, {}, {})
    for name in "abcd"[: draw(st.integers(1, 4))]:
        size = draw(st.integers(1, 2))
        value = np.array(draw(st.lists(st.floats(0, 1), min_size=rows * size, max_size=rows * size)))
        live, judged = (
            np.array(draw(st.lists(st.booleans(), min_size=rows * size, max_size=rows * size))) for _ in range(2)
        )
        weight = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=size, max_size=size)))
        value, live, judged = (one.reshape(rows, size) for one in (value, live, judged))
        for cells, fill in zip(made, (value, 0.0, 1.0), strict=True):
            filled = np.where(judged, value, fill)
            cells[name] = ScoreMatrix(filled, filled >= 0.5, judged, live, weight)
    return made


@given(panels())
def test_a_panel_lies_between_its_bounds_and_those_between_0_and_1(made: Any) -> None:
    cells, low, high = made
    least, most = Panel().bounds(low, high, {})
    value = Panel().combine(cells, {}).value
    assert (least <= value + 1e-12).all()
    assert (value <= most + 1e-12).all()
    assert ((least >= 0.0) & (most <= 1.0 + 1e-12)).all()


@given(panels())
def test_its_diagnostics_are_those_of_the_judges_that_count(made: Any) -> None:
    cells, *_ = made
    found = Panel().combine(cells, {})
    for row in range(len(found.value)):
        spoken = [_mean(one, row) for one in cells.values()]
        says = [one for one in spoken if one is not None]
        apart = [abs(one - other) for one, other in combinations(says, 2)]
        assert found.diagnostics["disagreement"][row] == pytest.approx(sum(apart) / len(apart) if apart else 0.0)
        assert found.diagnostics["lowest"][row] == pytest.approx(min(says, default=0.0))
        assert found.diagnostics["highest"][row] == pytest.approx(max(says, default=0.0))
        spread = found.diagnostics["highest"][row] - found.diagnostics["lowest"][row]
        assert 0.0 <= found.diagnostics["disagreement"][row] <= spread + 1e-12


def _mean(one: ScoreMatrix, row: int) -> float | None:
    """What a judge says of a response, by what was judged of it."""
    heard = [
        (value, weight)
        for value, weight, live, judged in zip(
            one.value[row], one.weight, one.applicable[row], one.judged[row], strict=True
        )
        if live and judged
    ]
    return sum(v * w for v, w in heard) / sum(w for _, w in heard) if heard else None


@given(panels())
def test_a_response_is_worked_out_from_itself_alone_and_the_parts_are_all_judges(made: Any) -> None:
    cells, *_ = made
    found = Panel().combine(cells, {})
    assert found.parts.keys() == cells.keys()
    for row in range(len(found.value)):
        alone = Panel().combine({name: _row(one, row) for name, one in cells.items()}, {})
        assert alone.value.tobytes() == found.value[row : row + 1].tobytes()
        for name, figure in found.diagnostics.items():
            assert alone.diagnostics[name].tobytes() == figure[row : row + 1].tobytes()


def _row(one: ScoreMatrix, row: int) -> ScoreMatrix:
    own = np.s_[row : row + 1]
    return ScoreMatrix(one.value[own], one.met[own], one.judged[own], one.applicable[own], one.weight, one.input_weight)


def test_it_takes_no_parameter() -> None:
    with pytest.raises(PlanError, match="combiner 'panel' takes no parameter 'confidence'; leave it out"):
        Panel().freeze({"a": ComponentInput(questions=("a",), weights=(1.0,))}, {"confidence": 0.8})


# Through the whole machine


def test_a_panel_of_a_model_that_wavers() -> None:
    about: Task = task("ann")
    script = saying(5, 2, 5, confidence=(90, 90, 90))
    (trace,), bodies = scored(script, use(JUDGE, samples=3), about)
    assert (trace.reward.value, len(bodies)) == (1.0, 3)
    (trace,), _ = scored(saying(5, 2, 5, confidence=(90, 90, 70)), use(JUDGE, samples=3), about)
    assert (trace.reward.value, trace.reward.diagnostics[JUDGE]["discarded"]) == (None, 1.0)
    heedless = {"panel": {"confidence": 0.0}}
    (trace,), _ = scored(saying(5, 2, 5, confidence=(90, 90, 70)), use(JUDGE, samples=3), about, **heedless)
    assert (trace.reward.value, trace.reward.diagnostics[JUDGE]["discarded"]) == (1.0, 0.0)


def test_under_the_strict_rule_a_majority_hides_no_failure() -> None:
    given = (said(0.8), said(0.8), BY_RESPONSE)
    of = plan("ann", failure={"min_coverage": 0.0})
    assert rewarded(of, {asked("ann"): given}).value == 0.8
    strict = rewarded(plan("ann", failure={"min_coverage": 0.0, "rule": "strict"}), {asked("ann"): given})
    assert (strict.value, strict.status) == (None, "failed")


def test_without_counted_judges_only_the_discarded_are_listed() -> None:
    reward = heard(said(0.8, 0.1), said(0.8, 0.1), said(0.8, 0.1))
    assert reward.value is None
    assert figures(reward) == {"discarded": 3.0, "without a majority": 1.0}
