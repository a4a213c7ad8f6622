"""One trace in full, as lines of text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from jurygraph.cli.pairwise_sides import opponent, score_for
from jurygraph.cli.render.contrasts import CONTRAST, contrast_lines
from jurygraph.cli.render.text import escape_line, format_number, format_table
from jurygraph.schema import (
    ComponentSpec,
    Decision,
    Evidence,
    ExampleUse,
    Failure,
    RecordedVerdict,
    Reward,
    Rubric,
    Trace,
)
from jurygraph.schema.config import Welfare
from jurygraph.schema.profile import READ_FROM_FILE
from jurygraph.schema.safety import WORST_CASE_GATES

WELFARE: tuple[str, ...] = get_args(Welfare)
"""Combiners whose inputs are stakeholders."""

_MAX_LINE = 300


def trace_lines(trace: Trace, decision: Decision) -> list[str]:
    """Return every term, verdict and note of a trace, and every term of the weights that its decision froze."""
    head = [f"response  {escape_line(trace.response_id)}", f"task      {escape_line(trace.task_id)}"]
    if trace.agent is not None:
        head.append(f"agent     {escape_line(trace.agent)}")
    verdicts = list(_verdict_lines(trace, decision))
    foot = [f"plan      {trace.plan_digest}", f"digest    {trace.digest}", f"previous  {trace.previous or '-'}"]
    weights = [
        line for spec in decision.specs if spec.combiner in WELFARE for line in _weight_lines(spec, trace.reward)
    ]
    weights += [escape_line(line, _MAX_LINE) for line in _contrast_lines(trace, decision)]
    origins = [escape_line(line) for line in origin_lines(trace)]
    materials = [escape_line(line, _MAX_LINE) for line in material_lines(trace)]
    return [*head, *_reward_lines(trace.reward), *weights, *origins, *materials, "", "verdicts", *verdicts, "", *foot]


def _contrast_lines(trace: Trace, decision: Decision) -> Iterator[str]:
    return (line for spec in decision.specs if spec.combiner == CONTRAST for line in contrast_lines(trace, spec))


def origin_lines(trace: Trace) -> Iterator[str]:
    """Return lines on the trace's purpose, unless it is training; the models that annotated its rubric; and the readers
    of its
    profiles, each once, if profiles in text had to be read.
    """
    if trace.purpose is not None:
        yield f"purpose: {trace.purpose.description}"
    if trace.plan is not None and trace.plan.rubric is not None:
        yield from _annotation_line(trace.plan.rubric)
    profiles = None if trace.plan is None else trace.plan.profiles
    if profiles is None:
        return
    for reader in dict.fromkeys(profiles.by.values()):
        names = ", ".join(name for name, by in profiles.by.items() if by == reader)
        yield f"constraints of {names}: {_describe_reader(reader)}"
    if profiles.tensions_by is not None:
        yield f"tensions: {_describe_reader(profiles.tensions_by)}"


def _annotation_line(rubric: Rubric) -> Iterator[str]:
    models = ", ".join(sorted({edge.model for edge in rubric.edges if edge.model})) or "a model"
    record = rubric.annotation
    missing = 0 if record is None else len(record.unanswered) + len(record.unassigned)
    remainder = f"; {missing} pairs or criteria have no answer" if missing else ""
    edges = "1 edge" if len(rubric.edges) == 1 else f"{len(rubric.edges)} edges"
    yield f"rubric graph: {edges}, annotated by {models}{remainder}"


def material_lines(trace: Trace) -> Iterator[str]:
    """Return a line for each material with a failure or a note."""
    for material in trace.material:
        if material.failure is not None:
            yield f"material {material.name}: {_describe_failure(material.failure)}"
        elif material.note:
            yield f"material {material.name}: {material.note}"


def _describe_failure(failure: Failure, reason: str = "") -> str:
    """Describe a failure: cause, kind, and its message unless it repeats the `reason`."""
    message = f": {failure.message}" if failure.message not in ("", reason) else ""
    return f"{failure.cause} failure: {failure.kind}{message}"


def _describe_reader(reader: str) -> str:
    return "from a file of profiles" if reader == READ_FROM_FILE else f"profile parsed by {reader}"


def _reward_lines(reward: Reward) -> list[str]:
    counts = reward.counts
    lines = [f"reward    {format_number(reward.value)}  ({reward.status}, coverage {format_number(reward.coverage)})"]
    if reward.value is None:
        lines.append(f"partial   {format_number(reward.partial)}  (what was judged, alone)")
    if reward.range is not None:
        lines.append(f"range     {format_number(reward.range[0])} to {format_number(reward.range[1])}")
    lines.append(
        f"asked     {counts.total} = {counts.judged} judged + {counts.abstained} abstained"
        f" + {counts.failed} failed + {counts.not_applicable} not applicable"
    )
    lines += [f"note      {escape_line(note)}" for note in reward.notes]
    if not reward.weights_fixed:
        lines.append("note      weights not fixed: a judge gave them once it had seen the response")
    rows = [
        [t.name, format_number(t.weight), format_number(t.value), format_number(t.contribution)] for t in reward.terms
    ]
    lines += ["", *format_table(["term", "weight", "value", "contribution"], rows)]
    lines += [
        f"{escape_line(a.name)}: {format_number(a.before)} -> {format_number(a.after)}" for a in reward.adjustments
    ]
    for name, parts in reward.parts.items():
        shown = ", ".join(f"{part} {format_number(value)}" for part, value in parts.items())
        lines.append(f"{escape_line(name)} is made of {escape_line(shown)}")
    for name, figures in reward.diagnostics.items():
        shown = ", ".join(f"{figure} {format_number(value)}" for figure, value in figures.items())
        lines.append(f"beside {escape_line(name)}: {escape_line(shown)}")
    return lines


def _weight_lines(spec: ComponentSpec, reward: Reward) -> Iterator[str]:
    """Return a table with each stakeholder's terms of d_i, weight, utility, and share of the full utility given up."""
    terms: Any = spec.params.get("difficulty", {})
    utilities = reward.parts.get(spec.name, {})
    rows = [
        [
            name,
            *_difficulty_cells(terms.get(name, {})),
            format_number(one.total_weight),
            format_number(utilities.get(name)),
            _format_given_up(utilities, name),
        ]
        for name, one in spec.inputs.items()
    ]
    yield ""
    yield f"{escape_line(spec.name)} is {describe_rule(spec)}{_calibration_suffix(spec)}"
    yield from format_table(["stakeholder", "hard", "soft", "conflict", "d", "w", "û", "gives up"], rows)
    for name, difficulty in terms.items():
        for other, tension in difficulty.get("tensions", {}).items():
            if name < other:
                why = escape_line("; ".join(tension["why"]), _MAX_LINE) if tension["why"] else "as the task states it"
                strength = format_number(tension["strength"])
                yield f"tension between {escape_line(name)} and {escape_line(other)}: {strength}, {why}"


