"""Notes on a trace that both `explain` and `show` print: contrasts, origins, material, rules and examples."""

from collections.abc import Iterable, Iterator, Mapping

from jurygraph.explanation.terms import ExplainedTerm, ExplainedVerdict
from jurygraph.messages import join_names
from jurygraph.schema import ExampleUse, Failure, RecordedVerdict, Rubric, Swap, Trace
from jurygraph.schema.task import READ_FROM_FILE
from jurygraph.schema.verdict import Unsupported


def contrast_lines(one: ExplainedTerm) -> Iterator[str]:
    """Return how many contrasts of a term were ranked correctly, and a line for each that was not."""
    if one.contrasts:
        correct = sum(margin is not None and margin > 0.0 for _, margin in one.contrasts)
        yield f"{one.term.name}: {correct} of {len(one.contrasts)} contrasts score less than the response"
    for name, margin in one.contrasts:
        if margin is None:
            yield f"not ranked: {name} was not judged"
        elif margin <= 0.0:
            more = "the same as" if margin == 0.0 else f"{-margin:.4f} more than"
            yield f"ranked incorrectly: {name} scores {more} the response"


def vote_lines(one: ExplainedTerm) -> Iterator[str]:
    """Return a line for each majority vote; votes with the same result share one."""
    groups: dict[str, list[str]] = {}
    for label, text in one.votes.items():
        groups.setdefault(text, []).append(label)
    for text, labels in groups.items():
        yield f"{one.term.name}: vote on {join_names(labels)}: {text}"


def judge_lines(trace: Trace) -> Iterator[str]:
    """Return a line for each question that several judges answered: their answers."""
    answers: dict[str, dict[str, list[str]]] = {}
    for one in trace.verdicts:
        if one.judge is not None and one.about == trace.response_id:
            answer = one.status if one.score is None else f"{one.score:.4f}"
            answer += " (superseded)" if one.superseded else ""
            answers.setdefault(one.question, {}).setdefault(one.judge, []).append(answer)
    for question, by_judge in answers.items():
        if len(by_judge) > 1:
            votes = (f"{judge} {', '.join(own)}" for judge, own in by_judge.items())
            yield f"judges on {question}: {'; '.join(votes)}"


def input_lines(one: ExplainedTerm) -> Iterator[str]:
    """Return what the inputs of a component are taken to be about, such as the votes of a consensus."""
    for text in one.combiner.describe_inputs(one.params):
        yield f"{one.term.name}: {text}"


def origin_lines(trace: Trace) -> Iterator[str]:
    """Return lines on a purpose other than training, the annotators of the rubric, and the readers of profiles."""
    if trace.purpose is not None:
        yield f"purpose: {trace.purpose.description}"
    if trace.plan is not None and trace.plan.rubric is not None:
        yield _describe_annotation(trace.plan.rubric)
    profiles = None if trace.plan is None else trace.plan.profiles
    if profiles is None:
        return
    for reader in dict.fromkeys(profiles.by.values()):
        names = ", ".join(name for name, by in profiles.by.items() if by == reader)
        yield f"constraints of {names}: {_describe_reader(reader)}"
    if profiles.tensions_by is not None:
        yield f"tensions: {_describe_reader(profiles.tensions_by)}"


def _describe_annotation(rubric: Rubric) -> str:
    models = ", ".join(sorted({edge.model for edge in rubric.edges if edge.model})) or "a model"
    record = rubric.annotation
    missing = 0 if record is None else len(record.unanswered) + len(record.unassigned)
    remainder = f"; {missing} pairs or criteria have no answer" if missing else ""
    edges = "1 edge" if len(rubric.edges) == 1 else f"{len(rubric.edges)} edges"
    return f"rubric graph: {edges}, annotated by {models}{remainder}"


def material_lines(trace: Trace) -> Iterator[str]:
    """Return a line for each material with a failure or a note."""
    for material in trace.material:
        if material.failure is not None:
            yield f"material {material.name}: {describe_failure(material.failure)}"
        elif material.note:
            yield f"material {material.name}: {material.note}"


def describe_failure(failure: Failure, reason: str = "") -> str:
    """Describe a failure: cause, kind, and its message unless it repeats the reason."""
    message = f": {failure.message}" if failure.message not in ("", reason) else ""
    return f"{failure.cause} failure: {failure.kind}{message}"


def _describe_reader(reader: str) -> str:
    return "from a file of profiles" if reader == READ_FROM_FILE else f"profile parsed by {reader}"


UNSUPPORTED: Mapping[Unsupported | None, str] = {
    "worst-case": "the worst case counts, because no quotation from the response supports it",
    "tie": "it counts as a tie, because no quotation from a response supports it",
    "stands": "it stands, although no quotation from the response supports it",
}
"""How an unsupported verdict counts, for sentences."""


def discard_reason(one: ExplainedVerdict) -> str:
    """Return the reason why a verdict was discarded."""
    return f"confidence {one.verdict.confidence:.4f} is below {one.required_confidence:.4f}"


def example_details(verdict: RecordedVerdict) -> Iterator[str]:
    """Return lines on the past examples a judge was shown or not, on both orders of a pair, and on the shrinkage."""
    yield from _example_lines(verdict.examples)
    yield from _order_lines(verdict.swap)
    if verdict.shrinkage is not None:
        toward = verdict.shrinkage.toward
        weight = verdict.shrinkage.weight
        yield f"shrunk by {weight:.1%} towards {toward:.4f}, the score of the aggregate judge"
        yield from _order_lines(verdict.shrinkage.swap, " by the aggregate judge")
        yield from _example_lines(verdict.shrinkage.examples, " to the aggregate judge")


def _order_lines(swap: Swap | None, judge: str = "") -> Iterator[str]:
    if swap is not None:
        mean = (swap.given + 1.0 - swap.swapped) / 2.0
        yield f"judged in both orders{judge}: ({swap.given:.4f} + 1 - {swap.swapped:.4f}) / 2 = {mean:.4f}"


def _example_lines(examples: Iterable[ExampleUse], receiver: str = "") -> Iterator[str]:
    labels = [(f"{example.item} ({example.reviewer}: {example.score:g})", example.dropped) for example in examples]
    if used := [name for name, dropped in labels if dropped is None]:
        yield f"examples shown{receiver}: {', '.join(used)}"
    for name, dropped in labels:
        if dropped is not None:
            yield f"example not shown{receiver}: {name}, because {dropped}"
