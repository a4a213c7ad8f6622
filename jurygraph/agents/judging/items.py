"""Judging items of a response in one call: what is asked, what of the reply rests on the response, and the verdicts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import create_model

from jurygraph.agents.judging.findings import Finding, flaw_in, verdict_on
from jurygraph.agents.judging.forms import Claim, Form, InParts, OnScale
from jurygraph.agents.judging.quotations import off_loop
from jurygraph.models.asking import Reply
from jurygraph.models.faults import Fault
from jurygraph.prompts import Prompt
from jurygraph.safety.evidence import aread_text
from jurygraph.schema import Noun, Verdict

if TYPE_CHECKING:
    from jurygraph.models.consultation import Consultation


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be judged: its words, its form, the words of its parts, and what values of its scale stand for."""

    text: str
    form: Form
    parts: tuple[str, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()


class _Shown(NamedTuple):
    """An item as the prompt shows it."""

    name: str
    text: str
    parts: bool
    scale: tuple[str, str] | None


async def judge_items(
    gateway: "Consultation",
    prompt: Prompt,
    items: Mapping[str, Item],
    variables: Mapping[str, Any],
    response: str,
    *,
    sample: int = 0,
    compact: bool = False,
) -> list[Verdict]:
    """A verdict on each item, from one call; `items` are by their names in the reply, which are told as `items`.

    Where the config's `safety.evidence` stands, whatever the model finds in the response needs a quotation that stands
    there: what is quoted from elsewhere is lost, which the model is told once; what is then left without any is a
    failed verdict of cause `response`. `compact` replies hold neither reasons nor quotations.
    """
    noun = _answer(tuple((name, item.form.noun(compact)) for name, item in items.items()))
    told = {**variables, "items": tuple(_shown(*one) for one in items.items()), "compact": compact}
    request = gateway.request(prompt, noun, told, sample=sample, logprobs=not compact)
    sought = None if compact or not gateway.safety.evidence else await aread_text(response)

    def flaw(value: Any) -> str | None:
        return None if sought is None else flaw_in(_claims(items, value), sought)

    try:
        judged = await gateway.judge(request, noun, off_loop(flaw, len(response)))
    except Fault as fault:
        failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
        return [failed] * len(items)
    found = (_finding(name, item, judged.value, judged.reply, compact) for name, item in items.items())
    return [verdict_on(one, sought, judged.call.id) for one in found]


@lru_cache(maxsize=1024)
def _answer(fields: tuple[tuple[str, type[Noun]], ...]) -> type[Noun]:
    """What is to be answered about so many items, each in its form."""
    stated: Any = {name: (form, ...) for name, form in fields}
    return create_model("Verdicts", __base__=Noun, **stated)


def _shown(name: str, item: Item) -> _Shown:
    form = item.form
    parts = zip(form.names, item.parts, strict=True) if isinstance(form, InParts) else ()
    lines = [item.text, *(f"{part}: {text}" for part, text in (*parts, *item.anchors))]
    scale = (f"{form.low:g}", f"{form.high:g}") if isinstance(form, OnScale) else None
    return _Shown(name, "\n".join(lines), isinstance(form, InParts), scale)


def _claims(items: Mapping[str, Item], value: Any) -> Iterator[tuple[str, Iterator[Claim]]]:
    """What a reply finds in the response, item by item."""
    return ((name, item.form.claims(getattr(value, name))) for name, item in items.items())


def _finding(name: str, item: Item, value: Any, reply: Reply, compact: bool) -> Finding:
    """What a reply says on an item."""
    stated = getattr(value, name)
    measured = item.form.measured(stated, reply, name)
    if compact:
        return Finding(name, measured, reason="")
    return Finding(name, measured, stated.reason, _quotations(stated), tuple(item.form.claims(stated)))


def _quotations(stated: Any) -> list[str]:
    """All quotations of an item's reply."""
    own: Iterable[str] = getattr(stated, "quotes", ())
    parts = (quote for _, part in stated if hasattr(part, "quotes") for quote in part.quotes)
    return [*own, *parts]