def describe_rule(spec: ComponentSpec) -> str:
    """Describe how utilities are combined into one number."""
    if spec.combiner == "nash":
        return "the product of the û, whatever their w"
    floor: Any = spec.params.get("floor")
    limit = "" if floor is None else f", and no more than the least û where that lies below {format_number(floor)}"
    return f"the sum of w × û{limit}"


def _calibration_suffix(spec: ComponentSpec) -> str:
    """Describe the parameters from which the weights were computed."""
    calibration: Any = spec.params.get("calibration")
    if calibration is None:
        return ""
    gamma, beta, temperature = (f"{calibration[name]:g}" for name in ("gamma", "beta", "temperature"))
    return f"; d = hard + {gamma} soft + {beta} conflict, w = softmax(d / {temperature})"


def _difficulty_cells(terms: Mapping[str, Any]) -> list[str]:
    return [format_number(terms.get(term)) for term in ("hard", "soft", "conflict", "difficulty")]


def _format_given_up(utilities: Mapping[str, float], name: str) -> str:
    return "-" if name not in utilities else f"{1.0 - utilities[name]:.0%}"


def _verdict_lines(trace: Trace, decision: Decision) -> Iterator[str]:
    min_confidence, samples = required_confidence(decision), sample_counts(trace)
    for verdict in trace.verdicts:
        yield _verdict_heading(trace.response_id, verdict, samples[verdict.question])
        yield from (f"      {line}" for line in _verdict_details(verdict, min_confidence.get(verdict.question, 0.0)))


