"""One trace in full, as lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from jurygraph.cli.contrasts import CONTRAST, contrast_lines
from jurygraph.cli.sides import opponent, score_for
from jurygraph.cli.text import number, table, visible
from jurygraph.schema import (
    Decision,
    Evidence,
    ExampleUse,
    Failure,
    Reward,
    Rubric,
    Spec,
    Trace,
    Verdict,
)
from jurygraph.schema.config import Welfare
from jurygraph.schema.profile import FILE
from jurygraph.schema.safety import STOPS

WELFARE: tuple[str, ...] = get_args(Welfare)
"""The combiners of which a component's inputs are stakeholders."""

_LONGEST = 300


def trace_lines(trace: Trace, decision: Decision) -> list[str]:
    """Every term, verdict and note of a trace, and every term of the weights that its decision froze."""
    head = [f"response  {visible(trace.response_id)}", f"task      {visible(trace.task_id)}"]
    if trace.agent is not None:
        head.append(f"agent     {visible(trace.agent)}")
    verdicts = list(_verdict_lines(trace, decision))
    foot = [f"plan      {trace.plan_digest}", f"digest    {trace.digest}", f"previous  {trace.previous or '-'}"]
    weighed = [
        line for spec in decision.specs if spec.combiner in WELFARE for line in _weight_lines(spec, trace.reward)
    ]
    weighed += [visible(line, _LONGEST) for line in _contrasted(trace, decision)]
    read = [visible(line) for line in read_from(trace)]
    made = [visible(line, _LONGEST) for line in made_of(trace)]
    return [*head, *_reward_lines(trace.reward), *weighed, *read, *made, "", "verdicts", *verdicts, "", *foot]


def _contrasted(trace: Trace, decision: Decision) -> Iterator[str]:
    return (line for spec in decision.specs if spec.combiner == CONTRAST for line in contrast_lines(trace, spec))


def read_from(trace: Trace) -> Iterator[str]:
    """What a trace is for, if not to train on; who annotated its rubric, where its plan had that done; who read the
    profiles on which it rests, where any were in text alone, each reader once."""
    if trace.purpose is not None:
        yield f"purpose: {trace.purpose.told}"
    if trace.plan is not None and trace.plan.rubric is not None:
        yield from _annotated(trace.plan.rubric)
    profiles = None if trace.plan is None else trace.plan.profiles
    if profiles is None:
        return
    for reader in dict.fromkeys(profiles.by.values()):
        names = ", ".join(name for name, by in profiles.by.items() if by == reader)
        yield f"constraints of {names}: {_read_by(reader)}"
    if profiles.tensions_by is not None:
        yield f"tensions: {_read_by(profiles.tensions_by)}"


def _annotated(rubric: Rubric) -> Iterator[str]:
    models = ", ".join(sorted({edge.model for edge in rubric.edges if edge.model})) or "a model"
    record = rubric.annotation
    lacking = 0 if record is None else len(record.unanswered) + len(record.unassigned)
    left = f"; {lacking} pairs or criteria have no answer" if lacking else ""
    edges = "1 edge" if len(rubric.edges) == 1 else f"{len(rubric.edges)} edges"
    yield f"rubric graph: {edges}, annotated by {models}{left}"


def made_of(trace: Trace) -> Iterator[str]:
    """What is to be known of the material on which a trace rests: why it is missing, or what its note says."""
    for one in trace.material:
        if one.failure is not None:
            yield f"material {one.name}: {_failed(one.failure)}"
        elif one.note:
            yield f"material {one.name}: {one.note}"


def _failed(failure: Failure, said_before: str = "") -> str:
    """Whose failure it is, of which kind, and what is said of it and was not said before."""
    said = f": {failure.message}" if failure.message not in ("", said_before) else ""
    return f"{failure.cause} failure: {failure.kind}{said}"


def _read_by(reader: str) -> str:
    return "from a file of profiles" if reader == FILE else f"profile parsed by {reader}"


