"""Same plan and verdicts, same bits: through the whole jury, in any order of anything that has none."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph.schema import Response, Stakeholder, Task
from tests.examples import at_most
from tests.graphs.scripted import by_id, criterion, evaluator_use, jury, task

SCORES = st.sampled_from([0.0, 1.0, 0.1, 0.3, 0.7]) | st.floats(0.0, 1.0)
LINES = SCORES | st.sampled_from(["abstained", "response", "infrastructure"])
EVALUATORS = [
    evaluator_use("met", audience="criterion"),
    evaluator_use("kind", audience="stakeholder"),
    evaluator_use("tone", samples=2),
    {**evaluator_use("late"), "when": {"question": "tone", "threshold": 0.3}},
]
ACROSS = [evaluator_use("rank", scope="pair"), evaluator_use("place", scope="group")]
COMPONENTS = {"own": {"inputs": {"x": "tone", "y": {"verdicts_of": "late", "if_skipped": "zero"}}}}
QUESTIONS = ["met@x", "met@y", "met@z", "kind@ann", "kind@bob", "late"]
CRITERIA = [criterion("x", 0.7), criterion("y", 0.1), criterion("z", -0.3)]
EDGES = [("x", "y", "weak"), ("x", "z", "activation"), ("y", "z", 0.4)]
PEOPLE = [Stakeholder(id="ann"), Stakeholder(id="bob")]


def config_with(evaluators: list[Any]) -> dict[str, Any]:
    weights = {"rubric": 1.0, "stakeholders": 0.3, "own": -0.1, "rank": 0.7, "place": 0.2}
    homes = {use["name"] for use in evaluators} | {"rubric", "stakeholders", "own"}
    return {
        "evaluators": evaluators,
        "components": COMPONENTS,
        "reward": {name: weights[name] for name in weights if name in homes},
        "weights": {"method": "uniform"},
        "failure": {"min_coverage": 0.3},
    }


def make_task(criteria: list[Any], edges: list[Any], people: list[Stakeholder]) -> Task:
    return task(*criteria, edges=edges, stakeholders=people)


@st.composite
def response_groups(draw: st.DrawFn) -> list[Response]:
    scripts = st.fixed_dictionaries(
        {**dict.fromkeys(QUESTIONS, LINES), "tone": st.tuples(LINES, LINES).map(list)}
        | dict.fromkeys(("rank", "place"), SCORES)
    )
    return [Response(id=name, text="same", data=draw(scripts)) for name in ("a", "b", "c")]


SLOW = settings(
    max_examples=at_most(12, quick=6), deadline=None, suppress_health_check=list(HealthCheck)
)


def test_no_order_changes_a_bit_of_any_reward_or_verdict() -> None:
    with _jury(list(EVALUATORS + ACROSS)) as in_order:

        @SLOW
        @given(response_groups(), st.randoms(use_true_random=False))
        def check(group: list[Response], shuffle: Any) -> None:
            parts: list[list[Any]] = [
                list(EVALUATORS + ACROSS),
                list(CRITERIA),
                list(EDGES),
                list(PEOPLE),
                list(group),
            ]
            first = by_id(in_order.score(make_task(*parts[1:4]), parts[4]))
            for part in parts:
                shuffle.shuffle(part)
            with _jury(parts[0]) as made:
                second = by_id(made.score(make_task(*parts[1:4]), parts[4]))
            for name, trace in first.items():
                assert second[name].plan_digest == trace.plan_digest
                assert second[name].model_dump_json() == trace.model_dump_json()

        check()


def test_no_split_changes_a_bit_where_nothing_looks_across_the_group() -> None:
    about = make_task(CRITERIA, EDGES, PEOPLE)
    with _jury(EVALUATORS) as made:

        @SLOW
        @given(response_groups(), st.lists(st.booleans(), min_size=3, max_size=3))
        def check(group: list[Response], part: list[bool]) -> None:
            whole = by_id(made.score(about, group))
            apart = [
                made.score(about, [r for r, its in zip(group, part, strict=True) if its is side])
                for side in set(part)
            ]
            for trace in (trace for traces in apart for trace in traces):
                assert (
                    trace.reward.model_dump_json()
                    == whole[trace.response_id].reward.model_dump_json()
                )
                assert trace.verdicts == whole[trace.response_id].verdicts

        check()


def _jury(evaluators: list[Any]) -> Any:
    settings_ = config_with(evaluators)
    return jury(*settings_.pop("evaluators"), **settings_)
