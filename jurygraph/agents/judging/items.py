"""Judge several items of a response in one call: build the request, check the quotations, return the verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from jurygraph.agents.judging.ask import ask_model, failed_verdict
from jurygraph.agents.judging.forms import Claim, Form, PartialCredit, Scale
from jurygraph.agents.judging.quotations import Finding, build_verdict, find_unsupported_claims
from jurygraph.display import Displayed
from jurygraph.messages import require_type
from jurygraph.models.request import Fault
from jurygraph.prompts import Prompt
from jurygraph.safety.evidence import aread_text
from jurygraph.schema import FrozenModel, Verdict

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient, ParsedReply


@dataclass(frozen=True, slots=True, repr=False)
class Item(Displayed):
    """One item to be judged: its text, its form, the texts of its parts, and the meanings of values of its scale."""

    text: str
    form: Form
    parts: tuple[str, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        require_type("Item.text", self.text, str, "give the text of a criterion")
        require_type("Item.form", self.form, Form, "give Binary(), Scale(1, 5) or PartialCredit((1, 2))")


async def judge_items(
    client: "JudgeClient",
    prompt: Prompt,
    items: Mapping[str, Item],
    variables: Mapping[str, Any],
    response: str,
    *,
    sample: int = 0,
    compact: bool = False,
) -> list[Verdict]:
    """Return a verdict on each item, from one call; the keys of `items` are their names in the reply and in the prompt.

    Unless the config's `safety.evidence` is off, every positive finding needs a quotation from the response: quotations
    from elsewhere are discarded, the model gets one chance to repair its reply, and a finding then left without any is
    marked `unsupported` (see `quotations`). An item of which the judge cannot tell abstains with the judge's reason;
    nothing of it is credited, so that it needs no quotation. `compact` replies hold neither reasons nor quotations.
    """
    reply_model = _reply_model(tuple((name, item.form.reply_model(compact)) for name, item in items.items()))
    prompt_variables = {**variables, "items": tuple(_show_item(*item) for item in items.items()), "compact": compact}
    request = client.request(prompt, reply_model, prompt_variables, sample=sample, logprobs=True)
    rule = client.safety.evidence
    response_text = None if compact or rule == "off" else await aread_text(response)

    def find_flaw(value: Any) -> str | None:
        claims = ((name, _claims(item.form, getattr(value, name))) for name, item in items.items())
        return find_unsupported_claims(claims, response_text)

    def read(reply: "ParsedReply[Any]") -> list[Verdict]:
        findings = (_find(name, item.form, reply, compact) for name, item in items.items())
        return [build_verdict(finding, response_text, reply.call.id, rule) for finding in findings]

    def fail(fault: Fault) -> list[Verdict]:
        return [failed_verdict(fault)] * len(items)

    return await ask_model(
        client, request, reply_model, read=read, fail=fail, find_flaw=find_flaw, letters=len(response)
    )


def _find(name: str, form: Form, result: "ParsedReply[Any]", compact: bool) -> Finding:
    answer = getattr(result.value, name)
    is_unknown = form.is_unknown(answer)
    measurement = None if is_unknown else form.measure(answer, result.reply, name)
    reason = form.explain_unknown(answer) if is_unknown else getattr(answer, "reason", "")
    if compact:
        return Finding(name, measurement, reason)
    parts = (answer, *(part for _, part in answer))
    quotes = [quote for part in parts for quote in getattr(part, "quotes", ())]
    return Finding(name, measurement, reason, quotes, _claims(form, answer))


def _claims(form: Form, answer: Any) -> tuple[Claim, ...]:
    """Return the claims that need a quotation; none of an unknown item, which gives no credit."""
    return () if form.is_unknown(answer) else tuple(form.claims(answer))


@lru_cache(maxsize=1024)
def _reply_model(answers: tuple[tuple[str, type[FrozenModel]], ...]) -> type[FrozenModel]:
    """Return the model of the whole reply: one field for each item, with the answer on it."""
    answer_fields: Any = {name: (answer, ...) for name, answer in answers}
    return create_model("JudgeReply", __base__=FrozenModel, **answer_fields)


class ShownItem(dict[str, Any]):
    """An item as prompts show it, never changed: hashable, so that a question is rendered once for many responses."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(tuple(self.values()))


def _show_item(name: str, item: Item) -> ShownItem:
    form = item.form
    parts = zip(form.names, item.parts, strict=True) if isinstance(form, PartialCredit) else ()
    text = "\n".join([item.text, *(f"{name}: {meaning}" for name, meaning in (*parts, *item.anchors))])
    scale = (f"{form.low:g}", f"{form.high:g}") if isinstance(form, Scale) else None
    return ShownItem(name=name, text=text, parts=isinstance(form, PartialCredit), scale=scale)
