"""Views of an explained trace: every sentence and line follows from the trace and its decision."""

from collections.abc import Callable
from typing import Any

from jurygraph.cli.render.explanation import Explanation
from jurygraph.cli.render.sentences import sentences as to_sentences
from jurygraph.cli.render.trace import trace_lines
from jurygraph.schema import (
    RESPONSE_GATES,
    Adjustment,
    ComponentInput,
    ComponentSpec,
    Counts,
    Decision,
    Evidence,
    ExampleUse,
    Failure,
    Material,
    RecordedVerdict,
    Reward,
    Shrinkage,
    Term,
    Trace,
)
from tests.steps import growth


def explanation_sentences(trace: Trace, decision: Decision) -> list[str]:
    return to_sentences(Explanation(trace, decision))


def show_lines(trace: Trace, decision: Decision) -> list[str]:
    return [line.strip() for line in trace_lines(Explanation(trace, decision))]


def sentences(trace: Trace, **weights: float) -> list[str]:
    """Return the sentences under a decision with one component for each question, of weight 1 by default."""
    specs = tuple(spec(v.question, weights.get(v.question, 1.0)) for v in trace.verdicts if v.question)
    return explanation_sentences(trace, Decision(specs=specs))


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


def test_a_degraded_reward_is_called_degraded():
    assert sentences(trace(reward(0.5, "degraded")))[0] == "Response r to task t gets 0.5, a degraded reward."


def test_each_term_is_weight_times_value_and_they_add_up():
    terms = (
        Term(name="accuracy", weight=1.0, value=1.0, contribution=1.0),
        Term(name="repetition", weight=-0.2, value=0.0, contribution=-0.0),
        Term(name="length", weight=-0.5, value=0.5, contribution=-0.25),
        Term(name="pairs", weight=1.0, value=None, contribution=None),
    )
    assert sentences(trace(reward(0.75, terms=terms)))[1:6] == [
        "accuracy: weight 1 × value 1 = 1.",
        "repetition: weight -0.2 × value 0 = 0.",
        "length: weight -0.5 × value 0.5 = -0.25.",
        "pairs: not applicable, no effect.",
        "Sum: 1 + 0 + (-0.25) = 0.75.",
    ]


def test_the_sum_of_a_failed_reward_is_hypothetical():
    terms = tuple(Term(name=name, weight=1.0, value=0.5, contribution=0.5) for name in "ab")
    assert "The sum would be 0.5 + 0.5 = 1." in sentences(trace(reward(None, "failed", terms=terms)))


def test_changes_by_gates_and_clip_are_listed_in_order():
    changes = (Adjustment(name="format gate", before=1.5, after=0.0), Adjustment(name="clip", before=0.0, after=0.1))
    lines = sentences(trace(reward(0.1, adjustments=changes)))
    assert lines[1:3] == ["The format gate changed it from 1.5 to 0.", "The clip changed it from 0 to 0.1."]


def test_errors_follow_the_order_of_the_response_and_precede_deductions():
    late = verdict("answer", score=0.0, evidence=(Evidence(quote="26", start=90, end=92, verified=True),))
    three = Evidence(quote="3", start=4, end=5, verified=True)
    early = verdict("steps", score=0.5, met=False, reason="off", evidence=(three,))
    placeless, short, right = verdict("format", score=0.0), verdict("brief", score=0.9), verdict("x", score=1.0)
    lines = sentences(trace(reward(), late, placeless, short, right, early))
    assert [s for s in lines if "error" in s or s.startswith(("Error", "Deduction"))] == [
        "First error: steps (e) scored 0.5: off, as in “3”.",
        "Next error: answer (e) scored 0, as in “26”.",
        "Further error: format (e) scored 0.",
        "Deduction: brief (e) scored 0.9.",
    ]


def test_a_penalty_above_zero_is_a_deduction():
    clean, found = verdict("repetition", score=0.0), verdict("repetition", score=0.5)
    assert not any("repetition" in s for s in sentences(trace(reward(), clean), repetition=-1.0))
    assert "Deduction: repetition (e) scored 0.5." in sentences(trace(reward(), found), repetition=-1.0)


def test_a_verdict_that_does_not_count_costs_nothing():
    assert not any("length" in s for s in sentences(trace(reward(), verdict("length", score=0.5)), length=0.0))


