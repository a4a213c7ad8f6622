"""What is said of a trace: each sentence from its terms, and nothing that is not in it."""

from collections.abc import Callable
from typing import Any

from jurygraph.cli.render import reward as sentences_module
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


def sentences(trace: Trace, **weights: float) -> list[str]:
    """Under a decision with one component for each question, of weight 1 unless said otherwise."""
    specs = tuple(spec(v.question, weights.get(v.question, 1.0)) for v in trace.verdicts if v.question)
    return sentences_module.sentences(trace, Decision(specs=specs))


def spec(question: str, weight: float) -> ComponentSpec:
    inputs = {question: ComponentInput(questions=(question,), weights=(1.0,))}
    direction = -1 if weight < 0 else 1
    return ComponentSpec(name=question, weight=weight, direction=direction, combiner="mean", version="1", inputs=inputs)


def verdict(subject: str, **fields: Any) -> RecordedVerdict:
    stated = {"question": subject, "subject": subject, "about": "r", "evaluator": "e"}
    return RecordedVerdict.model_validate(stated | fields)


def trace(reward: Reward, *verdicts: RecordedVerdict) -> Trace:
    return Trace(task_id="t", response_id="r", group="g", plan_digest="p", reward=reward, verdicts=verdicts)


def reward(value: float | None = 1.0, status: str = "ok", **fields: Any) -> Reward:
    stated = {"partial": value, "coverage": 1.0, "range": (1.0, 1.0), "components": {}, "terms": (), "counts": Counts()}
    return Reward(value=value, status=status, **(stated | fields))


def test_a_failed_reward_says_why_and_what_the_judged_part_would_give():
    said = sentences(trace(reward(None, "failed", partial=0.25, notes=("nothing that counts was judged",))))
    assert said[0] == "Response r to task t gets no reward: it failed; what was judged would alone give 0.25."
    assert said[1] == "Why: nothing that counts was judged."


def test_a_degraded_reward_is_called_so():
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
        "pairs: does not apply here, and counts nothing.",
        "Together: 1 + 0 + (-0.25) = 0.75.",
    ]


def test_the_sum_of_a_failed_reward_is_hypothetical():
    terms = tuple(Term(name=name, weight=1.0, value=0.5, contribution=0.5) for name in "ab")
    assert "Together it would be 0.5 + 0.5 = 1." in sentences(trace(reward(None, "failed", terms=terms)))


def test_what_a_gate_or_the_clip_changed_is_said_in_order():
    changes = (Adjustment(name="format gate", before=1.5, after=0.0), Adjustment(name="clip", before=0.0, after=0.1))
    said = sentences(trace(reward(0.1, adjustments=changes)))
    assert said[1:3] == ["The format gate changed it from 1.5 to 0.", "The clip changed it from 0 to 0.1."]


def test_what_was_wrong_comes_in_the_order_of_the_response_and_then_what_fell_short():
    late = verdict("answer", score=0.0, evidence=(Evidence(quote="26", start=90, end=92, verified=True),))
    three = Evidence(quote="3", start=4, end=5, verified=True)
    early = verdict("steps", score=0.5, met=False, reason="off", evidence=(three,))
    placeless, short, right = verdict("format", score=0.0), verdict("brief", score=0.9), verdict("x", score=1.0)
    said = sentences(trace(reward(), late, placeless, short, right, early))
    assert [s for s in said if s.startswith(("What was wrong", "Wrong", "Then", "Also", "Short"))] == [
        "What was wrong first: steps (e) scored 0.5: off, as in “3”.",
        "Then: answer (e) scored 0, as in “26”.",
        "Also wrong: format (e) scored 0.",
        "Short of the best: brief (e) scored 0.9.",
    ]


def test_a_penalty_costs_what_it_is_above_zero():
    clean, found = verdict("repetition", score=0.0), verdict("repetition", score=0.5)
    assert not any("repetition" in s for s in sentences(trace(reward(), clean), repetition=-1.0))
    assert "Short of the best: repetition (e) scored 0.5." in sentences(trace(reward(), found), repetition=-1.0)


def test_a_verdict_that_does_not_count_costs_nothing():
    assert not any("length" in s for s in sentences(trace(reward(), verdict("length", score=0.5)), length=0.0))


def test_a_pair_seen_from_the_other_side_costs_what_the_other_won():
    lost = verdict("better", score=1.0, about="other", responses=("other", "r"))
    won = verdict("better", score=0.0, about="other", responses=("other", "r"))
    assert any("better" in s for s in sentences(trace(reward(), lost)))
    assert not any("better" in s for s in sentences(trace(reward(), won)))


