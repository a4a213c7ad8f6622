"""Recall: known results are not requested again; material that they depend on and screening are checked anew."""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph import Group, Jury
from jurygraph.agents.roles import DeriverInput, EvaluatorInput
from jurygraph.graphs.routing import NO_REUSED_RESULTS, ReusedResults
from jurygraph.schema import Material, RecordedVerdict, Response, Trace
from jurygraph.schema.verdict import VerdictKey
from tests.examples import at_most
from tests.graphs.scripted import (
    DATA_READER,
    Half,
    Measure,
    ScriptedEvaluator,
    Versions,
    by_id,
    jury,
    response_with,
    score_responses,
    task,
)

HERE = __name__
REQUESTED: list[tuple[str, tuple[str, ...], int]] = []
DERIVED: list[tuple[str, str]] = []


@pytest.fixture(autouse=True)
def _clear_records() -> None:
    REQUESTED.clear()
    DERIVED.clear()


class Counted(ScriptedEvaluator):
    """Records its inputs."""

    def answer(self, inputs: EvaluatorInput) -> Any:
        REQUESTED.append((inputs.question.id, tuple(r.id for r in inputs.responses), inputs.sample))
        return super().answer(inputs)


class CountedMeasure(Measure):
    def derive(self, inputs: DeriverInput) -> Material:
        DERIVED.append(("measure", inputs.response.id))
        return super().derive(inputs)


class CountedHalf(Half):
    async def derive(self, inputs: DeriverInput) -> Material:
        DERIVED.append(("half", inputs.response.id))
        return await super().derive(inputs)


class CountedVersions(Versions):
    def derive(self, inputs: DeriverInput) -> Material:
        DERIVED.append(("versions", inputs.response.id))
        return super().derive(inputs)


def counted_evaluator(name: str, **params: Any) -> dict[str, Any]:
    return {"use": f"{HERE}:Counted", "name": name, "params": params}


CONFIG = {
    "evaluators": [
        counted_evaluator("tone", samples=2),
        {**counted_evaluator("late"), "when": {"question": "tone", "threshold": 0.5}},
        counted_evaluator("better", scope="pair"),
        counted_evaluator("once", scope="pair", pairs="unordered"),
        counted_evaluator("rank", scope="group"),
        counted_evaluator("same", material="versions"),
        counted_evaluator("sized", needs=["half"]),
    ],
    "derivers": [f"{HERE}:{name}" for name in ("CountedMeasure", "CountedHalf", "CountedVersions")],
    "components": {"late": {"inputs": {"late": {"verdicts_of": "late", "if_skipped": "zero"}}}},
    "reward": {
        "tone": 1.0,
        "late": 0.5,
        "better": 0.3,
        "once": 0.1,
        "rank": 0.7,
        "same": -0.2,
        "sized": 0.3,
    },
    "failure": {"min_coverage": 0.1},
}
RESTS = {"same": ("versions",), "sized": ("half",)}
NEEDS = {"measure": (), "half": ("measure",), "versions": ()}
GROUP = [
    response_with(
        name,
        {
            "tone": [x, 1 - x / 2],
            "late": x,
            "better": x,
            "once": x,
            "rank": x,
            "measure": x,
            "sized": x / 3,
        }
        | {"versions": [[f"{name}{i}", {"same": x / i}] for i in (1, 2)]},
    )
    for name, x in (("a", 0.1), ("b", 0.4), ("c", 0.9))
]


def results_of(traces: Sequence[Trace]) -> ReusedResults:
    """All verdicts and material of traces."""
    verdicts = {v.key: v for t in traces for v in t.verdicts}
    return ReusedResults(verdicts, {(m.name, m.response): m for t in traces for m in t.material})


def score_again(
    config: dict[str, Any], recalled: ReusedResults, group: Sequence[Response] = GROUP
) -> list[Trace]:
    """Return the traces with recalled results, after clearing the records of requests."""
    REQUESTED.clear()
    DERIVED.clear()
    with Jury.from_config(config) as made:
        return asyncio.run(made.ascore(task(), group, reused_results=recalled))


def drop_results(
    recalled: ReusedResults, verdicts: Collection[Any] = (), material: Collection[Any] = ()
) -> ReusedResults:
    return ReusedResults(
        {place: v for place, v in recalled.verdicts.items() if place not in verdicts},
        {place: m for place, m in recalled.material.items() if place not in material},
    )


def test_with_all_results_known_nothing_is_called_and_the_traces_are_equal() -> None:
    first = score_responses(CONFIG, task(), *GROUP)
    assert {question for question, _, _ in REQUESTED} == {
        use["name"] for use in CONFIG["evaluators"]
    }
    assert [t.model_dump_json() for t in score_again(CONFIG, results_of(first))] == [
        t.model_dump_json() for t in first
    ]
    assert (REQUESTED, DERIVED) == ([], [])


