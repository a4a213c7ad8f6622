"""Views of an explained trace: every sentence and line follows from the trace and its decision."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.registry import load_combiner
from jurygraph.cli.render.trace import trace_lines
from jurygraph.decision.decide import compute_rewards
from jurygraph.explanation import Explanation
from jurygraph.explanation.sentences import what_if_sentences
from jurygraph.explanation.terms import ExplainedTrace
from jurygraph.explanation.what_if import Change
from jurygraph.schema import (
    RESPONSE_GATES,
    ComponentInput,
    ComponentSpec,
    Config,
    Counts,
    Decision,
    Evidence,
    ExampleUse,
    Failure,
    FormatGate,
    Material,
    PrecisionShaping,
    Question,
    RecordedVerdict,
    RepetitionControl,
    Reward,
    Swap,
    Term,
    Trace,
)
from tests.rows import all_rows


def finite(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_subnormal=False)


def explanation_sentences(trace: Trace, decision: Decision) -> list[str]:
    return Explanation(trace, decision, ()).sentences()


def show_lines(trace: Trace, decision: Decision) -> list[str]:
    return [line.strip() for line in trace_lines(ExplainedTrace(trace, decision))]


def sentences(trace: Trace, **weights: float) -> list[str]:
    """Return the sentences under a decision with one component for each question, of weight 1 by default."""
    specs = tuple(spec(v.question, weights.get(v.question, 1.0)) for v in trace.verdicts if v.question)
    return explanation_sentences(trace, Decision(specs=specs))


def decide(decision: Decision, *verdicts: RecordedVerdict) -> Trace:
    """Return the trace of response `r` with the reward that the decision gives its verdicts."""
    questions = [
        Question(id=v.question, evaluator="e", version="1", subject=v.subject, view="v", scope=scope, pairs="unordered")
        for v in verdicts
        for scope in (["pair"] if len(v.responses) == 2 else ["response"])
    ]
    names = sorted({"r"}.union(*({v.about, *v.responses} for v in verdicts)))
    combiners = {one.combiner: load_combiner(one.combiner) for one in decision.specs}
    found = dict(zip(names, compute_rewards(decision, questions, names, verdicts, combiners), strict=True))
    return trace(found["r"], *verdicts)


def point_lines(*verdicts: RecordedVerdict, **weights: float) -> list[str]:
    """Return the lines with points, if every verdict is a component of its own, of weight 1 by default."""
    decision = Decision(specs=tuple(spec(v.question, weights.get(v.question, 1.0)) for v in verdicts))
    return points_of(explanation_sentences(decide(decision, *verdicts), decision))


def points_of(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip().startswith(("Lost", "Gained"))]


def spec(question: str, weight: float) -> ComponentSpec:
    inputs = {question: ComponentInput(questions=(question,), weights=(1.0,))}
    direction = -1 if weight < 0 else 1
    return ComponentSpec(name=question, weight=weight, direction=direction, combiner="mean", version="1", inputs=inputs)


def verdict(subject: str, **fields: Any) -> RecordedVerdict:
    defaults = {"question": subject, "subject": subject, "about": "r", "evaluator": "e"}
    return RecordedVerdict.model_validate(defaults | fields)


def trace(reward: Reward, *verdicts: RecordedVerdict) -> Trace:
    return Trace(task_id="t", response_id="r", group="g", plan_digest="p", reward=reward, verdicts=verdicts)


def reward(value: float | None = 1.0, status: str = "ok", **fields: Any) -> Reward:
    defaults = {
        "partial": value,
        "coverage": 1.0,
        "range": (1.0, 1.0),
        "components": {},
        "terms": (),
        "counts": Counts(),
    }
    return Reward(value=value, status=status, **(defaults | fields))


def test_a_failed_reward_has_its_reasons_and_the_value_of_the_judged_part():
    lines = sentences(trace(reward(None, "failed", partial=0.25, notes=("nothing that counts was judged",))))
    assert lines[0] == "Response r to task t gets no reward: it failed; the judged part alone would give 0.25."
    assert lines[1] == "Why: nothing that counts was judged."
    given = ("a", 1.0, 0.2), ("not applicable", 1.0, None), ("weightless", 0.0, 0.2)
    terms = tuple(Term(name=name, weight=w, value=value, contribution=value and w * value) for name, w, value in given)
    failed = reward(None, "failed", partial=0.0, terms=terms, components=dict.fromkeys([one.name for one in terms]))
    assert sentences(trace(failed))[0].endswith("; the judged part alone, without a, would give 0.")


def test_each_term_is_weight_times_value_and_they_add_up():
    terms = (
        Term(name="accuracy", weight=1.0, value=1.0, contribution=1.0),
        Term(name="repetition", weight=-0.2, value=0.0, contribution=-0.0),
        Term(name="length", weight=-0.5, value=0.5, contribution=-0.25),
        Term(name="pairs", weight=1.0, value=None, contribution=None),
        Term(name="steps", weight=0.0, value=0.5, contribution=0.0),
    )
    assert sentences(trace(reward(0.75, terms=terms)))[1:7] == [
        "Lost 0.25: penalty length 0.5, weight -0.5.",
        "Gained 1: accuracy 1 of 1, weight 1.",
        "Lost 0: penalty repetition 0, weight -0.2.",
        "Sum: 1 at best - 0.25 = 0.75.",
        "Not applicable, no effect: pairs.",
        "Weight 0, no points: steps 0.5.",
    ]


@given(st.lists(st.tuples(finite(-5, 5), finite(0, 1)), min_size=1, max_size=6))
def test_points_are_weight_times_value_and_add_up_to_the_reward(drawn: list[tuple[float, float]]):
    terms = tuple(
        Term(name=f"t{place}", weight=weight, value=value, contribution=weight * value)
        for place, (weight, value) in enumerate(drawn)
        if weight
    )
    points = Explanation(trace(reward(0.0, terms=terms)), Decision(specs=()), ()).points
    for line in points.lines:
        exact = line.weight * line.value
        assert (line.points, line.lost) == (exact, max(line.weight, 0.0, exact) - exact)
    lost = [round(line.lost, 4) for line in points.lines]
    assert lost == sorted(lost, reverse=True)
    assert points.total == sum(term.contribution or 0.0 for term in terms)
    assert points.best - sum(line.lost for line in points.lines) == pytest.approx(points.total, abs=1e-9)


def test_a_probability_has_the_answer_of_its_judge():
    one = verdict("kind", score=0.97, met=True, native="P(met) as stated", reason="short")
    two = verdict("rude", score=0.2, met=False, native="P(met) from log probabilities")
    assert point_lines(one, two, rude=-1.0) == [
        "Lost 0.2: penalty rude not met, P(met) 0.2, weight -1.",
        "Lost 0.03: kind met, P(met) 0.97 of 1, weight 1 (short).",
    ]


def test_equal_changes_share_a_line_and_no_gain_is_printed_as_0():
    def change(condition: str, value: float) -> Change:
        return Change(kind="verdict", name="n", condition=condition, value=value, gain=value - 0.5)

    equal = [change(f"c{place} were met", 0.75) for place in range(7)]
    changes = [*equal, change("they were were 1", 0.75), change("d were 1", 0.50003)]
    assert what_if_sentences(trace(reward(0.5)), changes) == [
        "If any one of c0, c1, c2, c3, c4, 2 more were met: 0.75 (+0.25).",
        "If they were were 1: 0.75 (+0.25).",
        "If d were 1: 0.5 (+0.00003).",
        "9 of 9 single changes would raise it.",
    ]
    different = [change(f"c{place} were met", 2 - place / 10) for place in range(11)]
    assert what_if_sentences(trace(reward(0.5)), different + equal)[-2] == "... and 8 more (--json)."


def test_the_sum_of_a_failed_reward_is_hypothetical():
    terms = tuple(Term(name=name, weight=1.0, value=0.5, contribution=0.5) for name in "ab")
    failed = reward(None, "failed", terms=terms, components={"a": 0.5, "b": 0.5})
    assert "The sum would be 2 at best - 0.5 - 0.5 = 1." in sentences(trace(failed))


GATES: dict[str, Any] = {
    "format": FormatGate(component="polite", below=0.4),
    "precision": PrecisionShaping(component="polite", below=0.4, auxiliary=("steps",), fraction=0.25),
    "repetition": RepetitionControl(component="polite", above=0.4),
}


@pytest.mark.parametrize(
    ("gate", "polite", "line"),
    [
        ("format", 0.2, "Format gate: polite 0.2 < 0.4 → reward 0 (before: 1.2) (rude)."),
        ("format", 0.4, "Format gate: polite 0.4 ≥ 0.4: no effect."),
        ("precision", 0.2, "Precision gate: polite 0.2 < 0.4 → 1.2 - (1 - 0.25) × 1 points of steps = 0.45 (rude)."),
        ("precision", 0.8, "Precision gate: polite 0.8 ≥ 0.4: no effect."),
        ("repetition", 0.8, "Repetition gate: polite 0.8 > 0.4 → 1.8 × (1 - 0.8) = 0.36 (rude)."),
        ("repetition", 0.2, "Repetition gate: polite 0.2 ≤ 0.4: no effect."),
    ],
)
def test_a_gate_names_component_value_threshold_and_effect(gate: str, polite: float, line: str):
    decision = Decision(specs=(spec("polite", 1.0), spec("steps", 1.0)), gates=(GATES[gate],))
    one = decide(decision, verdict("polite", score=polite, reason="rude"), verdict("steps", score=1.0))
    assert line in explanation_sentences(one, decision)
    (result,) = one.reward.gates
    assert (result.component, result.value, result.threshold) == ("polite", polite, 0.4)
    assert result.before == polite + 1.0
    assert result.after == one.reward.value


def test_a_gate_that_is_open_or_shut_by_a_missing_verdict_takes_the_worst_case():
    halves = ComponentInput(questions=("a", "b"), weights=(1.0, 1.0))
    polite = ComponentSpec(name="polite", weight=1.0, combiner="mean", version="1", inputs={"polite": halves})
    gate = PrecisionShaping(component="polite", below=0.7, auxiliary=("polite",), fraction=0.5)
    decision = Decision(specs=(polite,), gates=(gate,), min_coverage=0.0, rule="gear")
    one = decide(decision, verdict("a", score=1.0), verdict("b", status="abstained"))
    (line,) = (line for line in explanation_sentences(one, decision) if "gate" in line)
    worst = "Precision gate: polite 0.5 at worst (verdicts are missing) < 0.7"
    assert line.startswith(f"{worst} → 0.5 - (1 - 0.5) × 0.5 points of polite = 0.25")


def test_scale_and_clip_are_listed_in_order():
    decision = Decision(specs=(spec("polite", 1.0),), scale=3.0, clip=(0.0, 1.0))
    lines = explanation_sentences(decide(decision, verdict("polite", score=0.5)), decision)
    assert lines[3:5] == ["Scale: 0.5 × 3 = 1.5.", "Clip to 0 to 1: 1.5 → 1."]


def test_lines_follow_the_order_of_their_cost():
    late = verdict("answer", score=0.0, evidence=(Evidence(quote="26", start=90, end=92, verified=True),))
    three = Evidence(quote="3", start=4, end=5, verified=True)
    early = verdict("steps", score=0.5, met=False, reason="off", evidence=(three,))
    assert point_lines(verdict("brief", score=0.9), verdict("x", score=1.0), early, late, answer=0.75) == [
        "Lost 0.75: answer 0 of 1, weight 0.75 (“26”).",
        "Lost 0.5: steps 0.5 of 1, weight 1 (off, as in “3”).",
        "Lost 0.1: brief 0.9 of 1, weight 1.",
        "Gained 1: x 1 of 1, weight 1.",
    ]


@all_rows(
    ("fields", "weight", "line"),
    [
        (
            {"score": 0.25, "native": 2, "scale": (1, 5), "reason": "thin"},
            1.0,
            "Lost 0.75: truth 2 on a scale of 1 to 5 (0.25), weight 1 (thin).",
        ),
        ({"score": 0.0}, -1.0, "Lost 0: penalty truth 0, weight -1."),
        ({"score": 0.5, "reason": "twice"}, -1.0, "Lost 0.5: penalty truth 0.5, weight -1 (twice)."),
        ({"score": 0.0, "reason": "x" * 1000}, 1.0, f"Lost 1: truth 0 of 1, weight 1 ({'x' * 299}…)."),
        ({"score": 0.0, "reason": "No table names it."}, 1.0, "Lost 1: truth 0 of 1, weight 1 (No table names it)."),
        (  # a quotation that was not found in the response is omitted
            {"score": 0.0, "evidence": (Evidence(quote="invented"), Evidence(quote="a law", source="facts"))},
            1.0,
            "Lost 1: truth 0 of 1, weight 1 (“a law”).",
        ),
        (  # a quotation beside one in the reason is another finding
            {
                "score": 0.0,
                "reason": "'2 * 2 = 5', but it is 4",
                "evidence": (Evidence(quote="2 * 2 = 5", verified=True), Evidence(quote="3 * 2 = 7", verified=True)),
            },
            1.0,
            "Lost 1: truth 0 of 1, weight 1 ('2 * 2 = 5', but it is 4; also: “3 * 2 = 7”).",
        ),
    ],
)
def test_a_line_shows_value_weight_and_reason(fields: dict[str, Any], weight: float, line: str):
    assert point_lines(verdict("truth", **fields), truth=weight) == [line]


def test_a_criterion_of_negative_weight_is_a_penalty():
    inputs = {
        "good": ComponentInput(questions=("good",), weights=(1.0,), input_weight=2.0),
        "pushing": ComponentInput(questions=("pushing",), weights=(-1.0,)),
    }
    spec = ComponentSpec(name="rubric", weight=0.5, combiner="flat", version="1", inputs=inputs, params={})
    decision = Decision(specs=(spec,))
    one = decide(decision, verdict("good", score=1.0), verdict("pushing", score=0.9, met=True, reason="it pushes"))
    assert points_of(explanation_sentences(one, decision)) == [
        "Lost 0.225: rubric 0.55 of 1, weight 0.5.",
        "  Lost 0.225: penalty pushing 0.9, weight 0.5 × -1/2 (it pushes).",
        "  Gained 0.5: good 1 of 1, weight 0.5 × 2/2.",
    ]


def test_a_pair_is_described_from_the_side_of_the_response_with_its_opponent():
    direct = verdict("better", score=0.75, about="r", responses=("r", "s"))
    mirrored = verdict("better", score=1.0, about="q", responses=("q", "r"), reason="shorter")
    decision = Decision(specs=(spec("better", 1.0),))
    questions = [
        Question(id="better", evaluator="e", version="1", subject="better", view="v", scope="pair", pairs="unordered")
    ]
    found = compute_rewards(decision, questions, ["q", "r", "s"], [direct, mirrored], {"mean": load_combiner("mean")})
    (line,) = points_of(explanation_sentences(trace(found[1], direct, mirrored), decision))
    assert line == "Lost 0.625: better 0.375 of 1, weight 1 (better against q: shorter)."


def component(name: str, combiner: str, *masses: tuple[str, float], **params: Any) -> ComponentSpec:
    inputs = {part: ComponentInput(questions=(part,), weights=(1.0,), input_weight=mass) for part, mass in masses}
    return ComponentSpec(name=name, weight=1.0, combiner=combiner, version="1", inputs=inputs, params=params)


def test_a_panel_describes_how_its_votes_become_one_level():
    spec = component("panel", "consensus", ("ada", 1.0), ("ben", 1.0), ("cy", 1.0), levels=[0.0, 0.5, 1.0])
    decision = Decision(specs=(spec,))
    votes = {"ada": 0.4, "ben": 0.5, "cy": 1.0}
    one = decide(decision, *(verdict(name, score=score) for name, score in votes.items()))
    (line,) = points_of(explanation_sentences(one, decision))
    assert line == (
        "Lost 0.5: panel 0.5 of 1, weight 1; ada 0.4, ben 0.5, cy 1; each vote rounded to the nearest of 0 and 0.5 and "
        "1; 0 × 0 + 0.5 × 1 + 1 × 0, level × probability by majority."
    )


def test_a_rubric_lists_its_criteria_and_reductions_by_unmet_prerequisites():
    rubric = component(
        "rubric", "gear", ("a", 1.0), ("b", 1.0), parents=[0], children=[1], retention=[0.2], inference="exact"
    )
    decision = Decision(specs=(rubric,))
    low, high = verdict("a", score=0.25), verdict("b", score=1.0)
    explanation = Explanation(decide(decision, low, high), decision, (), config=Config(evaluators=["criteria"]))
    assert points_of(explanation.sentences()) == [
        "Lost 0.675: rubric 0.325 of 1, weight 1; κ 1, exact inference.",
        "  Lost 0.375: a 0.25 of 1, weight 1 × 1/2.",
        "  Lost 0.3: b 0.4 of 1, weight 1 × 1/2; 0.4 = 1 × 0.4 (a at 0.25, λ 0.2).",
    ]
    one = decide(decision, verdict("a", status="abstained"), high)
    assert "b 0.2 of 1, weight 1 × 1/2; 0.2 = 1 × 0.2 (a, not judged, λ 0.2)" in str(Explanation(one, decision, ()))
    hard = Decision(specs=(rubric.model_copy(update={"combiner": "hard-local"}),))
    line = "counts 0 of its 1, because it depends on a at 0.25"
    assert line in str(Explanation(decide(hard, low, high), hard, ()))


def test_prerequisites_that_share_one_of_their_own_reduce_a_criterion_together():
    criteria = [(name, 1.0) for name in "abcd"]
    edges = {"parents": [0, 0, 1, 2], "children": [1, 2, 3, 3], "retention": [0.2] * 4}
    scores = dict(zip("abcd", (0.5, 0.9, 0.9, 0.9), strict=True))
    verdicts = [verdict(name, score=score) for name, score in scores.items()]
    for inference, shown in (
        (
            "exact",
            "d 0.4341 of 1, weight 1 × 1/4; 0.4341 = 0.9 × 0.4824 (together: b at 0.54, λ 0.2; c at 0.54, λ 0.2)",
        ),
        (
            "one-pass",
            "d 0.3595 of 1, weight 1 × 1/4; 0.3595 = 0.9 × 0.632 (b at 0.54, λ 0.2) × 0.632 (c at 0.54, λ 0.2)",
        ),
    ):
        decision = Decision(specs=(component("rubric", "gear", *criteria, **edges, inference=inference),))
        lines = explanation_sentences(decide(decision, *verdicts), decision)
        assert lines[1].endswith("; exact inference." if inference == "exact" else "; one-pass update.")
        assert any(shown in line for line in lines)


def test_a_part_without_a_verdict_is_marked_as_not_judged():
    decision = Decision(specs=(component("people", "stakeholders", ("ann", 0.5), ("ben", 0.5)),))
    failed = verdict("ben", status="failed", failure=Failure(cause="infrastructure", kind="Timeout"))
    lines = explanation_sentences(decide(decision, verdict("ann", score=0.4), failed), decision)
    assert points_of(lines)[1:] == [
        "  Lost 0.5: ben 0 of 1, weight 1 × 0.5 (not judged).",
        "  Lost 0.3: ann 0.4 of 1, weight 1 × 0.5.",
    ]
    unsure = Decision(specs=(spec_requiring(0.9, "ann"),))
    lines = explanation_sentences(decide(unsure, verdict("ann", score=0.4, confidence=0.5)), unsure)
    assert points_of(lines) == ["Lost 1: kind 0 of 1, weight 1; not judged."]


def test_parts_that_are_alike_share_a_line_with_their_number():
    names = ["ann", "ben", "cy", "dan"]
    decision = Decision(specs=(component("people", "stakeholders", *((name, 0.25) for name in names)),))
    scores = dict(zip(names, (0.5, 0.5, 1.0, 1.0), strict=True))
    verdicts = [verdict(name, score=score, reason="dull") for name, score in scores.items()]
    assert points_of(explanation_sentences(decide(decision, *verdicts), decision))[1:] == [
        "  Lost 0.25: ann, ben, each 0.5 of 1, weight 1 × 0.25 × 2 (dull).",
        "  Gained 0.5: cy, dan, each 1 of 1, weight 1 × 0.25 × 2.",
    ]


def test_rules_of_welfare_show_utilities_and_weights():
    low, high = verdict("ann", score=0.4), verdict("ben", score=1.0)
    shares = ("ann", 0.5), ("ben", 0.5)
    rule = "ann 0.4 (weight 0.5), ben 1 (weight 0.5); the sum of w × û, at most the lowest û if that is below 0.5000"
    for combiner, params, line in (
        ("nash", {}, "Lost 0.6: people 0.4 of 1, weight 1; ann 0.4 × ben 1."),
        ("egalitarian", {"floor": 0.5}, f"Lost 0.6: people 0.4 of 1, weight 1; {rule}."),
        ("egalitarian", {"floor": 0.3}, "Lost 0.3: people 0.7 of 1, weight 1."),
    ):
        decision = Decision(specs=(component("people", combiner, *shares, **params),))
        assert points_of(explanation_sentences(decide(decision, low, high), decision))[0] == line


def test_what_does_not_apply_is_never_shown_as_0():
    away, low, high = verdict("ann", status="not_applicable"), verdict("ben", score=0.4), verdict("cy", score=1.0)
    shares = ("ann", 0.5), ("ben", 0.25), ("cy", 0.25)
    for combiner, params, line in (
        ("nash", {}, "ben 0.4 × cy 1; ann not applicable"),
        ("egalitarian", {"floor": 0.5}, "ben 0.4 (weight 0.5), cy 1 (weight 0.5); ann not applicable; the sum of w"),
    ):
        decision = Decision(specs=(component("people", combiner, *shares, **params),))
        one = decide(decision, away, low, high)
        assert f"people 0.4 of 1, weight 1; {line}" in points_of(explanation_sentences(one, decision))[0]
        shown = show_lines(one, decision)
        assert "people consists of ann -, ben 0.4000, cy 1.0000" in shown
        assert "diagnostics of people: group utility 0.7000, least utility 0.4000, gini 0.2143, jain 0.8448" in shown
        table = shown[next(place for place, line in enumerate(shown) if line.startswith("stakeholder ")) :]
        assert [line.split()[-2:] for line in table[2:5]] == [["-", "-"], ["0.4000", "60%"], ["1.0000", "0%"]]
    rubric = component(
        "rubric", "gear", ("a", 1.0), ("b", 1.0), parents=[0], children=[1], retention=[0.2], inference="exact"
    )
    decision = Decision(specs=(rubric,))
    one = decide(decision, verdict("a", status="not_applicable"), verdict("b", score=1.0))
    (line,) = points_of(explanation_sentences(one, decision))
    assert line == "Lost 0.8: rubric 0.2 of 1, weight 1; 0.2 = 1 × 0.2 (a, not applicable, λ 0.2); exact inference."
    assert "rubric consists of a -, b 0.2000; exact inference" in show_lines(one, decision)
    dropping = Decision(specs=(rubric,), group_rule="drop-criterion")
    other = verdict("a", about="s", status="abstained")
    own = verdict("a", score=1.0), verdict("b", score=1.0)
    one = trace(decide(dropping, *own, other, verdict("b", about="s", score=1.0)).reward, *own)
    assert "(a, dropped for the group, λ 0.2)" in str(Explanation(one, dropping, ()))


def test_a_penalty_that_was_not_judged_says_so_where_it_costs_nothing():
    rubric = component(
        "rubric", "gear", ("a", 1.0), ("bad", 1.0), parents=[0], children=[1], retention=[0.0], inference="exact"
    )
    penalty = rubric.inputs["bad"].model_copy(update={"weights": (-1.0,)})
    rubric = rubric.model_copy(update={"inputs": {**rubric.inputs, "bad": penalty}})
    unmet, unjudged = verdict("a", score=0.0), verdict("bad", status="abstained")
    for rule, line in (
        ("conservative", "0 = 1 × 0 (a at 0, λ 0) (not judged)"),
        ("gear", "Lost 0: penalty bad 0, weight 1 × -1 (not judged)"),
    ):
        decision = Decision(specs=(rubric,), rule=rule)
        assert line in points_of(explanation_sentences(decide(decision, unmet, unjudged), decision))[-1]


def test_a_product_shows_its_factors_and_the_reasons_of_all_that_are_below_one():
    decision = Decision(specs=(component("cosine", "product", ("accuracy", 1.0), ("length", 1.0)),))
    wrong, right = (verdict("accuracy", score=score, reason="no") for score in (0.0, 1.0))
    long = verdict("length", score=0.5, reason="long")
    lines = {
        one.verdicts[0].score: points_of(explanation_sentences(one, decision))
        for one in (decide(decision, wrong, long), decide(decision, right, long))
    }
    assert lines[0.0] == ["Lost 1: cosine 0 of 1, weight 1; accuracy 0 × length 0.5 (accuracy: no; length: long)."]
    assert lines[1.0] == ["Lost 0.5: cosine 0.5 of 1, weight 1; accuracy 1 × length 0.5 (length: long)."]


def test_missing_verdicts_are_listed_with_the_range_that_they_leave_open():
    verdicts = (
        RecordedVerdict(
            subject="tone", evaluator="m", stakeholder="ann", status="abstained", reason="there is no model"
        ),
        RecordedVerdict(
            subject="facts", evaluator="f", status="failed", failure=Failure(cause="infrastructure", kind="Timeout")
        ),
        RecordedVerdict(subject="depth", evaluator="d", status="not_applicable", gated_by="facts"),
    )
    counts = Counts(judged=1, abstained=1, failed=1, not_applicable=1)
    assert sentences(trace(reward(0.5, "degraded", counts=counts, range=(0.25, 1.0)), *verdicts))[1:] == [
        "Not judged: tone of ann (m) abstained: there is no model.",
        "Not judged: facts (f) failed (infrastructure).",
        "Not applicable: depth (d), because of facts.",
        "Verdicts: 4 requested; 1 judged, 1 abstained, 1 failed, 1 not applicable.",
        "With the missing verdicts the reward would be at most from 0.25 to 1.",
    ]


def test_material_that_is_missing_or_has_a_note_is_a_sentence():
    failure = Failure(cause="response", kind="unsupported", message="nothing stands in the response")
    made = (
        Material(name="data", note="meals[0]: it is written down twice, and stated once"),
        Material(name="claims", status="failed", failure=failure),
        Material(name="other"),
    )
    lines = sentences(trace(reward()).model_copy(update={"material": made}))
    assert [s for s in lines if s.startswith("Material")] == [
        "Material data: meals[0]: it is written down twice, and stated once.",
        "Material claims: response failure: unsupported: nothing stands in the response.",
    ]


# Judges


def predicted_verdict(**fields: Any) -> RecordedVerdict:
    examples = (
        ExampleUse(item="tent", reviewer="ann", score=4.5, fingerprint="1"),
        ExampleUse(item="boots", reviewer="ann", score=2.0, fingerprint="2", dropped="of the group of the response"),
    )
    return verdict("appeal@ann", score=1.0, confidence=0.8, examples=examples, **fields)


def test_a_pair_that_was_judged_in_both_orders_shows_the_arithmetic():
    verdict = predicted_verdict(swap=Swap(given=1.0, swapped=0.25, call="s"))
    expected = [
        "examples shown: tent (ann: 4.5)",
        "example not shown: boots (ann: 2), because of the group of the response",
        "judged in both orders: (1.0000 + 1 - 0.2500) / 2 = 0.8750",
    ]
    one = trace(reward(), verdict)
    lines = show_lines(one, Decision(specs=()))
    start = lines.index(expected[0])
    assert lines[start : start + 3] == expected
    assert f"appeal@ann (e): {'; '.join(expected)}." in sentences(one)


def spec_requiring(confident: float, *questions: str, name: str = "kind", weight: float = 1.0) -> ComponentSpec:
    one = ComponentInput(questions=questions, weights=(1.0,) * len(questions), min_confidence=confident)
    return ComponentSpec(name=name, weight=weight, combiner="mean", version="1", inputs={name: one})


def discarded_lines(one: Trace, *specs: ComponentSpec) -> tuple[list[str], list[str]]:
    """Return the lines of `show` and the sentences of `explain` on discarded verdicts."""
    decision = Decision(specs=specs)
    lines = [line for line in show_lines(one, decision) if line.startswith("discarded")]
    return lines, [line for line in explanation_sentences(one, decision) if line.startswith("Discarded")]


def test_a_verdict_of_low_confidence_is_discarded_and_not_an_error():
    unsure = verdict("a", score=0.0, confidence=0.9, reason="rude")
    sure, short = verdict("b", score=0.0, confidence=0.95), verdict("c", score=0.5, confidence=0.2)
    one, spec = trace(reward(), unsure, sure, short), spec_requiring(0.95, "a", "b", "c")
    assert discarded_lines(one, spec) == (
        ["discarded: confidence 0.9000 is below 0.9500", "discarded: confidence 0.2000 is below 0.9500"],
        [
            "Discarded: a (e) scored 0, but confidence 0.9000 is below 0.9500.",
            "Discarded: c (e) scored 0.5, but confidence 0.2000 is below 0.9500.",
        ],
    )
    judged = one.model_copy(update={"reward": reward(counts=Counts(judged=3))})
    counted = explanation_sentences(judged, Decision(specs=(spec,)))
    assert "Verdicts: 3 requested; 3 judged (2 of them discarded), 0 abstained, 0 failed, 0 not applicable." in counted


def test_a_discarded_score_that_equals_the_filled_in_one_is_not_shown_as_judged():
    unsure = verdict("a", score=0.0, native=1, scale=(1, 5), confidence=0.1)
    decision = Decision(specs=(spec_requiring(0.5, "a", "b"),), min_coverage=0.3)
    lines = points_of(explanation_sentences(decide(decision, unsure, verdict("b", score=1.0)), decision))
    assert "  Lost 0.5: a 0 of 1, weight 1 × 1 × 1/2 (discarded)." in lines


def test_a_verdict_without_confidence_or_score_or_stopped_by_a_gate_is_not_discarded():
    spec = spec_requiring(0.5, "a", "b", "c")
    silent = verdict("a", score=1.0)
    abstained = verdict("b", status="abstained", confidence=0.1)
    stopped = verdict("c", score=0.0, confidence=0.0, gated_by=RESPONSE_GATES[0])
    assert discarded_lines(trace(reward(), silent, abstained, stopped), spec) == ([], [])


def test_equal_samples_give_one_reason_with_their_number():
    samples = [verdict("appeal", score=0.5, reason="dull", sample=sample) for sample in range(3)]
    term = Term(name="appeal", weight=1.0, value=0.5, contribution=0.5)
    lines = explanation_sentences(trace(reward(0.5, terms=(term,)), *samples), Decision(specs=(spec("appeal", 1.0),)))
    assert points_of(lines) == ["Lost 0.5: appeal 0.5 of 1, weight 1 (dull, 3 times)."]


def test_weights_set_by_a_judge_are_marked_as_not_fixed():
    free = trace(reward(weights_fixed=False), verdict("x", score=1.0))
    assert "The weights were not fixed before the response was seen." in sentences(free)
    note = "note      weights not fixed: a judge set them after it saw the response"
    assert note in show_lines(free, Decision(specs=()))
    assert note not in show_lines(trace(reward(), verdict("x", score=1.0)), Decision(specs=()))


def test_a_weight_set_by_a_judge_costs_nothing():
    weight, utility = verdict("weight/ann", score=0.5, reason="w"), verdict("utility/ann", score=0.5, reason="u")
    one = component("adaptive", "adaptive", ("weight", 1.0), ("utility", 1.0), people=["ann"])
    inputs = {name: ComponentInput(questions=(f"{name}/ann",), weights=(1.0,)) for name in ("utility", "weight")}
    decision = Decision(specs=(one.model_copy(update={"inputs": inputs}),))
    lines = points_of(explanation_sentences(decide(decision, weight, utility), decision))
    assert lines == ["Lost 0.5: adaptive 0.5 of 1, weight 1; ann 0.5 (weight 1) (utility/ann: u)."]