def _reward_lines(reward: Reward) -> list[str]:
    counts = reward.counts
    lines = [f"reward    {number(reward.value)}  ({reward.status}, coverage {number(reward.coverage)})"]
    if reward.value is None:
        lines.append(f"partial   {number(reward.partial)}  (what was judged, alone)")
    if reward.range is not None:
        lines.append(f"range     {number(reward.range[0])} to {number(reward.range[1])}")
    lines.append(
        f"asked     {counts.asked} = {counts.judged} judged + {counts.abstained} abstained"
        f" + {counts.failed} failed + {counts.not_applicable} not applicable"
    )
    lines += [f"note      {visible(note)}" for note in reward.notes]
    if not reward.weights_fixed:
        lines.append("note      weights not fixed: a judge gave them once it had seen the response")
    rows = [[t.name, number(t.weight), number(t.value), number(t.contribution)] for t in reward.terms]
    lines += ["", *table(["term", "weight", "value", "contribution"], rows)]
    lines += [f"{visible(a.name)}: {number(a.before)} -> {number(a.after)}" for a in reward.adjustments]
    for name, parts in reward.parts.items():
        shown = ", ".join(f"{part} {number(value)}" for part, value in parts.items())
        lines.append(f"{visible(name)} is made of {visible(shown)}")
    for name, figures in reward.figures.items():
        shown = ", ".join(f"{figure} {number(value)}" for figure, value in figures.items())
        lines.append(f"beside {visible(name)}: {visible(shown)}")
    return lines


def _weight_lines(spec: Spec, reward: Reward) -> Iterator[str]:
    """Each stakeholder's terms of d_i, weight, utility, and the share of a full utility that it gives up."""
    terms: Any = spec.params.get("difficulty", {})
    utilities = reward.parts.get(spec.name, {})
    rows = [
        [
            name,
            *_difficulty(terms.get(name, {})),
            number(one.mass),
            number(utilities.get(name)),
            _given_up(utilities, name),
        ]
        for name, one in spec.inputs.items()
    ]
    yield ""
    yield f"{visible(spec.name)} is {rule_of(spec)}{_calibration(spec)}"
    yield from table(["stakeholder", "hard", "soft", "conflict", "d", "w", "û", "gives up"], rows)
    for name, found in terms.items():
        for other, tension in found.get("tensions", {}).items():
            if name < other:
                why = visible("; ".join(tension["why"]), _LONGEST) if tension["why"] else "as the task states it"
                yield f"tension between {visible(name)} and {visible(other)}: {number(tension['strength'])}, {why}"


def rule_of(spec: Spec) -> str:
    """How utilities become one number, in words."""
    if spec.combiner == "nash":
        return "the product of the û, whatever their w"
    floor: Any = spec.params.get("floor")
    limit = "" if floor is None else f", and no more than the least û where that lies below {number(floor)}"
    return f"the sum of w × û{limit}"


def _calibration(spec: Spec) -> str:
    """What the weights were worked out with."""
    stated: Any = spec.params.get("calibration")
    if stated is None:
        return ""
    gamma, beta, temperature = (f"{stated[name]:g}" for name in ("gamma", "beta", "temperature"))
    return f"; d = hard + {gamma} soft + {beta} conflict, w = softmax(d / {temperature})"


def _difficulty(terms: Mapping[str, Any]) -> list[str]:
    return [number(terms.get(term)) for term in ("hard", "soft", "conflict", "difficulty")]


def _given_up(utilities: Mapping[str, float], name: str) -> str:
    return "-" if name not in utilities else f"{1.0 - utilities[name]:.0%}"


def _verdict_lines(trace: Trace, decision: Decision) -> Iterator[str]:
    confident, samples = confidence_needed(decision), samples_of(trace)
    for verdict in trace.verdicts:
        yield _head(trace.response_id, verdict, samples[verdict.question])
        yield from (f"      {said}" for said in _said(verdict, confident.get(verdict.question, 0.0)))


