"""What evaluators that ask a model about a response share, so that no credit rests on what does not stand in it."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from pydantic import create_model

from jurygraph.agents.judging.forms import Claim, Form, InParts, OnScale
from jurygraph.agents.roles import Answer, Ask, DeriverAsk, Evaluator
from jurygraph.errors import ConfigError
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import Text
from jurygraph.schema import Evidence, Failure, Layer, Noun, Verdict
from jurygraph.sources.complaint import shortened

if TYPE_CHECKING:
    from jurygraph.models.consultation import Judged

AT_ONCE = 4
"""Things judged in one call, at most (GEAR, D.1). More save tokens, and each is judged less by itself."""
Profile = Literal["full", "compact"]
_SHOWN, _MOST_SHOWN = 80, 3


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


class Judging(Evaluator):
    """Asks a model about up to four items of a response in one call, each by itself.

    Where the config's `safety.evidence` stands, whatever the model finds in a response needs a quotation that stands
    there: what is quoted from elsewhere is lost, which the model is told once; what is then left without any is a
    failed verdict of cause `response`. A `compact` profile gives neither reasons nor quotations (GEAR, D.4), so that
    nothing it says rests on evidence.

    Args:
        profile: `full`, or `compact` for fewer tokens.
    """

    layer: Layer = "model"
    asks_model = True
    together = True
    noun: str
    """What an item is called in prompts and replies."""

    def __init__(self, profile: Profile = "full") -> None:
        if profile not in get_args(Profile):
            raise ConfigError(f"{self.name}: profile is one of {', '.join(get_args(Profile))}, not {profile!r}")
        self._compact = profile == "compact"
        self._prompt = load_prompt(self.name)
        self.version = f"2 prompt {self._prompt.edition}"

    @abstractmethod
    def item(self, ask: Ask) -> Item:
        """What is to be judged."""

    def beside(self, ask: Ask) -> Mapping[str, Any]:
        """What else the prompt shows: the same for all that is asked together."""
        return {}

    def company(self, ask: Ask) -> str:
        """Asks about one response go together where this is equal."""
        return ""

    async def answer(self, ask: Ask) -> Answer:
        (verdict,) = await self.answer_all([ask])
        return verdict

    async def answer_all(self, asks: Sequence[Ask]) -> list[Verdict]:
        """The verdicts, in the order of the asks; what is asked together hangs on ids alone, so that it is the same
        whenever the same is asked."""
        places = sorted(range(len(asks)), key=lambda place: self._place(asks[place]))
        batches = [
            batch
            for _, own in groupby(places, key=lambda place: self._place(asks[place])[:3])
            for batch in _chunks(list(own))
        ]
        found = await asyncio.gather(*(self._judged([asks[place] for place in batch]) for batch in batches))
        verdicts = {
            place: one
            for batch, ones in zip(batches, found, strict=True)
            for place, one in zip(batch, ones, strict=True)
        }
        return [verdicts[place] for place in range(len(asks))]

    def _place(self, ask: Ask) -> tuple[str, int, str, str]:
        return ask.response.id, ask.sample, self.company(ask), ask.question.id

    async def _judged(self, asks: Sequence[Ask]) -> list[Verdict]:
        ask, gateway = asks[0], asks[0].gateway
        assert gateway is not None, "asked without a model"
        items = {f"{self.noun}_{place}": self.item(one) for place, one in enumerate(asks, start=1)}
        noun = _answer(tuple((name, item.form.noun(self._compact)) for name, item in items.items()))
        variables = {**shared(ask), **self.beside(ask), "items": tuple(_shown(*one) for one in items.items())}
        variables["compact"] = self._compact
        request = gateway.request(self._prompt, noun, variables, sample=ask.sample, logprobs=not self._compact)
        sought = None if self._compact or not gateway.safety.evidence else _folded(ask.response.text)
        try:
            judged = await gateway.judge(request, noun, None if sought is None else _Flaw(items, sought))
        except Fault as fault:
            failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
            return [failed] * len(asks)
        return [_verdict(judged, name, item, sought) for name, item in items.items()]


def shared(ask: Ask | DeriverAsk) -> dict[str, Any]:
    """What every question about a response shows: the task, a reference, and the response."""
    view = ask.task
    if isinstance(view.query, str):
        query = view.query
    else:
        query = "\n\n".join(f"{message.role}: {message.content}" for message in view.query)
    return {"query": query, "reference": view.reference, "response": ask.response.text}


def _chunks(places: Sequence[int]) -> list[Sequence[int]]:
    return [places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE)]


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


@lru_cache(maxsize=256)
def _folded(text: str) -> Text:
    """Many items are judged of one response."""
    return Text(text)


class _Flaw:
    """What is wrong with a reply that finds things in a response and quotes for them what does not stand there."""

    def __init__(self, items: Mapping[str, Item], text: Text) -> None:
        self._items, self._text = items, text

    def __call__(self, value: Any) -> str | None:
        wrong = [
            f"{name}: {claim.said}, {_lacking(claim, self._text)}"
            for name, item in self._items.items()
            for claim in _unsupported(item, getattr(value, name), self._text)
        ]
        hint = "quote from the response letter by letter, eight letters or more, or decide anew"
        return f"{'; '.join(wrong)}; {hint}" if wrong else None


def _unsupported(item: Item, stated: Any, text: Text) -> list[Claim]:
    """What a reply claims without a quotation that stands in the response."""
    return [claim for claim in item.form.claims(stated) if not any(map(text.supports, claim.quotes))]


def _lacking(claim: Claim, text: Text) -> str:
    return f"and quotes {_lost(claim.quotes, text)}" if claim.quotes else "and nothing is quoted for it"


def _lost(quotations: Sequence[str], text: Text) -> str:
    """Why quotations bear nothing: they stand nowhere, or anybody might have hit upon them."""
    nowhere = [one for one in quotations if text.find(one) is None]
    weak = [one for one in quotations if text.find(one) is not None]
    return " and ".join(
        f"{_quoted(some)} ({wrong})"
        for some, wrong in (
            (nowhere, "not in the response"),
            (weak, "too short, or cut within a word or number"),
        )
        if some
    )


def _verdict(judged: "Judged[Any]", name: str, item: Item, text: Text | None) -> Verdict:
    """The verdict on an item; `text` is where quotations are looked for, None where none are asked for."""
    stated = getattr(judged.value, name)
    reason = getattr(stated, "reason", "")
    if text is None:
        return _measured(judged, name, item, reason, _taken_over(_quotations(stated)))
    evidence, lost = _sorted_out(_quotations(stated), text)
    if lost:
        reason = f"{reason} [lost: {_lost(lost, text)}]"
    unsupported = _unsupported(item, stated, text)
    if unsupported:
        message = "; ".join(f"{claim.said}, {_lacking(claim, text)}" for claim in unsupported)
        failure = Failure(cause="response", kind="unsupported", message=f"the judge says {message}")
        return Verdict(status="failed", failure=failure, reason=reason, evidence=evidence, call=judged.call.id)
    return _measured(judged, name, item, reason, evidence)


def _measured(judged: "Judged[Any]", name: str, item: Item, reason: str, evidence: tuple[Evidence, ...]) -> Verdict:
    found = item.form.measured(getattr(judged.value, name), judged.reply, name)
    return Verdict(
        score=found.score,
        met=found.met,
        native=found.native,
        scale=found.scale,
        reason=reason,
        evidence=evidence,
        call=judged.call.id,
    )


def _quotations(stated: Any) -> list[str]:
    """All quotations of an item's reply, each once."""
    own: Iterator[str] = iter(getattr(stated, "quotes", ()))
    parts = (quote for _, part in stated if hasattr(part, "quotes") for quote in part.quotes)
    return list(dict.fromkeys(quote for quote in (*own, *parts) if quote.strip()))


def _taken_over(quotations: Sequence[str]) -> tuple[Evidence, ...]:
    return tuple(Evidence(quote=quotation) for quotation in quotations)


def _sorted_out(quotations: Sequence[str], text: Text) -> tuple[tuple[Evidence, ...], list[str]]:
    """The passages that are quoted, and the quotations that are none."""
    found = {quotation: text.supports(quotation) for quotation in quotations}
    passages = dict.fromkeys(passage for passage in found.values() if passage is not None)
    evidence = tuple(Evidence(quote=one.text, start=one.start, end=one.end, verified=True) for one in passages)
    return evidence, [quotation for quotation, passage in found.items() if passage is None]


def _quoted(quotations: Sequence[str]) -> str:
    return ", ".join(f"'{shortened(one, _SHOWN)}'" for one in quotations[:_MOST_SHOWN])
