"""Tasks whose responses are the presentations of other responses, with the labels that the stability study reads."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.agents.presentation.rewrites import rewrite
from jurygraph.agents.presentation.variants import PresentationSet, present
from jurygraph.agents.registry import load_evaluators
from jurygraph.concurrency import each_answered
from jurygraph.errors import InputError
from jurygraph.schema import Config, Response, Task, TaskLine
from jurygraph.sources.user_modules import allow_modules_in_folder
from jurygraph.studies.report import Report, ReportTable

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

Pairs = Sequence[tuple[Task, Sequence[Response]]]


def repeating(config: Config, samples: int, folder: Path) -> Config:
    """Return the config of exact repeats: so many samples of one input from every evaluator that can repeat it.

    With one sample, each variant is judged in the same form as a repeat. Evaluators may be modules in the folder.
    """
    allow_modules_in_folder(config, folder=folder)
    evaluators = load_evaluators(config)
    uses = []
    for use in config.evaluators:
        if "rotate" in evaluators[use.known_as].Params.model_fields:
            use = use.model_copy(update={"samples": samples, "params": {**use.params, "rotate": False}})
        uses.append(use)
    return config.model_copy(update={"evaluators": tuple(uses)})


async def rewrite_responses(
    pairs: Pairs, client: "JudgeClient", versions: int, advance: Callable[[int], None]
) -> dict[str, PresentationSet]:
    """Return the variants that a model writes of each structured response, by its id. Raises what ends a run."""
    found: dict[str, PresentationSet] = {}
    for _, responses in pairs:
        written = await each_answered(rewrite(response.data, client, versions) for response in responses)
        named = zip(responses, written, strict=True)
        found |= {response.id: one for response, one in named if one is not None}
        advance(len(responses))
    return found


def generate_presentations(
    pairs: Pairs, versions: int = 5, with_originals: bool = True, written: Mapping[str, PresentationSet] | None = None
) -> tuple[list[bytes], Report]:
    """Return the lines of a TASKS file, and a report of the variants by family; without `versions`, originals alone.

    `written` are variants by a model. The figures are `variants`, `undefined` and `discarded` by family, `broken` by
    invariant, and the number of responses with `structured` data; the others are left out. Raises InputError if no
    response has.
    """
    counts = {name: Counter[str]() for name in ("variants", "undefined", "discarded")}
    broken: Counter[str] = Counter()
    lines = []
    structured = 0
    for task, responses in pairs:
        found = [(response, present(response.data, versions)) for response in responses]
        shown: list[Response] = []
        for response, one in found:
            if one is not None:
                if written is not None and response.id in written:
                    one = one.with_variants(written[response.id])
                structured += 1
                broken.update(one.broken)
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
    flaws = ReportTable(("discarded, because it breaks", "variants"), broken.most_common())
    figures = {"structured": structured, "left_out": left_out, **counts, "broken": broken}
    return lines, Report(figures, [title, table, flaws], notes)


def _as_responses(response: Response, found: PresentationSet) -> Iterator[Response]:
    for one in (found.original, *found.variants):
        labels = {**response.labels, "seed": response.id}
        name = response.id
        if one is not found.original:
            labels |= {"family": one.family, "version": one.version}
            name = f"{response.id}~{one.family}-{one.version}"
        yield response.model_copy(update={"id": name, "text": one.text, "data": one.data, "labels": labels})