def test_what_does_not_stand_in_the_response_is_not_quoted_as_if_it_did():
    made_up, elsewhere = Evidence(quote="invented"), Evidence(quote="a law", source="facts")
    said = sentences(trace(reward(), verdict("truth", score=0.0, evidence=(made_up, elsewhere))))
    assert "Wrong: truth (e) scored 0, as in “a law”." in said


def test_a_long_reason_is_cut():
    long = verdict("truth", score=0.0, reason="x" * 1000)
    assert f"Wrong: truth (e) scored 0: {'x' * 299}…." in sentences(trace(reward(), long))
    missing = verdict("tone", status="abstained", reason="y" * 1000)
    assert f"Not judged: tone (e) abstained: {'y' * 299}…." in sentences(trace(reward(), missing))


def test_a_reason_that_is_a_sentence_does_not_end_twice():
    said = sentences(trace(reward(), verdict("truth", score=0.0, reason="No table names it.")))
    assert "Wrong: truth (e) scored 0: No table names it." in said


def test_a_penalty_that_is_there_is_wrong_and_one_that_is_not_is_nothing():
    pushing = ComponentInput(questions=("pushing",), weights=(-1.0,))
    spec = ComponentSpec(
        name="rubric", weight=1.0, combiner="flat", version="1", inputs={"pushing": pushing}, params={}
    )
    there, not_there = (verdict("pushing", score=score, met=met) for score, met in ((0.9, True), (0.1, False)))
    said = sentences_module.sentences(trace(reward(), there), Decision(specs=(spec,)))
    assert "Wrong: pushing (e) scored 0.9 as a penalty." in said
    said = sentences_module.sentences(trace(reward(), not_there), Decision(specs=(spec,)))
    assert not [line for line in said if line.startswith("What was wrong")]


def test_a_pair_is_told_from_the_side_of_the_response_with_its_opponent():
    asked = verdict("better", score=0.75, about="r", responses=("r", "s"))
    mirrored = verdict("better", score=1.0, about="q", responses=("q", "r"))
    undecided = verdict("better", score=0.6, met=True, about="p", responses=("p", "r"))
    said = sentences(trace(reward(), asked, mirrored, undecided))
    assert "Wrong: better against q (e) scored 0." in said
    assert "Also wrong: better against p (e) scored 0.4." in said
    assert "Short of the best: better against s (e) scored 0.75." in said


def test_a_question_that_bears_its_member_s_name_says_it_once():
    said = sentences(
        trace(reward(), verdict("s1", score=0.0, stakeholder="s1"), verdict("s2", score=0.0, reviewer="x"))
    )
    assert "Wrong: s1 (e) scored 0." in said
    assert "Also wrong: s2 of x (e) scored 0." in said


def composed(name: str, combiner: str, *masses: tuple[str, float], **params: Any) -> ComponentSpec:
    inputs = {part: ComponentInput(questions=(part,), weights=(1.0,), total_weight=mass) for part, mass in masses}
    return ComponentSpec(name=name, weight=1.0, combiner=combiner, version="1", inputs=inputs, params=params)


def told(spec: ComponentSpec, parts: dict[str, float], value: float, *verdicts: RecordedVerdict) -> list[str]:
    term = Term(name=spec.name, weight=spec.weight, value=value, contribution=value)
    one = trace(reward(value, terms=(term,), parts={spec.name: parts}), *verdicts)
    return sentences_module.sentences(one, Decision(specs=(spec,)))


def test_a_panel_says_how_its_judges_become_one_level():
    parts = {"ada": 0.25, "ben": 1.0}
    spec = composed("panel", "consensus", ("ada", 1.0), ("ben", 1.0), levels=[0.0, 0.5, 1.0])
    (made,) = (line for line in told(spec, parts, 0.5) if "made of" in line)
    assert made.endswith("ada 0.25, ben 1, each taken for the nearest of 0 and 0.5 and 1; it is what most of them say.")
    learned = spec.model_copy(update={"params": {**spec.params, "judges": {}}})
    (made,) = (line for line in told(learned, parts, 0.5) if "made of" in line)
    assert made.endswith("; it is the mean level that follows from how each of them errs.")