def test_a_pair_won_by_the_other_response_is_an_error():
    lost = verdict("better", score=1.0, about="other", responses=("other", "r"))
    won = verdict("better", score=0.0, about="other", responses=("other", "r"))
    assert any("better" in s for s in sentences(trace(reward(), lost)))
    assert not any("better" in s for s in sentences(trace(reward(), won)))


def test_a_quotation_that_was_not_found_in_the_response_is_omitted():
    made_up, elsewhere = Evidence(quote="invented"), Evidence(quote="a law", source="facts")
    lines = sentences(trace(reward(), verdict("truth", score=0.0, evidence=(made_up, elsewhere))))
    assert "Error: truth (e) scored 0, as in “a law”." in lines


def test_a_long_reason_is_shortened():
    long = verdict("truth", score=0.0, reason="x" * 1000)
    assert f"Error: truth (e) scored 0: {'x' * 299}…." in sentences(trace(reward(), long))
    missing = verdict("tone", status="abstained", reason="y" * 1000)
    assert f"Not judged: tone (e) abstained: {'y' * 299}…." in sentences(trace(reward(), missing))


def test_a_reason_with_a_full_stop_gets_no_second_one():
    lines = sentences(trace(reward(), verdict("truth", score=0.0, reason="No table names it.")))
    assert "Error: truth (e) scored 0: No table names it." in lines


def test_a_penalty_that_is_met_is_an_error_and_an_unmet_one_is_not():
    pushing = ComponentInput(questions=("pushing",), weights=(-1.0,))
    spec = ComponentSpec(
        name="rubric", weight=1.0, combiner="flat", version="1", inputs={"pushing": pushing}, params={}
    )
    there, not_there = (verdict("pushing", score=score, met=met) for score, met in ((0.9, True), (0.1, False)))
    lines = explanation_sentences(trace(reward(), there), Decision(specs=(spec,)))
    assert "Error: pushing (e) scored 0.9 as a penalty." in lines
    lines = explanation_sentences(trace(reward(), not_there), Decision(specs=(spec,)))
    assert not [line for line in lines if "rror" in line]


def test_a_pair_is_described_from_the_side_of_the_response_with_its_opponent():
    direct = verdict("better", score=0.75, about="r", responses=("r", "s"))
    mirrored = verdict("better", score=1.0, about="q", responses=("q", "r"))
    undecided = verdict("better", score=0.6, met=True, about="p", responses=("p", "r"))
    lines = sentences(trace(reward(), direct, mirrored, undecided))
    assert "Error: better against q (e) scored 0." in lines
    assert "Further error: better against p (e) scored 0.4." in lines
    assert "Deduction: better against s (e) scored 0.75." in lines


def test_a_question_named_after_its_member_has_the_name_once():
    lines = sentences(
        trace(reward(), verdict("s1", score=0.0, stakeholder="s1"), verdict("s2", score=0.0, reviewer="x"))
    )
    assert "Error: s1 (e) scored 0." in lines
    assert "Further error: s2 of x (e) scored 0." in lines


def component(name: str, combiner: str, *masses: tuple[str, float], **params: Any) -> ComponentSpec:
    inputs = {part: ComponentInput(questions=(part,), weights=(1.0,), input_weight=mass) for part, mass in masses}
    return ComponentSpec(name=name, weight=1.0, combiner=combiner, version="1", inputs=inputs, params=params)


def component_sentences(
    spec: ComponentSpec, parts: dict[str, float], value: float, *verdicts: RecordedVerdict
) -> list[str]:
    term = Term(name=spec.name, weight=spec.weight, value=value, contribution=value)
    one = trace(reward(value, terms=(term,), parts={spec.name: parts}), *verdicts)
    return explanation_sentences(one, Decision(specs=(spec,)))


def test_a_panel_describes_how_its_votes_become_one_level():
    parts = {"ada": 0.25, "ben": 1.0}
    spec = component("panel", "consensus", ("ada", 1.0), ("ben", 1.0), levels=[0.0, 0.5, 1.0])
    (made,) = (line for line in component_sentences(spec, parts, 0.5) if "consists of" in line)
    assert made.endswith(
        "ada 0.25, ben 1, each rounded to the nearest of 0 and 0.5 and 1; it is the level of the majority."
    )
    learned = spec.model_copy(update={"params": {**spec.params, "judges": {}}})
    (made,) = (line for line in component_sentences(learned, parts, 0.5) if "consists of" in line)
    assert made.endswith("; it is the mean level, given how often each judge errs.")


