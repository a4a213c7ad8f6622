"""Tasks whose responses are the presentations of other responses, with the labels that the stability study reads."""

from collections import Counter
from collections.abc import Iterator, Sequence

from jurygraph.agents.presentation.families import PresentationSet, present
from jurygraph.agents.registry import load_evaluators
from jurygraph.errors import InputError
from jurygraph.schema import Config, Response, Task, TaskLine
from jurygraph.studies.report import Report, ReportTable


def repeating(config: Config, samples: int) -> Config:
    """Return the config of exact repeats: so many samples of one input from every evaluator that can repeat it.

    With one sample, each variant is judged in the same form as a repeat.
    """
    evaluators = load_evaluators(config)
    uses = []
    for use in config.evaluators:
        if "rotate" in evaluators[use.known_as].Params.model_fields:
            use = use.model_copy(update={"samples": samples, "params": {**use.params, "rotate": False}})
        uses.append(use)
    return config.model_copy(update={"evaluators": tuple(uses)})


def generate_presentations(
    pairs: Sequence[tuple[Task, Sequence[Response]]], versions: int = 5, with_originals: bool = True
) -> tuple[list[bytes], Report]:
    """Return the lines of a TASKS file, and a report of the variants by family; without `versions`, originals alone.

    The figures are `variants`, `undefined` and `discarded` by family, and the number of responses with `structured`
    data; the others are left out. Raises InputError if no response has.
    """
    counts = {name: Counter[str]() for name in ("variants", "undefined", "discarded")}
    lines = []
    structured = 0
    for task, responses in pairs:
        found = [(response, present(response.data, versions)) for response in responses]
        shown: list[Response] = []
        for response, one in found:
            if one is not None:
                structured += 1
                shown += list(_as_responses(response, one))[0 if with_originals else 1 :]
                counts["variants"].update(variant.family for variant in one.variants)
                counts["undefined"].update(one.undefined.keys())
                counts["discarded"].update(one.discarded)
        if shown:
            content = {name: getattr(task, name) for name in Task.model_fields}
            line = TaskLine.model_construct(**content, responses=tuple(shown))
            lines.append(line.model_dump_json(exclude_defaults=True).encode() + b"\n")
    left_out = sum(len(responses) for _, responses in pairs) - structured
    if not structured:
        hint = "give `data` the form of docs/stability.md, or a list of records"
        raise InputError(f"none of {left_out} responses has structured data; {hint}")
    families = dict.fromkeys(name for counter in counts.values() for name in counter)
    rows = [(family, *(counter[family] for counter in counts.values())) for family in families]
    table = ReportTable(("family", "variants", "responses where undefined", "discarded"), rows)
    notes = [f"omitted, responses without structured data: {left_out}"] if left_out else []
    title = f"{structured} responses, {counts['variants'].total()} variants"
    return lines, Report({"structured": structured, "left_out": left_out, **counts}, [title, table], notes)


def _as_responses(response: Response, found: PresentationSet) -> Iterator[Response]:
    for one in (found.original, *found.variants):
        labels = {**response.labels, "seed": response.id}
        name = response.id
        if one is not found.original:
            labels |= {"family": one.family, "version": one.version}
            name = f"{response.id}~{one.family}-{one.version}"
        yield response.model_copy(update={"id": name, "text": one.text, "data": one.data, "labels": labels})