def test_a_rubric_says_its_criteria_and_what_an_unmet_prerequisite_held_back():
    spec = composed("rubric", "gear", ("a", 1.0), ("b", 1.0), parents=[0], children=[1], retention=[0.2])
    said = told(spec, {"a": 0.0, "b": 0.2}, 0.1, verdict("a", score=0.0), verdict("b", score=1.0))
    held = "b 0.2 (counts 0.2 of its 1, for it rests on a at 0)"
    assert said[2] == f"rubric is made of a 0, {held}."
    said = told(spec, {"a": 1.0, "b": 0.5}, 0.75, verdict("a", score=1.0), verdict("b", score=0.5))
    assert said[2] == "rubric is made of a 1, b 0.5."
    said = told(spec, {"a": 0.0, "b": 0.0}, 0.0, verdict("a", score=0.0), verdict("b", status="abstained"))
    assert said[2] == "rubric is made of a 0, b 0 (not judged)."


def test_a_part_that_was_not_judged_is_said_to_be_so():
    spec = composed("stakeholders", "stakeholders", ("ann", 0.5), ("ben", 0.5))
    failed = verdict("ben", status="failed", failure=Failure(cause="infrastructure", kind="Timeout"))
    said = told(spec, {"ann": 0.4, "ben": 0.0}, 0.2, verdict("ann", score=0.4), failed)
    assert said[2] == "stakeholders is made of ann 0.4 (weight 0.5), ben 0 (weight 0.5, not judged)."
    unsure = ComponentSpec(
        **{**dict(spec), "inputs": {"ann": ComponentInput(questions=("ann",), weights=(1.0,), confident=0.9)}}
    )
    said = told(unsure, {"ann": 0.0}, 0.0, verdict("ann", score=0.4, confidence=0.5))
    assert said[2] == "stakeholders is made of ann 0 (weight 1, discarded)."


def test_stakeholders_are_told_with_their_frozen_weights():
    spec = composed("stakeholders", "stakeholders", ("ann", 2 / 3), ("ben", 1 / 3))
    said = told(spec, {"ann": 0.4, "ben": 1.0}, 0.6, verdict("ann", score=0.4), verdict("ben", score=1.0))
    assert said[2] == "stakeholders is made of ann 0.4 (weight 0.6667), ben 1 (weight 0.3333)."
    shares = ("ann", 0.5), ("ben", 0.5)
    for combiner, params, rule in (
        ("nash", {}, "the product of the û, whatever their w"),
        ("egalitarian", {"floor": 0.5}, "the sum of w × û, and no more than the least û where that lies below 0.5000"),
    ):
        said = told(composed("people", combiner, *shares, **params), {"ann": 0.4, "ben": 1.0}, 0.4)
        assert said[2] == f"people is made of ann 0.4 (weight 0.5), ben 1 (weight 0.5), and is {rule}."


def test_what_a_product_makes_worthless_is_not_short_of_the_best():
    spec = composed("cosine", "product", ("accuracy", 1.0), ("length", 1.0))
    verdicts = verdict("accuracy", score=0.0), verdict("length", score=0.5)
    said = told(spec, {"accuracy": 0.0, "length": 0.5}, 0.0, *verdicts)
    assert "cosine is made of accuracy 0, length 0.5, and is their product." in said
    assert "Wrong: accuracy (e) scored 0." in said
    assert not any(s.startswith("Short") for s in said)
    said = told(spec, {"accuracy": 1.0, "length": 0.5}, 0.5, verdict("accuracy", score=1.0), verdicts[1])
    assert "Short of the best: length (e) scored 0.5." in said


def test_what_could_not_be_judged_is_named_with_what_it_leaves_open():
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
        "Not asked: depth (d), because of facts.",
        "Verdicts asked for: 4; judged 1, abstained 1, failed 1, not applicable 1.",
        "Whatever the missing verdicts had been, it would lie between 0.25 and 1.",
    ]


def test_a_failure_says_what_became_of_the_verdict_and_not_what_was_said_before_it():
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
    said = sentences(trace(reward()).model_copy(update={"material": made}))
    assert [s for s in said if s.startswith("Material")] == [
        "Material data: meals[0]: it is written down twice, and stated once.",
        "Material claims: response failure: unsupported: nothing stands in the response.",
    ]


def test_a_trace_shows_the_message_of_a_failure_once_and_a_line_for_material():
    failure = Failure(cause="response", kind="unsupported", message="nothing is quoted")
    differs = verdict("kind", status="failed", reason="it is kind", failure=failure)
    same = verdict("warm", status="failed", reason="nothing is quoted", failure=failure)
    one = trace(reward(), differs, same).model_copy(update={"material": (Material(name="data", note="one was lost"),)})
    shown = [line.strip() for line in trace_lines(one, Decision(specs=()))]
    assert shown.count("response failure: unsupported: nothing is quoted") == 1
    assert shown[shown.index("nothing is quoted") + 1] == "response failure: unsupported"
    assert "material data: one was lost" in shown


# Judges