def test_a_rubric_lists_its_criteria_and_reductions_by_unmet_prerequisites():
    spec = component("rubric", "gear", ("a", 1.0), ("b", 1.0), parents=[0], children=[1], retention=[0.2])
    lines = component_sentences(spec, {"a": 0.0, "b": 0.2}, 0.1, verdict("a", score=0.0), verdict("b", score=1.0))
    reduced = "b 0.2 (counts 0.2 of its 1, because it depends on a at 0)"
    assert lines[2] == f"rubric consists of a 0, {reduced}."
    lines = component_sentences(spec, {"a": 1.0, "b": 0.5}, 0.75, verdict("a", score=1.0), verdict("b", score=0.5))
    assert lines[2] == "rubric consists of a 1, b 0.5."
    lines = component_sentences(
        spec, {"a": 0.0, "b": 0.0}, 0.0, verdict("a", score=0.0), verdict("b", status="abstained")
    )
    assert lines[2] == "rubric consists of a 0, b 0 (not judged)."


def test_a_part_without_a_verdict_is_marked_as_not_judged():
    spec = component("stakeholders", "stakeholders", ("ann", 0.5), ("ben", 0.5))
    failed = verdict("ben", status="failed", failure=Failure(cause="infrastructure", kind="Timeout"))
    lines = component_sentences(spec, {"ann": 0.4, "ben": 0.0}, 0.2, verdict("ann", score=0.4), failed)
    assert lines[2] == "stakeholders consists of ann 0.4 (weight 0.5), ben 0 (weight 0.5, not judged)."
    unsure = ComponentSpec(
        **{**dict(spec), "inputs": {"ann": ComponentInput(questions=("ann",), weights=(1.0,), min_confidence=0.9)}}
    )
    lines = component_sentences(unsure, {"ann": 0.0}, 0.0, verdict("ann", score=0.4, confidence=0.5))
    assert lines[2] == "stakeholders consists of ann 0 (weight 1, discarded)."


def test_stakeholders_are_listed_with_their_weights():
    spec = component("stakeholders", "stakeholders", ("ann", 2 / 3), ("ben", 1 / 3))
    lines = component_sentences(
        spec, {"ann": 0.4, "ben": 1.0}, 0.6, verdict("ann", score=0.4), verdict("ben", score=1.0)
    )
    assert lines[2] == "stakeholders consists of ann 0.4 (weight 0.6667), ben 1 (weight 0.3333)."
    shares = ("ann", 0.5), ("ben", 0.5)
    for combiner, params, rule in (
        ("nash", {}, "the product of all û, regardless of w"),
        ("egalitarian", {"floor": 0.5}, "the sum of w × û, at most the lowest û if that is below 0.5000"),
    ):
        lines = component_sentences(component("people", combiner, *shares, **params), {"ann": 0.4, "ben": 1.0}, 0.4)
        assert lines[2] == f"people consists of ann 0.4 (weight 0.5), ben 1 (weight 0.5); it is {rule}."


def test_a_product_that_is_zero_has_deductions_for_its_zeros_only():
    spec = component("cosine", "product", ("accuracy", 1.0), ("length", 1.0))
    verdicts = verdict("accuracy", score=0.0), verdict("length", score=0.5)
    lines = component_sentences(spec, {"accuracy": 0.0, "length": 0.5}, 0.0, *verdicts)
    assert "cosine consists of accuracy 0, length 0.5; it is their product." in lines
    assert "Error: accuracy (e) scored 0." in lines
    assert not any(s.startswith("Deduction") for s in lines)
    lines = component_sentences(
        spec, {"accuracy": 1.0, "length": 0.5}, 0.5, verdict("accuracy", score=1.0), verdicts[1]
    )
    assert "Deduction: length (e) scored 0.5." in lines


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
        "With the missing verdicts the reward would be between 0.25 and 1.",
    ]