def _verdict_heading(response_id: str, verdict: RecordedVerdict, samples: int) -> str:
    answer = format_number(score_for(response_id, verdict)) if verdict.status == "ok" else verdict.status
    other = opponent(response_id, verdict)
    question = escape_line(verdict.question) + (f" against {escape_line(other)}" if other else "")
    if len(verdict.responses) == 1 and verdict.responses[0] != verdict.about:
        question += f" of {escape_line(verdict.responses[0])}"  # a variant: its quotations refer to that text
    sample = f", sample {verdict.sample + 1} of {samples}" if samples > 1 else ""
    return f"  {question}{sample}  {answer}  ({escape_line(verdict.evaluator)} {escape_line(verdict.version)})"


def _verdict_details(verdict: RecordedVerdict, min_confidence: float) -> Iterator[str]:
    if verdict.reason:
        yield escape_line(verdict.reason, _MAX_LINE)
    if verdict.failure is not None:
        yield escape_line(_describe_failure(verdict.failure, verdict.reason), _MAX_LINE)
    if verdict.gated_by is not None:
        yield f"gated by {escape_line(verdict.gated_by)}"
    yield from (escape_line(line, _MAX_LINE) for line in judge_details(verdict, min_confidence))
    yield from map(_evidence_line, verdict.evidence)


def judge_details(verdict: RecordedVerdict, min_confidence: float) -> Iterator[str]:
    """Return a judge's confidence, whether the verdict was discarded for it, and the examples used."""
    if verdict.confidence is not None:
        yield f"confidence {format_number(verdict.confidence)}"
    if is_discarded(verdict, min_confidence):
        yield f"discarded: {discard_reason(verdict, min_confidence)}"
    yield from example_details(verdict)


def example_details(verdict: RecordedVerdict) -> Iterator[str]:
    """Return lines on the past examples a judge was shown or not, and on the shrinkage to the aggregate judge."""
    yield from _example_lines(verdict.examples, "shown as examples", "not shown")
    if verdict.shrinkage is not None:
        toward, weight = verdict.shrinkage.toward, verdict.shrinkage.weight
        yield f"drawn by {weight:.1%} to the {format_number(toward)} of the aggregate judge"
        yield from _example_lines(
            verdict.shrinkage.examples, "the aggregate judge was shown", "the aggregate judge was not shown"
        )


def _example_lines(examples: Iterable[ExampleUse], shown: str, left_out: str) -> Iterator[str]:
    labels = [(f"{example.item} ({example.reviewer}: {example.score:g})", example.dropped) for example in examples]
    if used := [name for name, dropped in labels if dropped is None]:
        yield f"{shown}: {', '.join(used)}"
    for name, dropped in labels:
        if dropped is not None:
            yield f"{left_out}: {name}, because {dropped}"


def required_confidence(decision: Decision) -> dict[str, float]:
    """Return for every question the confidence a verdict needs to count: the lowest one of the inputs that count and
    use the
    question; if no such input counts, the lowest of all.
    """
    return {**_lowest_confidence(decision.specs), **_lowest_confidence(decision.counting_specs)}


def _lowest_confidence(specs: Iterable[ComponentSpec]) -> dict[str, float]:
    least: dict[str, float] = {}
    for entry in (entry for spec in specs for entry in spec.inputs.values()):
        for question in entry.questions:
            least[question] = min(least.get(question, 1.0), entry.confident)
    return least


def is_discarded(verdict: RecordedVerdict, min_confidence: float) -> bool:
    """Return True if a verdict does not count because of low confidence; verdicts of a gate always count."""
    confidence = 1.0 if verdict.confidence is None else verdict.confidence
    return verdict.status == "ok" and verdict.gated_by not in WORST_CASE_GATES and confidence < min_confidence


def discard_reason(verdict: RecordedVerdict, min_confidence: float) -> str:
    """Return the reason why a verdict was discarded."""
    return f"confidence {format_number(verdict.confidence)} is below {format_number(min_confidence)}"


def sample_counts(trace: Trace) -> Counter[str]:
    """Return the number of samples of each question in the trace."""
    samples: Counter[str] = Counter()
    for verdict in trace.verdicts:
        samples[verdict.question] = max(samples[verdict.question], verdict.sample + 1)
    return samples


def _evidence_line(evidence: Evidence) -> str:
    place = "" if evidence.start is None else f" at {evidence.start}-{evidence.end}"
    suffix = "" if evidence.verified else ", not found there"
    return f'"{escape_line(evidence.quote, 200)}"  ({escape_line(evidence.source)}{place}{suffix})'