def predicted(**fields: Any) -> RecordedVerdict:
    examples = (
        ExampleUse(item="tent", reviewer="ann", score=4.5, fingerprint="1"),
        ExampleUse(item="boots", reviewer="ann", score=2.0, fingerprint="2", dropped="of the group of the response"),
    )
    return verdict("appeal@ann", score=1.0, confidence=0.8, examples=examples, **fields)


def test_a_judge_is_told_with_its_confidence_and_the_examples_that_it_was_shown_and_those_not():
    told_of = [
        "confidence 0.8000",
        "shown as examples: tent (ann: 4.5)",
        "not shown: boots (ann: 2), because of the group of the response",
        "drawn by 20.0% to the 0.5000 of the aggregate judge",
    ]
    one = trace(reward(), predicted(shrinkage=Shrinkage(weight=0.2, toward=0.5, call="c")))
    lines = [line.strip() for line in trace_lines(one, Decision(specs=()))]
    start = lines.index(told_of[0])
    assert lines[start : start + 4] == told_of
    assert f"appeal@ann (e): {'; '.join(told_of[1:])}." in sentences(one)


def test_the_examples_of_the_aggregate_judge_are_told_apart_from_those_of_the_reviewer_s_own():
    others = (
        ExampleUse(item="stove", reviewer="ben", score=3.0, fingerprint="3"),
        ExampleUse(item="socks", reviewer="cy", score=1.0, fingerprint="4", dropped="the prompt was full"),
    )
    one = trace(reward(), predicted(shrinkage=Shrinkage(weight=0.2, toward=0.5, examples=others)))
    told_of = [
        "shown as examples: tent (ann: 4.5)",
        "not shown: boots (ann: 2), because of the group of the response",
        "drawn by 20.0% to the 0.5000 of the aggregate judge",
        "the aggregate judge was shown: stove (ben: 3)",
        "the aggregate judge was not shown: socks (cy: 1), because the prompt was full",
    ]
    lines = [line.strip() for line in trace_lines(one, Decision(specs=()))]
    start = lines.index(told_of[0])
    assert lines[start : start + 5] == told_of
    assert f"appeal@ann (e): {'; '.join(told_of)}." in sentences(one)


def test_each_of_several_samples_is_told_with_its_own_examples():
    drawn = [(ExampleUse(item=item, reviewer="ann", score=4.0, fingerprint=item),) for item in ("tent", "boots")]
    samples = [verdict("appeal@ann", score=1.0, sample=place, examples=one) for place, one in enumerate(drawn)]
    one = trace(reward(), *samples, verdict("tone", score=1.0))
    said = sentences(one)
    assert "appeal@ann (e), sample 1: shown as examples: tent (ann: 4)." in said
    assert "appeal@ann (e), sample 2: shown as examples: boots (ann: 4)." in said
    heads = [line.split("  (")[0].strip() for line in trace_lines(one, Decision(specs=())) if line.endswith("(e )")]
    assert heads == ["appeal@ann, sample 1 of 2  1.0000", "appeal@ann, sample 2 of 2  1.0000", "tone  1.0000"]


def heard_from(confident: float, *questions: str, name: str = "kind", weight: float = 1.0) -> ComponentSpec:
    one = ComponentInput(questions=questions, weights=(1.0,) * len(questions), confident=confident)
    return ComponentSpec(name=name, weight=weight, combiner="mean", version="1", inputs={name: one})


def discards(one: Trace, *specs: ComponentSpec) -> tuple[list[str], list[str]]:
    """What `show` and `explain` say was discarded."""
    decision = Decision(specs=specs)
    shown = [line.strip() for line in trace_lines(one, decision) if line.strip().startswith("discarded")]
    return shown, [line for line in sentences_module.sentences(one, decision) if line.startswith("Discarded")]


def test_a_verdict_of_which_its_judge_was_not_sure_enough_is_discarded_and_nothing_that_was_wrong():
    unsure = verdict("a", score=0.0, confidence=0.9, reason="rude")
    sure, short = verdict("b", score=0.0, confidence=0.95), verdict("c", score=0.5, confidence=0.2)
    one, spec = trace(reward(), unsure, sure, short), heard_from(0.95, "a", "b", "c")
    assert discards(one, spec) == (
        ["discarded: confidence 0.9000 is below 0.9500", "discarded: confidence 0.2000 is below 0.9500"],
        [
            "Discarded: a (e): it scored 0, but confidence 0.9000 is below 0.9500.",
            "Discarded: c (e): it scored 0.5, but confidence 0.2000 is below 0.9500.",
        ],
    )
    said = sentences_module.sentences(one, Decision(specs=(spec,)))
    assert [s for s in said if s.startswith(("What was wrong", "Wrong", "Then", "Also", "Short"))] == [
        "Wrong: b (e) scored 0."
    ]