def test_only_unknown_verdicts_are_requested_and_the_traces_are_equal() -> None:
    first = score_again(CONFIG, NO_REUSED_RESULTS)
    whole, slots = results_of(first), list(REQUESTED)

    @settings(
        max_examples=at_most(15, quick=6), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        gone = data.draw(st.sets(st.sampled_from(sorted(whole.verdicts))))
        lost = data.draw(st.sets(st.sampled_from(sorted(whole.material)), max_size=3))
        traces = score_again(CONFIG, drop_results(whole, gone, lost))
        assert [t.digest for t in traces] == [t.digest for t in first]
        assert sorted(REQUESTED) == sorted(
            slot for slot in slots if set(places(slot)) & gone or set(material_of(slot)) & lost
        )
        assert set(DERIVED) == {
            (name, of)
            for name, of in whole.material
            if {(name, of), *((need, of) for need in NEEDS[name])} & lost
        }

    check()


def places(slot: tuple[str, tuple[str, ...], int]) -> Iterator[Any]:
    """Yield the keys of a slot's verdicts: of a group about each response, of a variant about its parent."""
    question, shown, sample = slot
    for about in shown if question == "rank" else (shown[0][0],):
        yield VerdictKey(question, about, shown, sample)


def material_of(slot: tuple[str, tuple[str, ...], int]) -> list[tuple[str, str]]:
    question, shown, _ = slot
    return [(name, shown[0][0]) for name in RESTS.get(question, ())]


def test_screening_is_computed_again() -> None:
    """Screening may now skip a question that was requested, or request one that was skipped."""
    first = score_responses(CONFIG, task(), *GROUP)
    assert late_statuses(first) == {"a": "ok", "b": "ok", "c": "ok"}
    strict = {
        **CONFIG,
        "evaluators": [use for use in CONFIG["evaluators"] if use["name"] != "late"],
    }
    strict["evaluators"].append(
        {**counted_evaluator("late"), "when": {"question": "tone", "threshold": 0.7}}
    )
    second = score_again(strict, results_of(first))
    assert (REQUESTED, late_statuses(second)) == (
        [],
        {"a": "not_applicable", "b": "not_applicable", "c": "ok"},
    )
    third = score_again(CONFIG, results_of(second))
    assert (sorted(REQUESTED), late_statuses(third)) == (
        [("late", ("a",), 0), ("late", ("b",), 0)],
        late_statuses(first),
    )


def late_statuses(traces: Sequence[Trace]) -> dict[str, str]:
    return {
        t.response_id: next(v.status for v in t.verdicts if v.question == "late") for t in traces
    }


def test_a_recalled_verdict_has_the_identity_of_the_present_question() -> None:
    config = {"evaluators": [counted_evaluator("tone")]}
    old = RecordedVerdict(
        question="tone",
        evaluator="old",
        version="0",
        layer="human",
        subject="x",
        score=0.75,
        reason="kept",
    )
    (trace,) = score_again(
        config, ReusedResults({VerdictKey("tone", "a", ("a",), 0): old}, {}), GROUP[:1]
    )
    (verdict,) = trace.verdicts
    assert (verdict.evaluator, verdict.version, verdict.layer, verdict.subject) == (
        "tone",
        "1",
        "check",
        "tone",
    )
    assert (verdict.about, verdict.responses, verdict.score, verdict.reason) == (
        "a",
        ("a",),
        0.75,
        "kept",
    )
    assert REQUESTED == []


def test_changed_material_discards_the_verdicts_that_depend_on_it() -> None:
    config = {
        "evaluators": [{"use": DATA_READER, "name": "reads", "params": {"needs": ["half"]}}],
        "derivers": CONFIG["derivers"],
    }
    recalled = results_of(score_responses(config, task(), *GROUP))
    other = recalled.material["half", "a"].model_copy(update={"data": 0.9})
    spoiled = ReusedResults(recalled.verdicts, {**recalled.material, ("half", "a"): other})
    lost = drop_results(spoiled, material=[("measure", "a")])
    # half of its measure, derived and read again
    assert by_id(score_again(config, lost))["a"].reward.value == 0.05
    assert DERIVED == [("measure", "a"), ("half", "a")]
    assert by_id(score_again(config, recalled))["a"].reward.value == 0.05


def test_each_of_many_groups_recalls_its_own_results() -> None:
    config = {"evaluators": [counted_evaluator("tone")]}
    groups = [(task(id=name), [response_with("a", {"tone": 0.5})]) for name in ("first", "second")]
    turns: list[str] = []

    def recall(about: Any) -> ReusedResults:
        turns.append(about.id)
        verdict = RecordedVerdict(score=1.0)
        known = {VerdictKey("tone", "a", ("a",), 0): verdict}
        return ReusedResults(known if about.id == "second" else {}, {})

    async def rewards() -> list[float | None]:
        with jury(*config["evaluators"]) as made:
            plans = [await made.aprepare(about) for about, _ in groups]
            work = (
                Group(*group, plan, recall(group[0]))
                for group, plan in zip(groups, plans, strict=True)
            )
            return [traces[0].reward.value async for traces in made.ascore_many(work)]

    assert asyncio.run(rewards()) == [0.5, 1.0]
    assert (turns, len(REQUESTED)) == (["first", "second"], 1)
