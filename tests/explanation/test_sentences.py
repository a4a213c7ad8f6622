"""Views of an explained trace: every sentence and line follows from the trace and its decision."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.registry import load_combiner
from jurygraph.cli.render.trace import format_trace_lines
from jurygraph.decision.decide import compute_rewards
from jurygraph.explanation import Explanation
from jurygraph.explanation.changes import Change, change_sentences, revise
from jurygraph.explanation.points import describe_losses
from jurygraph.explanation.terms import ExplainedVerdict
from jurygraph.schema import (
    ComponentInput,
    ComponentSpec,
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
from jurygraph.schema.verdict import RESPONSE_GATES, ScoreCalibration
from jurygraph.views.trace import build_trace_view
from tests.rows import all_rows
from tests.runs.investigations import Investigator, judge


def finite(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_subnormal=False)


def explain(trace: Trace, decision: Decision) -> Explanation:
    return Explanation(trace, decision, questions_of(decision, trace.verdicts))


def questions_of(decision: Decision, verdicts: Sequence[RecordedVerdict]) -> list[Question]:
    """Return the questions of a decision and of verdicts, with the pairs and samples that these have."""
    by_question: dict[str, list[RecordedVerdict]] = {}
    for one in decision.specs:
        for use in one.inputs.values():
            by_question.update((name, []) for name in use.questions)
    for one_verdict in verdicts:
        by_question.setdefault(one_verdict.question, []).append(one_verdict)
    questions = []
    for name, answers in by_question.items():
        is_pair = any(len(answer.responses) == 2 for answer in answers)
        question = Question(
            id=name,
            evaluator="e",
            version="1",
            subject=answers[0].subject if answers else name,
            view="v",
            scope="pair" if is_pair else "response",
            pairs="unordered",
            samples=1 + max((answer.sample for answer in answers), default=0),
            judges=tuple(dict.fromkeys(filter(None, (answer.judge for answer in answers)))),
        )
        questions.append(question)
    return questions


def explanation_sentences(trace: Trace, decision: Decision) -> list[str]:
    return explain(trace, decision).sentences()


def show_lines(trace: Trace, decision: Decision) -> list[str]:
    return [line.strip() for line in format_trace_lines(build_trace_view(explain(trace, decision)))]


def sentences(trace: Trace) -> list[str]:
    """Return the sentences under a decision with one component of weight 1 for each question."""
    return explanation_sentences(
        trace, Decision(specs=tuple(spec(v.question, 1.0) for v in trace.verdicts))
    )


def decide(decision: Decision, *verdicts: RecordedVerdict) -> Trace:
    """Return the trace of response `r` with the reward that the decision gives its verdicts."""
    questions = questions_of(decision, verdicts)
    names = sorted({"r"}.union(*({v.about, *v.responses} for v in verdicts)))
    combiners = {one.combiner: load_combiner(one.combiner) for one in decision.specs}
    found = dict(
        zip(names, compute_rewards(decision, questions, names, verdicts, combiners), strict=True)
    )
    return trace(found["r"], *verdicts)


def point_lines(decision: Decision, *verdicts: RecordedVerdict) -> list[str]:
    return points_of(explanation_sentences(decide(decision, *verdicts), decision))


def points_of(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip().startswith(("Lost", "Gained"))]


def spec(question: str, weight: float) -> ComponentSpec:
    inputs = {question: ComponentInput(questions=(question,), weights=(1.0,))}
    direction = -1 if weight < 0 else 1
    return ComponentSpec(
        name=question,
        weight=weight,
        direction=direction,
        combiner="mean",
        version="1",
        inputs=inputs,
    )


def verdict(subject: str, **fields: Any) -> RecordedVerdict:
    defaults = {"question": subject, "subject": subject, "about": "r", "evaluator": "e"}
    return RecordedVerdict.model_validate(defaults | fields)


def trace(reward: Reward, *verdicts: RecordedVerdict) -> Trace:
    return Trace(
        task_id="t", response_id="r", group="g", plan_digest="p", reward=reward, verdicts=verdicts
    )


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
    terms = (Term(name="a", weight=1.0, value=0.5, contribution=0.5),)
    lines = sentences(
        trace(reward(None, "failed", partial=0.25, terms=terms, notes=("nothing was judged",)))
    )
    assert lines[:2] == [
        "Response r to task t gets no reward: it failed; the judged part alone would give 0.25.",
        "Why: nothing was judged.",
    ]
    assert "The sum would be 1 at best - 0.5 = 0.5." in lines
    # as stored, without the setting
    note = "0.667 of the weight was judged, and 0.8 is asked for"
    lines = sentences(trace(reward(None, "failed", partial=0.25, terms=terms, notes=(note,))))
    assert lines[1] == f"Why: {note} (failure.min_coverage)."
    open_range = reward(None, "failed", partial=0.25, terms=terms, range=(0.5, 1.0))
    start = "With what is missing as the conservative rule counts it, the sum would be 1"
    assert f"{start} at best - 0.5 = 0.5." in sentences(trace(open_range))


def test_each_term_is_weight_times_value_and_they_add_up():
    terms = (
        Term(name="accuracy", weight=1.0, value=1.0, contribution=1.0),
        Term(name="repetition", weight=-0.2, value=0.0, contribution=-0.0),
        Term(name="length", weight=-0.5, value=0.5, contribution=-0.25),
        Term(name="pairs", weight=1.0, value=None, contribution=None),
        Term(name="steps", weight=0.0, value=0.5, contribution=0.0),
        Term(name="told with its verdicts", weight=0.0, value=None, contribution=None),
    )
    assert sentences(trace(reward(0.75, terms=terms)))[1:7] == [
        "Lost 0.25: penalty length 0.5, weight -0.5.",
        "Gained 1: accuracy 1 of 1, weight 1.",
        "Lost 0: penalty repetition 0, weight -0.2.",
        "Sum: 1 at best - 0.25 = 0.75.",
        "Not applicable, no effect: pairs.",
        "Weight 0, no points: steps 0.5.",
    ]


def test_a_part_that_another_component_counts_is_not_said_to_have_no_points() -> None:
    rules = Decision(specs=(component("c", "mean", *AB), spec("a", 0.0), spec("d", 0.0)))
    shown = explanation_sentences(decide(rules, LOW, HIGH, verdict("d", score=0.5)), rules)
    assert [line for line in shown if "Weight 0" in line] == ["Weight 0, no points: d 0.5."]


@given(st.lists(st.tuples(finite(-5, 5), finite(0, 1)), min_size=1, max_size=6))
def test_points_are_weight_times_value_and_the_most_expensive_come_first(
    drawn: list[tuple[float, float]],
):
    terms = tuple(
        Term(name=f"t{place}", weight=weight, value=value, contribution=weight * value)
        for place, (weight, value) in enumerate(drawn)
        if weight
    )
    lines = explain(trace(reward(0.0, terms=terms)), Decision(specs=())).lines
    for line in lines:
        exact = line.weight * line.value
        assert (line.points, line.lost) == (exact, max(line.weight, 0.0, exact) - exact)
    lost = [round(line.lost, 4) for line in lines]
    assert lost == sorted(lost, reverse=True)
    assert len(lines) == len(terms)


def test_the_ten_changes_that_gain_most_are_printed():
    def change(condition: str, value: float | None) -> Change:
        return Change(
            kind="verdict", name="n", condition=condition, value=value, gain=value and value - 0.5
        )

    changes = [change(f"c{place} were met", 0.75) for place in range(12)]
    assert list(change_sentences(changes))[-3:] == [
        "If c9 were met: 0.75 (+0.25).",
        "... and 2 more (--json).",
        "12 of 12 single changes would raise it.",
    ]
    assert list(change_sentences([], has_reward=False)) == [
        "0 of 0 single changes would give it a reward."
    ]
    assert next(change_sentences([change("d were 1", 0.50003)])) == "If d were 1: 0.5 (+0.00003)."


def test_a_loss_by_calibration_has_its_reason():
    fitted = ScoreCalibration(method="platt", labels=9, scores=(0.0, 1.0), calibrated=(0.1, 0.25))
    one = ComponentInput(questions=("truth",), weights=(1.0,), calibration={"truth": fitted})
    component = ComponentSpec(
        name="truth", weight=1.0, combiner="mean", version="1", inputs={"truth": one}
    )
    decision = Decision(specs=(component,))
    lines = explanation_sentences(
        decide(decision, verdict("truth", score=1.0, reason="all right")), decision
    )
    assert lines[1] == "Lost 0.75: truth 0.25 of 1, weight 1 (1, calibrated to 0.25: all right)."


GATES: dict[str, Any] = {
    "format": FormatGate(component="polite", below=0.4),
    "precision": PrecisionShaping(
        component="polite", below=0.4, auxiliary=("steps",), fraction=0.25
    ),
    "repetition": RepetitionControl(component="polite", above=0.4),
}


@all_rows(
    ("gate", "polite", "line"),
    [
        ("format", 0.2, "Format gate: polite 0.2 < 0.4 → reward 0 (before: 1.2) (rude)."),
        ("format", 0.4, "Format gate: polite 0.4 ≥ 0.4: no effect."),
        ("precision", 0.2, "Precision gate: polite 0.2 < 0.4 → reward 0.45 (before: 1.2) (rude)."),
        (
            "repetition",
            0.8,
            "Repetition gate: polite 0.8 > 0.4 → reward 0.36 (before: 1.8) (rude).",
        ),
        ("repetition", 0.2, "Repetition gate: polite 0.2 ≤ 0.4: no effect."),
    ],
)
def test_a_gate_names_component_value_threshold_and_effect(gate: str, polite: float, line: str):
    decision = Decision(specs=(spec("polite", 1.0), spec("steps", 1.0)), gates=(GATES[gate],))
    one = decide(
        decision, verdict("polite", score=polite, reason="rude"), verdict("steps", score=1.0)
    )
    sentences = explanation_sentences(one, decision)
    assert line in sentences
    (result,) = one.reward.gates
    cost_most = result.before - result.after > 1.0 - polite
    assert (sentences[1] == line) is cost_most, "what cost the most comes first"
    assert (result.component, result.value, result.threshold) == ("polite", polite, 0.4)
    assert (result.before, result.after) == (polite + 1.0, one.reward.value)


def test_a_gate_says_what_counts_of_a_component_below_0_and_no_reason_that_speaks_for_the_response():
    weights = {"kind": 1.0, "lies": -2.0}
    inputs = {name: ComponentInput(questions=(name,), weights=(w,)) for name, w in weights.items()}
    rubric = ComponentSpec(name="rubric", weight=1.0, combiner="flat", version="1", inputs=inputs)
    gate = PrecisionShaping(component="rubric", below=0.5, auxiliary=("polite",), fraction=0.5)
    decision = Decision(specs=(rubric, spec("polite", 1.0)), gates=(gate,))
    one = decide(
        decision,
        verdict("kind", score=0.9, met=True, reason="its tone is kind"),
        verdict("lies", score=1.0, met=True, reason="a false date"),
        verdict("polite", score=1.0),
    )
    assert (
        "Precision gate: rubric 0 (its -0.1 counts as 0) < 0.5 → reward 0.4 (before: 0.9) "
        "(a false date)."
    ) in explanation_sentences(one, decision)


def test_a_gate_that_a_missing_verdict_could_open_takes_the_worst_case():
    halves = ComponentInput(questions=("a", "b"), weights=(1.0, 1.0))
    polite = ComponentSpec(
        name="polite", weight=1.0, combiner="mean", version="1", inputs={"polite": halves}
    )
    gate = PrecisionShaping(component="polite", below=0.7, auxiliary=("polite",), fraction=0.5)
    decision = Decision(specs=(polite,), gates=(gate,), min_coverage=0.0, rule="gear")
    one = decide(decision, verdict("a", score=1.0), verdict("b", status="abstained"))
    (line,) = (line for line in explanation_sentences(one, decision) if "gate" in line)
    assert line.startswith(
        "Precision gate: polite 0.5 at worst (verdicts are missing) < 0.7 → reward 0.25 ("
    )


def test_scale_and_clip_are_listed_in_order():
    decision = Decision(specs=(spec("polite", 1.0),), scale=3.0, clip=(0.0, 1.0))
    lines = explanation_sentences(decide(decision, verdict("polite", score=0.5)), decision)
    assert lines[3:5] == ["Scale: 0.5 × 3 = 1.5.", "Clip to 0 to 1: 1.5 → 1."]


def quoted(*evidence: Evidence, **fields: Any) -> dict[str, Any]:
    return {"score": 0.0, "evidence": evidence, **fields}


@all_rows(
    ("fields", "weight", "line"),
    [
        (
            {"score": 0.25, "native": 2, "scale": (1, 5), "reason": "thin"},
            1.0,
            "Lost 0.75: truth 2 on a scale of 1 to 5 (0.25), weight 1 (thin).",
        ),
        ({"score": 0.0}, -1.0, "Lost 0: penalty truth 0, weight -1."),
        (
            {"score": 0.5, "reason": "twice"},
            -1.0,
            "Lost 0.5: penalty truth 0.5, weight -1 (twice).",
        ),
        (
            {"score": 0.0, "reason": "x" * 1000},
            1.0,
            f"Lost 1: truth 0 of 1, weight 1 ({'x' * 299}…).",
        ),
        (  # a quotation that was not found in the response is omitted
            quoted(
                Evidence(quote="invented"),
                Evidence(quote="a law", source="facts"),
                reason="No table names it.",
            ),
            1.0,
            "Lost 1: truth 0 of 1, weight 1 (No table names it, as in “a law”).",
        ),
        (  # words that a tool found are not those of the response
            quoted(
                Evidence(quote="90 euros", verified=True),
                Evidence(quote="120 euros", source="tool:1", verified=True),
                reason="wrong price",
            ),
            1.0,
            "Lost 1: truth 0 of 1, weight 1 (wrong price, as in “90 euros”, “120 euros” (tool:1)).",
        ),
        (  # a quotation beside one in the reason is another finding
            quoted(
                Evidence(quote="2 * 2 = 5", verified=True),
                Evidence(quote="3 * 2 = 7", verified=True),
                reason="'2 * 2 = 5', but it is 4",
            ),
            1.0,
            "Lost 1: truth 0 of 1, weight 1 ('2 * 2 = 5', but it is 4, as in “3 * 2 = 7”).",
        ),
    ],
)
def test_a_line_shows_value_weight_and_reason(fields: dict[str, Any], weight: float, line: str):
    decision = Decision(specs=(spec("truth", weight),))
    assert point_lines(decision, verdict("truth", **fields)) == [line]
    sentences = explanation_sentences(decide(decision, verdict("truth", **fields)), decision)
    misquotes = [sentence for sentence in sentences if "Quotes what" in sentence]
    expected = []
    if "names it" in line:
        expected = ["Quotes what is not in the response: truth (e): 'invented'."]
    assert misquotes == expected


def test_a_pair_is_described_from_the_side_of_the_response_with_its_opponent():
    direct = verdict("better", score=0.75, about="r", responses=("r", "s"))
    mirrored = verdict("better", score=1.0, about="q", responses=("q", "r"), reason="shorter")
    decision = Decision(specs=(spec("better", 1.0),))
    questions = [
        Question(
            id="better",
            evaluator="e",
            version="1",
            subject="better",
            view="v",
            scope="pair",
            pairs="unordered",
        )
    ]
    found = compute_rewards(
        decision, questions, ["q", "r", "s"], [direct, mirrored], {"mean": load_combiner("mean")}
    )
    (line,) = points_of(explanation_sentences(trace(found[1], direct, mirrored), decision))
    assert line == "Lost 0.625: better 0.375 of 1, weight 1 (better against q: shorter)."


def component(name: str, combiner: str, *masses: tuple[str, float], **params: Any) -> ComponentSpec:
    """Return a component with an input for each name and weight; a criterion of negative weight is a penalty."""
    inputs = {
        part: ComponentInput(
            questions=(part,), weights=(1.0 if mass > 0 else -1.0,), input_weight=abs(mass)
        )
        for part, mass in masses
    }
    return ComponentSpec(
        name=name, weight=1.0, combiner=combiner, version="1", inputs=inputs, params=params
    )


def chain(
    combiner: str, *masses: tuple[str, float], kept: float = 0.2, inference: str = "exact"
) -> ComponentSpec:
    """Return a rubric whose second criterion depends on the first."""
    edges = {"parents": [0], "children": [1], "retention": [kept]}
    return component("rubric", combiner, *masses, **edges, inference=inference)


AB = (("a", 1.0), ("b", 1.0))
LOW, HIGH = verdict("a", score=0.25), verdict("b", score=1.0)
FAILED = Failure(cause="infrastructure", kind="Timeout")
LEVELS = {"levels": [0.0, 0.5, 1.0]}
DIAMOND = {
    "parents": [0, 0, 1, 2],
    "children": [1, 2, 3, 3],
    "retention": [0.2] * 4,
    "inference": "one-pass",
}


@all_rows(
    ("component", "verdicts", "lines"),
    [
        (  # a penalty has a negative share of the weight of what gains
            component("rubric", "flat", ("good", 2.0), ("pushing", -1.0)),
            [
                verdict("good", score=1.0),
                verdict("pushing", score=0.9, met=True, reason="it pushes"),
            ],
            [
                "Lost 0.45: rubric 0.55 of 1, weight 1.",
                "  Lost 0.45: penalty pushing 0.9, weight -0.5 (it pushes).",
                "  Gained 1: good 1 of 1, weight 1.",
            ],
        ),
        (
            component("panel", "consensus", ("ada", 1.0), ("ben", 1.0), ("cy", 1.0), **LEVELS),
            [verdict("ada", score=0.4), verdict("ben", score=0.5), verdict("cy", score=1.0)],
            [
                "Lost 0.5: panel 0.5 of 1, weight 1; ada 0.4, ben 0.5, cy 1; each vote rounded to the nearest of 0 and "
                "0.5 and 1; 0 × 0 + 0.5 × 1 + 1 × 0, level × probability by majority."
            ],
        ),
        (
            chain("gear", *AB),
            [LOW, HIGH],
            [
                "Lost 0.675: rubric 0.325 of 1, weight 1; exact inference.",
                "  Lost 0.375: a 0.25 of 1, weight 0.5.",
                "  Lost 0.3: b 0.4 of 1, weight 0.5; 0.4 = 1 × 0.4, by a at 0.25, λ 0.2.",
            ],
        ),
        (
            chain("hard-local", *AB),
            [LOW, HIGH],
            [
                "Lost 0.875: rubric 0.125 of 1, weight 1.",
                "  Lost 0.5: b 0 of 1, weight 0.5; 0 = 1 × 0, by a at 0.25.",
                "  Lost 0.375: a 0.25 of 1, weight 0.5.",
            ],
        ),
        (
            component("rubric", "gear", *((name, 1.0) for name in "abcd"), **DIAMOND),
            [verdict(name, score=0.5 if name == "a" else 0.9) for name in "abcd"],
            [
                "Lost 0.5151: rubric 0.4849 of 1, weight 1; one-pass update.",
                "  Lost 0.23: b, c, each 0.54 of 1, weight 0.25 × 2; 0.54 = 0.9 × 0.6, by a at 0.5, λ 0.2.",
                "  Lost 0.1601: d 0.3595 of 1, weight 0.25; 0.3595 = 0.9 × 0.3994, by b at 0.54, λ 0.2; c at 0.54, "
                "λ 0.2.",
                "  Lost 0.125: a 0.5 of 1, weight 0.25.",
            ],
        ),
        (  # what does not apply is never shown as 0
            chain("gear", *AB),
            [verdict("a", status="not_applicable"), HIGH],
            [
                "Lost 0.8: rubric 0.2 of 1, weight 1; 0.2 = 1 × 0.2, by a without a value, λ 0.2; exact inference."
            ],
        ),
        (
            component("people", "stakeholders", ("ann", 0.5), ("ben", 0.5)),
            [verdict("ann", score=0.4), verdict("ben", status="failed", failure=FAILED)],
            [
                "Lost 0.8: people 0.2 of 1, weight 1.",
                "  Lost 0.5: ben 0 of 1, weight 0.5 (not judged).",
                "  Lost 0.3: ann 0.4 of 1, weight 0.5.",
            ],
        ),
        (  # parts that are alike share a line with their number
            component(
                "people", "stakeholders", *((name, 0.25) for name in ("ann", "ben", "cy", "dan"))
            ),
            [
                verdict(name, score=0.5 if name < "c" else 1.0, reason="dull", native=name < "c")
                for name in ("ann", "ben", "cy", "dan")
            ],
            [
                "Lost 0.25: people 0.75 of 1, weight 1.",
                "  Lost 0.25: ann, ben, each 0.5 of 1, weight 0.25 × 2 (dull).",
                "  Gained 0.5: cy, dan, each 1 of 1, weight 0.25 × 2.",
            ],
        ),
        (
            component("people", "nash", ("ann", 0.5), ("ben", 0.25), ("cy", 0.25)),
            [
                verdict("ann", status="not_applicable"),
                verdict("ben", score=0.4),
                verdict("cy", score=1.0),
            ],
            ["Lost 0.6: people 0.4 of 1, weight 1; ben 0.4 × cy 1; ann not applicable."],
        ),
        (
            component("people", "egalitarian", ("ann", 0.5), ("ben", 0.5), floor=0.5),
            [verdict("ann", score=0.4), verdict("ben", score=1.0)],
            [
                "Lost 0.6: people 0.4 of 1, weight 1; ann 0.4 (weight 0.5), ben 1 (weight 0.5); the sum of w × û, at "
                "most the lowest û if that is below 0.5000."
            ],
        ),
        (
            component("cosine", "product", ("accuracy", 1.0), ("length", 1.0)),
            [
                verdict("accuracy", score=0.0, reason="no"),
                verdict("length", score=0.5, reason="long"),
            ],
            [
                "Lost 1: cosine 0 of 1, weight 1; accuracy 0 × length 0.5 (accuracy: no; length: long)."
            ],
        ),
    ],
)
def test_a_component_consists_of_its_parts(
    component: ComponentSpec, verdicts: list[RecordedVerdict], lines: list[str]
):
    decision = Decision(specs=(component,), min_coverage=0.0)
    explanation = explain(decide(decision, *verdicts), decision)
    assert points_of(explanation.sentences()) == lines


def test_a_prerequisite_that_is_unsupported_in_a_sample_counts_as_unmet_and_the_line_says_so() -> (
    None
):
    """Its own score is the mean of its samples; for what depends on it the unsupported one decides."""
    samples = [verdict("a", score=0.8, sample=sample) for sample in range(2)]
    samples.append(verdict("a", score=0.0, sample=2, unsupported="worst-case"))
    decision = Decision(specs=(chain("gear", *AB, kept=0.0),))
    assert point_lines(decision, *samples, verdict("b", score=0.94)) == [
        "Lost 0.7333: rubric 0.2667 of 1, weight 1; exact inference.",
        "  Lost 0.5: b 0 of 1, weight 0.5; 0 = 0.94 × 0, by a at 0.5333 (unsupported in 1 of 3 verdicts: it "
        "counts as unmet for gains that depend on it, and as met for penalties), λ 0.",
        "  Lost 0.2333: a 0.5333 of 1, weight 0.5 (no quotation bears it out, counts 0: ).",
    ]


def test_a_criterion_that_the_judge_finds_met_is_not_uncertain_where_a_prerequisite_takes_most_of_it():
    """It said "met, not certain (0.17)", of a judge that was sure at 0.85."""
    verdicts = [verdict("a", score=0.0, met=False), verdict("b", score=0.85, met=True)]
    line = point_lines(Decision(specs=(chain("gear", *AB, kept=0.2),)), *verdicts)[-1]
    assert (
        "b met (0.85), reduced by what it depends on (0.17), weight 0.5; 0.17 = 0.85 × 0.2" in line
    )
    tried = revise(verdict("a", score=0.875, native=4.5, scale=(1, 5), reason="four and a half"), 1)
    assert (tried.native, tried.reason) == (5, "a score that was tried")


def test_a_penalty_that_was_not_judged_says_so_where_it_costs_nothing():
    rubric = chain("gear", ("a", 1.0), ("bad", -1.0), kept=0.0)
    unmet, unjudged = verdict("a", score=0.0), verdict("bad", status="abstained")
    for rule, line in (
        ("conservative", "; 0 = 1 × 0, by a at 0, λ 0 (not judged)"),
        ("gear", "Lost 0: penalty bad 0, weight -1 (not judged)"),
    ):
        decision = Decision(specs=(rubric,), rule=rule)
        assert line in point_lines(decision, unmet, unjudged)[-1]


def test_missing_verdicts_are_listed_with_the_range_that_they_leave_open():
    verdicts = (
        verdict("tone", stakeholder="ann", status="abstained", reason="there is no model"),
        verdict("facts", status="failed", failure=FAILED),
        verdict("depth", status="not_applicable", gated_by="facts"),
    )
    counts = Counts(judged=1, abstained=1, failed=1, not_applicable=1)
    assert sentences(trace(reward(0.5, "degraded", counts=counts, range=(0.25, 1.0)), *verdicts))[
        1:
    ] == [
        "Not judged, abstained: tone of ann (e): there is no model.",
        "Not judged, failed (infrastructure): facts (e).",
        "Not applicable: depth (e): because of facts.",
        "Verdicts: 4 requested; 1 judged, 1 abstained, 1 failed, 1 not applicable.",
        "With what is missing the reward would be between 0.25 and 1.",
    ]


# `show`


def test_show_has_the_parts_of_a_component_and_the_utilities_of_people():
    decision = Decision(
        specs=(component("people", "nash", ("ann", 0.5), ("ben", 0.25), ("cy", 0.25)),)
    )
    away = verdict("ann", status="not_applicable")
    shown = show_lines(
        decide(decision, away, verdict("ben", score=0.4), verdict("cy", score=1.0)), decision
    )
    assert "people consists of ann -, ben 0.4000, cy 1.0000" in shown
    assert (
        "diagnostics of people: group utility 0.7000, least utility 0.4000, gini 0.2143, jain 0.8448"
        in shown
    )
    table = shown[
        next(place for place, line in enumerate(shown) if line.startswith("stakeholder ")) :
    ]
    assert [line.split()[-2:] for line in table[2:5]] == [
        ["-", "-"],
        ["0.4000", "60%"],
        ["1.0000", "0%"],
    ]


def test_show_has_the_weights_of_criteria_where_they_differ():
    judged = verdict("good", score=0.5), verdict("pushing", score=1.0)
    for weight, beside in ((-1.0, "good 0.5000 (weight 2), pushing 1.0000 (weight -1)"), (2.0, "")):
        parts = ("good", 2.0), ("pushing", weight)
        decision = Decision(specs=(component("rubric", "flat", *parts),))
        shown = show_lines(decide(decision, *judged), decision)
        expected = beside or "good 0.5000, pushing 1.0000"
        assert any(line.startswith(f"rubric consists of {expected}") for line in shown)


def test_show_has_what_a_prediction_was_made_from_and_what_material_lacks():
    examples = (
        ExampleUse(item="tent", reviewer="ann", score=4.5, fingerprint="1"),
        ExampleUse(
            item="boots",
            reviewer="ann",
            score=2.0,
            fingerprint="2",
            dropped="of the group of the response",
        ),
    )
    swap = Swap(given=1.0, swapped=0.25, call="s")
    one = trace(reward(), verdict("appeal", score=1.0, examples=examples, swap=swap))
    failure = Failure(
        cause="response", kind="unsupported", message="nothing stands in the response"
    )
    made = (
        Material(name="data", note="meals[0]: it is written down twice"),
        Material(name="claims", status="failed", failure=failure),
    )
    lines = show_lines(one.model_copy(update={"material": made}), Decision(specs=()))
    for line in (
        "example tent (ann: 4.5) shown",
        "example boots (ann: 2) not shown, because of the group of the response",
        "judged in both orders: (1.0000 + 1 - 0.2500) / 2",
        "material data: meals[0]: it is written down twice",
        "material claims: response failure: unsupported: nothing stands in the response",
    ):
        assert line in lines


@all_rows(
    ("verdicts", "line"),
    [
        ([0.5, 0.5, 1.0], "2 × 0.5, 1 × 1"),
        ([0.5, 1.0, None], "1 × 0.5, 1 × 1, 1 × abstained; no majority"),
        ([0.5, 0.5, -1.0], "2 × 0.5, 1 × discarded"),
    ],
)
def test_show_has_each_vote_with_its_majority(verdicts: list[float | None], line: str):
    votes = ComponentInput(questions=("a",), weights=(1.0,), reduce="majority", min_confidence=0.5)
    decision = Decision(specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": votes}}),))
    samples = [
        verdict("a", status="abstained", sample=place)
        if score is None
        else verdict("a", score=abs(score), confidence=0.1 if score < 0 else 0.9, sample=place)
        for place, score in enumerate(verdicts)
    ]
    term = Term(name="a", weight=1.0, value=None, contribution=None)
    assert f"a: vote on a: {line}" in show_lines(trace(reward(terms=(term,)), *samples), decision)


def test_of_votes_that_differ_no_verdict_is_missing():
    """Every vote was cast, so that the reward depends on a majority, not on a verdict."""
    inputs = ComponentInput(questions=("a",), weights=(1.0,), reduce="majority")
    decision = Decision(specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": inputs}}),))
    votes = [verdict("a", score=score, sample=sample) for sample, score in enumerate((0, 0.5, 1))]
    lines = explanation_sentences(decide(decision, *votes), decision)
    (points,) = points_of(lines)
    assert points.endswith("no majority (0.0000, 0.5000, 1.0000), so the failure rule counts.")
    assert lines[-1] == "With what is missing the reward would be between 0 and 1."


def test_a_product_that_an_answer_decides_is_not_called_filled_in_for_another_one():
    inputs = {
        name: ComponentInput(questions=(name,), weights=(1.0,), reduce="majority") for name in "ab"
    }
    product = spec("a", 1.0).model_copy(update={"combiner": "product", "inputs": inputs})
    split = [verdict("b", score=score, sample=sample) for sample, score in enumerate((0, 0.5, 1))]
    titles = []
    for score in (0.0, None):
        status = "abstained" if score is None else "ok"
        answer = verdict("a", score=score, status=status)
        decision = Decision(specs=(product,))
        (line,) = explain(decide(decision, answer, *split), decision).lines
        titles.append(line.title)
    assert titles == ["a", "a (filled in by the failure rule)"]


def test_a_prediction_without_a_majority_is_not_told_as_the_score_that_fills_it_in():
    """A vote may have the value by which the failure rule replaces them."""
    inputs = ComponentInput(questions=("a", "b"), weights=(1.0, 1.0), reduce="majority")
    decision = Decision(specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": inputs}}),))
    stars = [
        verdict("a", score=(native - 1) / 6, native=native, scale=(1, 7), sample=sample)
        for sample, native in enumerate((2, 4, 1))
    ]
    points = "".join(point_lines(decision, *stars, verdict("b", score=1.0)))
    assert "no majority (2 of 7, 4 of 7, 1 of 7), so the failure rule counts" in points
    assert "1 on a scale" not in points


def spec_requiring(confident: float, *questions: str) -> ComponentSpec:
    one = ComponentInput(
        questions=questions, weights=(1.0,) * len(questions), min_confidence=confident
    )
    return ComponentSpec(
        name="kind", weight=1.0, combiner="mean", version="1", inputs={"kind": one}
    )


def test_a_verdict_of_low_confidence_is_discarded_and_not_an_error():
    unsure = verdict("a", score=0.0, confidence=0.9, reason="rude")
    silent = verdict("b", score=1.0)
    abstained = verdict("c", status="abstained", confidence=0.1)
    stopped = verdict("d", score=0.0, confidence=0.0, gated_by=RESPONSE_GATES[0])
    one = trace(reward(counts=Counts(judged=3, abstained=1)), unsure, silent, abstained, stopped)
    decision = Decision(specs=(spec_requiring(0.95, "a", "b", "c", "d"),))
    shown = [line for line in show_lines(one, decision) if "discarded: " in line]
    assert shown == ["confidence 0.9000, discarded: it is below min_confidence, 0.9500"]
    lines = explanation_sentences(one, decision)
    assert [line for line in lines if line.startswith("Discarded")] == [
        "Discarded: a (e): confidence 0.9000 is below 0.9500 (panel.min_confidence, or the input's own)."
    ]
    assert any("; 2 judged (1 of them discarded), 1 set by " in line for line in lines)


def test_a_discarded_score_that_equals_the_filled_in_one_is_not_shown_as_judged():
    unsure = verdict("a", score=0.0, native=1, scale=(1, 5), confidence=0.1)
    decision = Decision(specs=(spec_requiring(0.5, "a", "b"),), min_coverage=0.3)
    assert "  Lost 0.5: a 0 of 1, weight 0.5 (discarded)." in point_lines(
        decision, unsure, verdict("b", score=1.0)
    )


def test_equal_samples_give_one_reason_with_their_number():
    samples = [verdict("appeal", score=0.5, reason="dull", sample=sample) for sample in range(3)]
    term = Term(name="appeal", weight=1.0, value=0.5, contribution=0.5)
    lines = explanation_sentences(
        trace(reward(0.5, terms=(term,)), *samples), Decision(specs=(spec("appeal", 1.0),))
    )
    assert points_of(lines) == ["Lost 0.5: appeal 0.5 of 1, weight 1 (dull, 3 times)."]


def test_judges_that_differ_and_the_judge_of_each_reason_are_named():
    votes = [
        verdict("a", score=score, judge=judge, reason=reason)
        for judge, score, reason in (("kind", 1.0, ""), ("strict", 0.0, "rude"), ("third", 1.0, ""))
    ]
    term = Term(name="a", weight=1.0, value=1.0, contribution=1.0)
    inputs = ComponentInput(questions=("a",), weights=(1.0,), reduce="majority", has_judges=True)
    decision = Decision(specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": inputs}}),))
    won = explanation_sentences(trace(reward(1.0, terms=(term,)), *votes), decision)
    split = "weight 1; judges differ, and a majority decides: kind 1, strict 0, third 1"
    assert points_of(won) == [f"Gained 1: a 1 of 1, {split}."]
    lost = term.model_copy(update={"value": 0.5, "contribution": 0.5})
    lines = explanation_sentences(trace(reward(0.5, terms=(lost,)), *votes), decision)
    assert points_of(lines) == [f"Lost 0.5: a 0.5 of 1, {split} (strict: rude)."]
    # however sure each is that it is not met, all say the same
    unsure = [
        verdict("a", score=score, met=False, judge=judge)
        for judge, score in (("kind", 0.4), ("strict", 0.1))
    ]
    near = term.model_copy(update={"value": 0.25, "contribution": 0.25})
    (line,) = points_of(
        explanation_sentences(trace(reward(0.25, terms=(near,)), *unsure), decision)
    )
    assert "differ" not in line
    agreed = [verdict("a", score=0.0, judge=judge, reason="rude") for judge in ("kind", "strict")]
    none = term.model_copy(update={"value": 0.0, "contribution": 0.0})
    lines = explanation_sentences(trace(reward(0.0, terms=(none,)), *agreed), decision)
    assert points_of(lines) == ["Lost 1: a 0 of 1, weight 1 (kind, strict: rude)."]


@all_rows(
    "answers, line",
    [
        # a praise is no reason for the loss
        (
            {"mini": 4, "strong": 5},
            "no majority (mini 4 of 5, strong 5 of 5), so the worst case counts",
        ),
        (
            {"mini": 1, "strong": 5},
            "no majority (mini 1 of 5, strong 5 of 5), so the worst case counts (mini: said mini)",
        ),
    ],
)
def test_judges_without_a_majority_are_said_with_their_answers_and_what_counts(
    answers: dict[str, int], line: str
) -> None:
    votes = []
    for name, native in answers.items():
        outcome = {"score": (native - 1) / 4, "native": native, "scale": (1, 5)}
        votes.append(verdict("a", judge=name, reason=f"said {name}", **outcome))
    inputs = ComponentInput(questions=("a",), weights=(1.0,), reduce="majority", has_judges=True)
    decision = Decision(
        specs=(spec("a", 1.0).model_copy(update={"inputs": {"a": inputs}}),), min_coverage=0.0
    )
    term = Term(name="a", weight=1.0, value=0.0, contribution=0.0)
    (points,) = points_of(
        explanation_sentences(trace(reward(0.0, terms=(term,)), *votes), decision)
    )
    assert points == f"Lost 1: a 0 of 1, weight 1; {line}."


def test_a_question_of_a_panel_is_named_with_the_judge_whose_answer_it_is():
    """It was named once for each judge, by its id alone: `a, a`."""
    inputs = {
        judge: ComponentInput(questions=("a", "b"), weights=(1.0, 1.0), judge=judge)
        for judge in ("kind", "strict")
    }
    panel = spec("rubric", 1.0).model_copy(update={"inputs": inputs, "combiner": "panel"})
    votes = [
        verdict(name, score=0.5 if (name, judge) == ("a", "kind") else 0.0, judge=judge)
        for name in "ab"
        for judge in inputs
    ]
    assert point_lines(Decision(specs=(panel,)), *votes) == [
        "Lost 0.875: rubric 0.125 of 1, weight 1.",
        "  Lost 0.75: a by strict, b by kind, b by strict, each 0 of 1, weight 0.25 × 3.",
        "  Lost 0.125: a by kind 0.5 of 1, weight 0.25.",
    ]


def test_weights_set_by_a_judge_are_marked_as_not_fixed():
    free = trace(reward(weights_fixed=False), verdict("x", score=1.0))
    assert "The weights were not fixed before the response was seen." in sentences(free)
    note = "note      weights not fixed: a judge set them after it saw the response"
    assert note in show_lines(free, Decision(specs=()))
    assert note not in show_lines(trace(reward(), verdict("x", score=1.0)), Decision(specs=()))


def test_a_weight_set_by_a_judge_costs_nothing():
    weight, utility = (
        verdict("weight/ann", score=0.5, reason="w"),
        verdict("utility/ann", score=0.5, reason="u"),
    )
    one = component("adaptive", "adaptive", ("weight", 1.0), ("utility", 1.0), people=["ann"])
    inputs = {
        name: ComponentInput(questions=(f"{name}/ann",), weights=(1.0,))
        for name in ("utility", "weight")
    }
    decision = Decision(specs=(one.model_copy(update={"inputs": inputs}),))
    lines = point_lines(decision, weight, utility)
    assert lines == ["Lost 0.5: adaptive 0.5 of 1, weight 1; ann 0.5 (weight 1) (utility/ann: u)."]


def test_a_cap_names_the_hard_constraints_that_set_it() -> None:
    questions = ("cost", "meat", "quiet")
    inputs = {"ann": ComponentInput(questions=questions, weights=(1.0, 1.0, 1.0))}
    stakeholders = component("stakeholders", "stakeholders", hard={"ann": [0, 1]}, cap=0.5)
    decision = Decision(specs=(stakeholders.model_copy(update={"inputs": inputs}),))
    scores = {"cost": 0.0, "meat": 1.0, "quiet": 0.25}
    verdicts = [verdict(name, score=score, reason="why") for name, score in scores.items()]
    (line,) = point_lines(decision, *verdicts)
    assert "; 0.4167, capped by its hard constraints: cost (cost, quiet: why)" in line


def test_more_quotations_than_are_listed_are_counted() -> None:
    evidence = [Evidence(quote=f"item {n}", source="data", verified=True) for n in range(10)]
    sum_verdict = verdict("sum", score=0.0, reason="is 9", evidence=evidence)
    explained = ExplainedVerdict(sum_verdict, 0.0, 0.0, None, 0.0, 1, False)
    assert describe_losses([explained]) == ("is 9, as in “item 0”, “item 1”, “item 2”, and 7 more")


def test_a_quotation_is_told_with_its_message_which_a_verdict_on_a_turn_has_in_its_name() -> None:
    def quote_in(message: int, **fields: Any) -> str:
        evidence = [Evidence(quote="pay(9)", message=message, verified=True)]
        costly = verdict("sum", score=0.0, evidence=evidence, **fields)
        return describe_losses([ExplainedVerdict(costly, 0.0, 0.0, None, 0.0, 1, False)])

    assert quote_in(4, reason="too much") == "too much, as in “pay(9)” in message 4 of the response"
    assert quote_in(4, reason="never: pay(9)") == "never: pay(9), as in message 4 of the response"
    stored = "messages[4].tool_calls[0].function.arguments: is no JSON of an object"
    said = "message 4 of the response, tool_calls[0].function.arguments: is no JSON of an object"
    assert quote_in(4, reason=stored).startswith(said)
    assert quote_in(4, reason="too much", turn=4) == "too much, as in “pay(9)”"


def test_of_turns_the_guilty_come_before_those_where_the_judge_is_not_sure() -> None:
    verdicts = []
    for turn, score in enumerate((0.08, 0.92, 0.05)):
        on_turn = verdict("rude", score=score, met=score > 0.5, reason=f"{score:g}", turn=turn)
        verdicts.append(ExplainedVerdict(on_turn, score, score, None, 0.0, -1, False))
    assert describe_losses(verdicts).startswith("rude in turn 1: 0.92; rude in turn 0: 0.08; ")


@pytest.mark.parametrize("direction", [1, -1])
def test_of_many_reasons_those_that_cost_the_most_are_shown(direction: int):
    scores = {"little": 0.9, "half": 0.5, "most": 0.1, "some": 0.7, "all": None, "unfounded": 0.0}
    verdicts = []
    for reason, score in scores.items():
        counted = score
        if direction < 0 and score:
            counted = 1.0 - score
        fields: dict[str, Any] = {"score": counted, "reason": reason}
        if score is None:
            fields = {"status": "abstained"}
        if reason == "unfounded":
            fields["unsupported"] = "worst-case"
        explained = ExplainedVerdict(
            verdict(reason, **fields), counted, counted, None, 0.0, direction, False
        )
        verdicts.append(explained)
    unfounded = f"no quotation bears it out, counts {int(direction < 0)}: unfounded"
    losses = describe_losses(verdicts)
    assert losses == f"all: not judged; unfounded: {unfounded}; most: most; and 3 more"


def test_a_judge_that_looked_up_nothing_is_named() -> None:
    trace, _ = judge(Investigator(lambda request, step: {"met": False}))
    assert "Looked up nothing for c1." in str(trace.explain()).splitlines()


def test_an_investigation_is_told_step_by_step() -> None:
    def look(request: Any, step: int) -> Any:
        if step == 0:
            return [("price", {"item": "room"}), ("dream", {}), ("price", {"item": "yacht"})]
        return {"met": False}

    trace, _ = judge(Investigator(look))
    told = [line for line in str(trace.explain()).splitlines() if line.startswith("Looked up")]
    assert told == [
        "Looked up for c1: price, then a tool that is not there (unknown-tool), then price (error)."
    ]