def test_a_failure_message_replaces_the_reason():
    failure = Failure(cause="response", kind="unsupported", message="the judge says kind, and nothing is quoted")
    lost = verdict("kind", status="failed", reason="it is kind", failure=failure)
    assert "Not judged: kind (e) failed (response): the judge says kind, and nothing is quoted." in sentences(
        trace(reward(), lost)
    )


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


def test_a_trace_shows_the_message_of_a_failure_once_and_a_line_for_material():
    failure = Failure(cause="response", kind="unsupported", message="nothing is quoted")
    differs = verdict("kind", status="failed", reason="it is kind", failure=failure)
    same = verdict("warm", status="failed", reason="nothing is quoted", failure=failure)
    one = trace(reward(), differs, same).model_copy(update={"material": (Material(name="data", note="one was lost"),)})
    lines = show_lines(one, Decision(specs=()))
    assert lines.count("response failure: unsupported: nothing is quoted") == 1
    assert lines[lines.index("nothing is quoted") + 1] == "response failure: unsupported"
    assert "material data: one was lost" in lines


# Judges


def predicted_verdict(**fields: Any) -> RecordedVerdict:
    examples = (
        ExampleUse(item="tent", reviewer="ann", score=4.5, fingerprint="1"),
        ExampleUse(item="boots", reviewer="ann", score=2.0, fingerprint="2", dropped="of the group of the response"),
    )
    return verdict("appeal@ann", score=1.0, confidence=0.8, examples=examples, **fields)


def test_a_judge_is_listed_with_its_confidence_and_its_examples():
    expected = [
        "confidence 0.8000",
        "examples shown: tent (ann: 4.5)",
        "example not shown: boots (ann: 2), because of the group of the response",
        "shrunk by 20.0% towards 0.5000, the score of the aggregate judge",
    ]
    one = trace(reward(), predicted_verdict(shrinkage=Shrinkage(weight=0.2, toward=0.5, call="c")))
    lines = show_lines(one, Decision(specs=()))
    start = lines.index(expected[0])
    assert lines[start : start + 4] == expected
    assert f"appeal@ann (e): {'; '.join(expected[1:])}." in sentences(one)


def test_the_examples_of_the_aggregate_judge_have_a_line_of_their_own():
    others = (
        ExampleUse(item="stove", reviewer="ben", score=3.0, fingerprint="3"),
        ExampleUse(item="socks", reviewer="cy", score=1.0, fingerprint="4", dropped="the prompt was full"),
    )
    one = trace(reward(), predicted_verdict(shrinkage=Shrinkage(weight=0.2, toward=0.5, examples=others)))
    expected = [
        "examples shown: tent (ann: 4.5)",
        "example not shown: boots (ann: 2), because of the group of the response",
        "shrunk by 20.0% towards 0.5000, the score of the aggregate judge",
        "examples shown to the aggregate judge: stove (ben: 3)",
        "example not shown to the aggregate judge: socks (cy: 1), because the prompt was full",
    ]
    lines = show_lines(one, Decision(specs=()))
    start = lines.index(expected[0])
    assert lines[start : start + 5] == expected
    assert f"appeal@ann (e): {'; '.join(expected)}." in sentences(one)


def test_each_sample_is_listed_with_its_own_examples():
    drawn = [(ExampleUse(item=item, reviewer="ann", score=4.0, fingerprint=item),) for item in ("tent", "boots")]
    samples = [verdict("appeal@ann", score=1.0, sample=place, examples=one) for place, one in enumerate(drawn)]
    one = trace(reward(), *samples, verdict("tone", score=1.0))
    lines = sentences(one)
    assert "appeal@ann (e), sample 1: examples shown: tent (ann: 4)." in lines
    assert "appeal@ann (e), sample 2: examples shown: boots (ann: 4)." in lines
    heads = [line.split("  (")[0] for line in show_lines(one, Decision(specs=())) if line.endswith("(e )")]
    assert heads == ["appeal@ann, sample 1 of 2  1.0000", "appeal@ann, sample 2 of 2  1.0000", "tone  1.0000"]


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
    lines = explanation_sentences(one, Decision(specs=(spec,)))
    assert [s for s in lines if "error" in s or s.startswith(("Error", "Deduction"))] == ["Error: b (e) scored 0."]