def test_of_several_samples_those_are_named_that_were_discarded():
    samples = [verdict("a", score=0.5, confidence=sure, sample=place) for place, sure in enumerate((0.9, 0.1))]
    _, said = discards(trace(reward(), *samples), heard_from(0.5, "a"))
    assert said == ["Discarded: a (e), sample 2: it scored 0.5, but confidence 0.1000 is below 0.5000."]


def test_what_has_no_confidence_or_no_score_or_was_stopped_by_a_gate_is_not_discarded():
    spec = heard_from(0.5, "a", "b", "c")
    silent = verdict("a", score=1.0)
    abstained = verdict("b", status="abstained", confidence=0.1)
    stopped = verdict("c", score=0.0, confidence=0.0, gated_by=RESPONSE_GATES[0])
    assert discards(trace(reward(), silent, abstained, stopped), spec) == ([], [])


def test_what_one_component_that_counts_hears_is_not_discarded():
    one = trace(reward(), verdict("a", score=0.0, confidence=0.6))
    strict, mild = heard_from(0.9, "a"), heard_from(0.5, "a", name="mild")
    assert discards(one, strict, mild) == ([], [])
    shown = mild.model_copy(update={"weight": 0.0})
    assert discards(one, strict, shown)[0] == ["discarded: confidence 0.6000 is below 0.9000"]


def test_what_samples_say_alike_is_said_once():
    samples = [verdict("appeal@ann", score=0.5, reason="dull", sample=sample) for sample in range(3)]
    said = [line for line in sentences(trace(reward(), *samples)) if "dull" in line]
    assert said == ["Short of the best: appeal@ann (e) scored 0.5: dull."]


def test_weights_that_a_judge_gave_are_said_to_be_no_plan_s():
    free = trace(reward(weights_fixed=False), verdict("x", score=1.0))
    assert "The weights were not fixed before the response was seen." in sentences(free)
    note = "note      weights not fixed: a judge gave them once it had seen the response"
    assert note in trace_lines(free, Decision(specs=()))
    assert note not in trace_lines(trace(reward(), verdict("x", score=1.0)), Decision(specs=()))


def test_what_somebody_weighs_is_not_short_of_the_best():
    weight, utility = verdict("weight/ann", score=0.5), verdict("utility/ann", score=0.5)
    one = composed("adaptive", "adaptive", ("weight", 1.0), ("utility", 1.0))
    inputs = {name: ComponentInput(questions=(f"{name}/ann",), weights=(1.0,)) for name in ("weight", "utility")}
    said = told(one.model_copy(update={"inputs": inputs}), {}, 0.5, weight, utility)
    assert [line for line in said if line.startswith("Short")] == ["Short of the best: utility/ann (e) scored 0.5."]


def rubric_of(criteria: int) -> tuple[Trace, Decision]:
    """A chain of criteria under GEAR: every other one falls short, and every third is not judged."""
    names = [f"c{number}" for number in range(criteria)]
    inputs = {name: ComponentInput(questions=(name,), weights=(1.0,)) for name in names}
    params = {"parents": list(range(criteria - 1)), "children": list(range(1, criteria))}
    component = ComponentSpec(name="rubric", weight=1.0, combiner="gear", version="1", inputs=inputs, params=params)
    judged = [
        verdict(name, status="abstained") if place % 3 == 2 else verdict(name, score=0.5 + place % 2 / 2)
        for place, name in enumerate(names)
    ]
    term = Term(name="rubric", weight=1.0, value=0.25, contribution=0.25)
    parts = {"rubric": dict.fromkeys(names, 0.25)}
    return trace(reward(0.25, terms=(term,), parts=parts), *judged), Decision(specs=(component,))


def test_a_rubric_of_four_times_as_many_criteria_takes_about_four_times_as_many_steps():
    def explain(criteria: int) -> Callable[[], object]:
        found, decision = rubric_of(criteria)
        return lambda: sentences_module.sentences(found, decision)

    assert growth(explain, 50) < 6


def test_each_criterion_names_its_own_prerequisite():
    said = "\n".join(sentences_module.sentences(*rubric_of(4)))
    assert "c1 0.25 (counts 0.25 of its 1, for it rests on c0 at 0.25)" in said
    assert "c2 0.25 (not judged)" in said
    assert "c3 0.25 (counts 0.25 of its 1, for it rests on c2, not judged)" in said