def _head(response_id: str, verdict: Verdict, samples: int) -> str:
    answer = number(score_for(response_id, verdict)) if verdict.status == "ok" else verdict.status
    other = opponent(response_id, verdict)
    question = visible(verdict.question) + (f" against {visible(other)}" if other else "")
    if len(verdict.responses) == 1 and verdict.responses[0] != verdict.about:
        question += f" of {visible(verdict.responses[0])}"  # a variant, in which its quotations stand
    sample = f", sample {verdict.sample + 1} of {samples}" if samples > 1 else ""
    return f"  {question}{sample}  {answer}  ({visible(verdict.evaluator)} {visible(verdict.version)})"


def _said(verdict: Verdict, confident: float) -> Iterator[str]:
    if verdict.reason:
        yield visible(verdict.reason, _LONGEST)
    if verdict.failure is not None:
        yield visible(_failed(verdict.failure, verdict.reason), _LONGEST)
    if verdict.gated_by is not None:
        yield f"gated by {visible(verdict.gated_by)}"
    yield from (visible(said, _LONGEST) for said in told_of_judge(verdict, confident))
    yield from map(_evidence, verdict.evidence)


def told_of_judge(verdict: Verdict, confident: float) -> Iterator[str]:
    """How sure a judge was, whether that was sure enough, and what it went by."""
    if verdict.confidence is not None:
        yield f"confidence {number(verdict.confidence)}"
    if was_discarded(verdict, confident):
        yield f"discarded: {too_unsure(verdict, confident)}"
    yield from told_of_examples(verdict)


def told_of_examples(verdict: Verdict) -> Iterator[str]:
    """Which examples of a history a judge was shown and which not, and whose score drew its own, by which examples."""
    yield from _shown(verdict.examples, "shown as examples", "not shown")
    if verdict.shrinkage is not None:
        toward, weight = verdict.shrinkage.toward, verdict.shrinkage.weight
        yield f"drawn by {weight:.1%} to the {number(toward)} of the aggregate judge"
        yield from _shown(
            verdict.shrinkage.examples, "the aggregate judge was shown", "the aggregate judge was not shown"
        )


def _shown(examples: Iterable[ExampleUse], shown: str, left_out: str) -> Iterator[str]:
    named = [(f"{one.item} ({one.reviewer}: {one.score:g})", one.dropped) for one in examples]
    if used := [name for name, dropped in named if dropped is None]:
        yield f"{shown}: {', '.join(used)}"
    for name, dropped in named:
        if dropped is not None:
            yield f"{left_out}: {name}, because {dropped}"


def confidence_needed(decision: Decision) -> dict[str, float]:
    """For every question, how sure a judge has to be for its verdict to be heard: where several inputs that count hold
    it, by the least of them; where none counts, by the least of all."""
    return {**_least_confident(decision.specs), **_least_confident(decision.counting)}


def _least_confident(specs: Iterable[Spec]) -> dict[str, float]:
    least: dict[str, float] = {}
    for one in (one for spec in specs for one in spec.inputs.values()):
        for question in one.questions:
            least[question] = min(least.get(question, 1.0), one.confident)
    return least


def was_discarded(verdict: Verdict, confident: float) -> bool:
    """Whether a verdict is not heard because its judge was not sure enough; no gate is ever unsure."""
    sure = 1.0 if verdict.confidence is None else verdict.confidence
    return verdict.status == "ok" and verdict.gated_by not in STOPS and sure < confident


def too_unsure(verdict: Verdict, confident: float) -> str:
    """Why a verdict is not heard."""
    return f"confidence {number(verdict.confidence)} is below {number(confident)}"


def samples_of(trace: Trace) -> Counter[str]:
    """How many samples each question has here."""
    samples: Counter[str] = Counter()
    for verdict in trace.verdicts:
        samples[verdict.question] = max(samples[verdict.question], verdict.sample + 1)
    return samples


def _evidence(evidence: Evidence) -> str:
    place = "" if evidence.start is None else f" at {evidence.start}-{evidence.end}"
    found = "" if evidence.verified else ", not found there"
    return f'"{visible(evidence.quote, 200)}"  ({visible(evidence.source)}{place}{found})'