def test_discarded_samples_are_numbered():
    samples = [verdict("a", score=0.5, confidence=sure, sample=place) for place, sure in enumerate((0.9, 0.1))]
    _, lines = discarded_lines(trace(reward(), *samples), spec_requiring(0.5, "a"))
    assert lines == ["Discarded: a (e), sample 2 scored 0.5, but confidence 0.1000 is below 0.5000."]


def test_a_verdict_without_confidence_or_score_or_stopped_by_a_gate_is_not_discarded():
    spec = spec_requiring(0.5, "a", "b", "c")
    silent = verdict("a", score=1.0)
    abstained = verdict("b", status="abstained", confidence=0.1)
    stopped = verdict("c", score=0.0, confidence=0.0, gated_by=RESPONSE_GATES[0])
    assert discarded_lines(trace(reward(), silent, abstained, stopped), spec) == ([], [])


def test_a_verdict_that_counts_in_one_component_is_not_discarded():
    one = trace(reward(), verdict("a", score=0.0, confidence=0.6))
    strict, mild = spec_requiring(0.9, "a"), spec_requiring(0.5, "a", name="mild")
    assert discarded_lines(one, strict, mild) == ([], [])
    show_lines = mild.model_copy(update={"weight": 0.0})
    assert discarded_lines(one, strict, show_lines)[0] == ["discarded: confidence 0.6000 is below 0.9000"]


def test_equal_samples_give_one_sentence():
    samples = [verdict("appeal@ann", score=0.5, reason="dull", sample=sample) for sample in range(3)]
    lines = [line for line in sentences(trace(reward(), *samples)) if "dull" in line]
    assert lines == ["Deduction: appeal@ann (e) scored 0.5: dull."]


def test_weights_set_by_a_judge_are_marked_as_not_fixed():
    free = trace(reward(weights_fixed=False), verdict("x", score=1.0))
    assert "The weights were not fixed before the response was seen." in sentences(free)
    note = "note      weights not fixed: a judge set them after it saw the response"
    assert note in show_lines(free, Decision(specs=()))
    assert note not in show_lines(trace(reward(), verdict("x", score=1.0)), Decision(specs=()))


def test_a_weight_set_by_a_judge_is_not_a_deduction():
    weight, utility = verdict("weight/ann", score=0.5), verdict("utility/ann", score=0.5)
    one = component("adaptive", "adaptive", ("weight", 1.0), ("utility", 1.0))
    inputs = {name: ComponentInput(questions=(f"{name}/ann",), weights=(1.0,)) for name in ("weight", "utility")}
    lines = component_sentences(one.model_copy(update={"inputs": inputs}), {}, 0.5, weight, utility)
    assert [line for line in lines if line.startswith("Deduction")] == ["Deduction: utility/ann (e) scored 0.5."]


def make_rubric(criteria: int) -> tuple[Trace, Decision]:
    """Return a chain of criteria under GEAR: every other one is not fully met, and every third is not judged."""
    names = [f"c{number}" for number in range(criteria)]
    inputs = {name: ComponentInput(questions=(name,), weights=(1.0,)) for name in names}
    params = {"parents": list(range(criteria - 1)), "children": list(range(1, criteria))}
    component = ComponentSpec(name="rubric", weight=1.0, combiner="gear", version="1", inputs=inputs, params=params)
    verdicts = [
        verdict(name, status="abstained") if place % 3 == 2 else verdict(name, score=0.5 + place % 2 / 2)
        for place, name in enumerate(names)
    ]
    term = Term(name="rubric", weight=1.0, value=0.25, contribution=0.25)
    parts = {"rubric": dict.fromkeys(names, 0.25)}
    return trace(reward(0.25, terms=(term,), parts=parts), *verdicts), Decision(specs=(component,))


def test_a_rubric_of_four_times_as_many_criteria_takes_about_four_times_as_many_steps():
    def make_explanation(criteria: int) -> Callable[[], object]:
        found, decision = make_rubric(criteria)
        return lambda: explanation_sentences(found, decision)

    assert growth(make_explanation, 50) < 6


def test_each_criterion_names_its_own_prerequisite():
    lines = "\n".join(explanation_sentences(*make_rubric(4)))
    assert "c1 0.25 (counts 0.25 of its 1, because it depends on c0 at 0.25)" in lines
    assert "c2 0.25 (not judged)" in lines
    assert "c3 0.25 (counts 0.25 of its 1, because it depends on c2, not judged)" in lines
