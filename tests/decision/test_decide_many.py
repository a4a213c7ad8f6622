"""Many groups at once: to the last bit the rewards that each group alone would give."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph.arrays import Floats
from jurygraph.decision import decide
from jurygraph.decision.combiners import Combiner, Component, InputMatrices, Mean, ScoreMatrix
from jurygraph.decision.decide import (
    GroupVerdicts,
    RewardRow,
    can_be_decided_together,
    compute_rewards,
    decide_groups,
    has_independent_rows,
)
from jurygraph.errors import PlanError
from jurygraph.schema import RecordedVerdict, Reward
from jurygraph.schema.frozen_model import RawParams
from tests.examples import at_most
from tests.graphs.scenes import NAMES, SCORES, SCREENED_OUT, STOPPED_BY_A_GATE, Scene, scenes
from tests.graphs.scripted import (
    COMBINERS,
    RESPONSE_FAILURE,
    UNJUDGED,
    criterion,
    decide_rewards,
    evaluator_use,
    make_plan,
    task,
)

EACH = settings(max_examples=at_most(60), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def independent_scenes(draw: st.DrawFn) -> Scene:
    """Draw a scene in which some responses were judged on all requested questions, and some on all questions; of the
    others, some questions were settled for all samples at once."""
    scene = draw(scenes(alone=True))
    kinds = {name: draw(st.sampled_from(["any", "judged", "whole"])) for name in NAMES}
    verdicts = dict(scene.verdicts)
    for place, verdict in scene.verdicts.items():
        replaced = {
            "any": (),
            "judged": ("abstained", "failed"),
            "whole": ("abstained", "failed", "not_applicable"),
        }
        if verdict.status in replaced[kinds[place[1]]]:
            verdicts[place] = RecordedVerdict(score=draw(SCORES))
    for question in scene.plan.survey.questions:
        for name in (
            name for name in NAMES if kinds[name] == "any" and draw(st.integers(0, 3)) == 0
        ):
            for sample in range(question.samples):
                del verdicts[question.id, name, (name,), sample]
            verdicts[question.id, name, (), 0] = draw(
                st.sampled_from([SCREENED_OUT, *STOPPED_BY_A_GATE, *UNJUDGED.values()])
            )
    return Scene(scene.config, scene.task, scene.plan, verdicts)


@settings(EACH, max_examples=at_most(100))
@given(st.data())
def test_groups_of_a_batch_get_the_rewards_that_each_gets_alone(data: st.DataObject) -> None:
    drawn = [data.draw(independent_scenes()), data.draw(independent_scenes() | scenes())]
    sizes = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
    groups = [scene.group(names) for scene, names in data.draw(members(drawn, sizes))]
    for group, rows in zip(groups, decide_groups(groups, COMBINERS), strict=True):
        assert not isinstance(rows, Exception)
        assert [row.to_reward(group.decision).model_dump_json() for row in rows] == [
            one.model_dump_json() for one in compute_rewards(*group, COMBINERS)
        ]


def members(drawn: Sequence[Scene], names: st.SearchStrategy[list[str]]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(st.sampled_from(drawn), names), min_size=1, max_size=8)


def test_groups_with_equal_decisions_are_decided_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[int] = []
    reward_rows = decide.build_reward_rows
    monkeypatch.setattr(
        decide,
        "build_reward_rows",
        lambda *given: tables.append(len(given[2])) or reward_rows(*given),
    )
    plans = [
        make_plan({"evaluators": [evaluator_use("x", samples=2)]}, task(id=name)) for name in "mn"
    ]
    verdicts = {("x", "r", (), 0): SCREENED_OUT, ("x", "s", ("s",), 1): RecordedVerdict(score=0.5)}
    groups = [Scene({}, task(), plan, verdicts).group(["s", "r"]) for plan in plans]
    counts = [
        [(one.counts.judged, one.counts.not_applicable) for one in rewards]
        for rewards in decide_groups(groups, COMBINERS)
        if isinstance(rewards, list)
    ]
    assert counts == [[(1, 0), (0, 1)]] * 2
    assert tables == [4]


class SeenRows(Combiner):
    """Gives the number of rows that it sees, and none at all where the first value is 0."""

    name = "mean"

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        (one,) = matrices.values()
        rows = len(one.value)
        return Component(
            rows / np.where(one.value[0, 0], 1.0, np.zeros(rows)), np.ones(rows, dtype=np.bool_), {}
        )


def test_a_combiner_of_the_user_sees_one_group_and_fails_it_alone() -> None:
    plan = make_plan({"evaluators": [evaluator_use("x")]}, task())
    scores = [("a", 0.5), ("bc", 0.0), ("abc", 0.5)]
    groups = [
        Scene(
            {},
            task(),
            plan,
            {("x", name, (name,), 0): RecordedVerdict(score=score) for name in names},
        ).group(list(names))
        for names, score in scores
    ]
    first, second, third = decide_groups(groups, {"mean": SeenRows()})
    assert isinstance(second, PlanError)
    assert [
        [one.value for one in rewards] for rewards in (first, third) if isinstance(rewards, list)
    ] == [
        [1],
        [3] * 3,
    ]


def test_an_overflowing_reward_is_the_error_of_its_group_alone() -> None:
    about = task(criterion("gain", 1e-9), criterion("harm", -1.0))
    plan = make_plan({"evaluators": [evaluator_use("met", audience="criterion")], **HUGE}, about)
    groups = [
        Scene(
            {},
            about,
            plan,
            {(f"met@{n}", "r", ("r",), 0): RecordedVerdict(score=s) for n, s in scores},
        ).group(["r"])
        for scores in (
            [("gain", 1.0), ("harm", 0.0)],
            [("gain", 0.0), ("harm", 1.0)],
            [("gain", 0.0), ("harm", 0.0)],
        )
    ]
    first, second, third = decide_groups(groups, COMBINERS)
    assert isinstance(second, PlanError)
    assert "overflows" in str(second)
    assert [
        [one.value for one in rewards] for rewards in (first, third) if isinstance(rewards, list)
    ] == [
        [1e300],
        [0],
    ]


@pytest.mark.parametrize(
    ("uses", "failure", "alone", "independent"),
    [
        ([evaluator_use("x")], {}, True, True),
        ([{**evaluator_use("x"), "samples": 3}], {"rule": "strict"}, True, True),
        ([evaluator_use("x", scope="pair")], {}, False, False),
        ([evaluator_use("x", scope="group")], {}, False, True),
        ([evaluator_use("x", material="versions")], {}, False, True),
        ([evaluator_use("x")], {"group_rule": "drop-criterion"}, False, False),
    ],
)
def test_what_a_question_looks_at_says_which_groups_and_rows_are_independent(
    uses: Any, failure: Any, alone: bool, independent: bool
) -> None:
    config = {
        "evaluators": uses,
        "derivers": ["tests.graphs.scripted:Versions"],
        "failure": failure,
    }
    plan = make_plan(config, task())
    assert can_be_decided_together(plan.decision, plan.survey.questions, COMBINERS) == alone
    assert has_independent_rows(plan.decision, plan.survey.questions, COMBINERS) == independent
    assert not has_independent_rows(
        plan.decision, plan.survey.questions, {**COMBINERS, "mean": OtherRows()}
    )


class OtherRows(Mean):
    """Has a value that other rows can change."""

    uses_other_rows = True


# How rewards are written down


class OtherNumberTypes(Combiner):
    """Gives numbers of other types than float."""

    name = "mean"
    batched = True

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        (one,) = matrices.values()
        ones = np.ones(len(one.value), dtype=np.int64)
        return Component(ones, ones > 0, {"small": ones.astype(np.float32), "true": ones > 0})  # type: ignore[arg-type]


@EACH
@given(independent_scenes())
def test_a_reward_equals_itself_after_a_round_trip(scene: Scene) -> None:
    for reward in scene.rewards().values():
        assert RewardRow.from_reward(reward).to_reward(scene.plan.decision) == reward
        again = Reward.model_validate_json(reward.model_dump_json())
        assert again == reward
        assert types_within(vars(again)) == types_within(vars(reward))


def types_within(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: types_within(one) for name, one in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str):
        return type(value), [types_within(one) for one in value]
    return types_within(vars(value)) if hasattr(value, "model_fields_set") else type(value)


def group_of_one() -> GroupVerdicts:
    plan = make_plan({"evaluators": [evaluator_use("x")]}, task())
    return Scene({}, task(), plan, {("x", "a", ("a",), 0): RecordedVerdict(score=0.5)}).group(["a"])


def test_numbers_from_a_combiner_become_floats() -> None:
    (reward,) = compute_rewards(*group_of_one(), {"mean": OtherNumberTypes()})
    assert types_within(vars(reward)["parts"]) == {"x": {"small": float, "true": float}}
    assert (reward.value, type(reward.value), type(reward.components["x"])) == (1.0, float, float)
    (rows,) = decide_groups([group_of_one()], {"mean": OtherNumberTypes()})
    assert isinstance(rows, list)
    assert [types_within([*row.components, *row.terms])[1] for row in rows] == [[float, float]]


def overflow_message(answers: dict[str, Any], **config: Any) -> str:
    """Return the error message for the reward of a task with a gain of 1e-9 and a harm of 1."""
    about = task(criterion("gain", 1e-9), criterion("harm", -1.0))
    plan = make_plan({"evaluators": [evaluator_use("met", audience="criterion")], **config}, about)
    with pytest.raises(PlanError) as error:
        decide_rewards(
            plan, {(f"met@{name}", "r"): answer for name, answer in answers.items()}, "r"
        )
    return str(error.value)


HUGE = {"reward": {"rubric": 1e300}}


@pytest.mark.parametrize(
    ("answers", "config", "what"),
    [
        ({"gain": 0.0, "harm": 1.0}, HUGE, "the weighted sum of the components"),
        ({"gain": 0.0, "harm": 1.0}, {"scale": 1e308}, "the reward after the scale"),
        (
            {"gain": 0.0, "harm": 1.0},
            {"scale": 1e308, "clip": [0.0, 1.0]},
            "the reward after the scale",
        ),
        ({"gain": 1.0, "harm": RESPONSE_FAILURE}, {"scale": 1e308}, "the reward after the scale"),
        (
            {"gain": 1.0, "harm": RESPONSE_FAILURE},
            {"scale": 1e308, "failure": {"rule": "gear", "min_coverage": 0.0}},
            "a bound of the reward",
        ),
    ],
)
def test_an_overflowing_reward_is_refused_naming_its_source(
    answers: dict[str, Any], config: dict[str, Any], what: str
) -> None:
    scaled = (
        {"reward": {"rubric": 1e300}} if config is HUGE else {"reward": {"rubric": 1.0}, **config}
    )
    assert overflow_message(answers, **scaled) == (
        f"{what} overflows: it is larger than any number; make the weights or the scale smaller"
    )


class Broken(Combiner):
    """Gives what is no number: as its value, or as a part."""

    name = "mean"
    batched = True

    def __init__(self, value: float, part: float) -> None:
        self.value, self.part = value, part

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        rows = len(next(iter(matrices.values())).value)
        return Component(
            np.full(rows, self.value),
            np.ones(rows, dtype=np.bool_),
            {"p": np.full(rows, self.part)},
        )


@pytest.mark.parametrize(("value", "part"), [(np.nan, 0.0), (np.inf, 0.0), (0.0, -np.inf)])
def test_a_combiner_without_a_finite_number_is_named(value: float, part: float) -> None:
    with pytest.raises(
        PlanError, match=r"combiner 'mean' gave component 'x' a value that is not finite; fix"
    ):
        compute_rewards(*group_of_one(), {"mean": Broken(value, part)})


class Boundless(Mean):
    """Cannot tell between what values a component lies."""

    def bounds(
        self, low: InputMatrices, high: InputMatrices, params: RawParams
    ) -> tuple[Floats, Floats]:
        raise KeyError("nobody")


def test_a_combiner_that_cannot_tell_its_bounds_is_named() -> None:
    plan = make_plan({"evaluators": [evaluator_use("x")]}, task())
    with pytest.raises(PlanError, match="combiner 'mean' failed: KeyError: 'nobody'; fix it"):
        compute_rewards(
            plan.decision, plan.survey.questions, "a", [], {**COMBINERS, "mean": Boundless()}
        )
