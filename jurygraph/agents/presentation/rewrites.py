"""The four families of variants that a model writes (DecompR, Table 7), each variant verified in code."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field

from jurygraph.agents.presentation.document import data_of, document_of, render
from jurygraph.agents.presentation.families import ORIGINAL, Presentation, PresentationSet
from jurygraph.agents.presentation.invariants import Statement, WrittenPassage, broken_invariant, statements_of
from jurygraph.agents.roles import ask_model
from jurygraph.concurrency import each_answered
from jurygraph.prompts import load_prompt
from jurygraph.schema import FrozenModel

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

Rewriting = Literal["causal-direction", "under-served-evidence", "paraphrase", "topic-position"]
REWRITINGS: tuple[Rewriting, ...] = get_args(Rewriting)
PROMPT = "presentation"
NO_REPLY = "no usable reply"


class PassageReply(FrozenModel):
    statement: Annotated[str, Field(min_length=1, max_length=500)]
    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class PassagesReply(FrozenModel):
    passages: Annotated[tuple[PassageReply, ...], Field(min_length=1, max_length=500)]


class _Family(NamedTuple):
    """A family: its operation, its places or ways (those of later versions repeat), and where it is defined."""

    operation: str
    ways: Sequence[str]
    is_defined: Callable[[Mapping[str, Statement]], bool]
    undefined: str


_FAMILIES: Mapping[Rewriting, _Family] = {
    "causal-direction": _Family(
        "Turn the direction in which each trade-off is told, from cause to effect or from effect to cause. {way}",
        (
            "Begin with effects.",
            "Begin with causes.",
            "Turn every second one.",
            "Join with “because”.",
            "Join with “so”.",
        ),
        lambda statements: any(one.kind == "tradeoffs" for one in statements.values()),
        "it has no trade-off",
    ),
    "under-served-evidence": _Family(
        "Move the statements about those whose needs are not met, or met in part, to another place: {way}",
        (
            "before the itinerary.",
            "after the itinerary.",
            "between its parts.",
            "to the very beginning.",
            "to the end.",
        ),
        lambda statements: any(one.status not in ("", "met") for one in statements.values()),
        "nobody is under-served in it",
    ),
    "paraphrase": _Family(
        "Say everything in other words, with synonyms. {way}",
        ("Keep it plain.", "Use full sentences.", "Be concise.", "Use a friendly tone.", "Use a formal tone."),
        lambda statements: True,
        "",
    ),
    "topic-position": _Family(
        "Move what is about no single stakeholder (itinerary, shared items, trade-offs) to another place: {way}",
        ("to the end.", "to the beginning.", "trade-offs first.", "shared items first.", "into the middle."),
        lambda statements: len({one.kind for one in statements.values()}) > 1,
        "it has one topic alone",
    ),
}


async def rewrite(
    data: Any, client: "JudgeClient", versions: int = 5, families: Sequence[Rewriting] = REWRITINGS
) -> PresentationSet | None:
    """Return variants of structured data that a model writes; None if it is of another form (`document_of`).

    A variant that breaks an invariant is discarded, and counted in `broken` by it. A family with fewer versions left
    is undefined for this response. Raises the errors that end a run.
    """
    document = document_of(data)
    if document is None:
        return None
    original = Presentation(ORIGINAL, 0, render(document), data_of(document))
    statements = statements_of(document)
    variants: list[Presentation] = []
    undefined: dict[str, str] = {}
    discarded: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for family in families if versions else ():
        if not _FAMILIES[family].is_defined(statements):
            undefined[family] = _FAMILIES[family].undefined
            continue
        numbers = range(1, versions + 1)
        written = await each_answered(_write(original.text, statements, client, family, number) for number in numbers)
        texts: dict[str, None] = {}
        for text, problem in written:
            if problem is None and text != original.text:
                texts[text] = None
            elif problem is not None:
                discarded[family] += 1
                broken[problem] += 1
        if len(texts) < versions:
            undefined[family] = f"{len(texts)} of {versions} versions are left"
        else:
            variants += [Presentation(family, number, text, original.data) for number, text in enumerate(texts, 1)]
    return PresentationSet(original, tuple(variants), undefined, discarded, broken)


async def _write(
    original: str, statements: Mapping[str, Statement], client: "JudgeClient", family: Rewriting, number: int
) -> tuple[str, str | None]:
    """Return the text of a version, and the invariant that it breaks, if it breaks one."""
    ways = _FAMILIES[family].ways
    variables = {
        "response": original,
        "statements": [{"name": name, "text": one.text} for name, one in statements.items()],
        "operation": _FAMILIES[family].operation.format(way=ways[(number - 1) % len(ways)]),
    }
    size = 2 * sum(len(one.text) for one in statements.values())
    prompt = load_prompt(PROMPT)
    request = client.request(prompt, PassagesReply, variables, sample=number, max_reply_tokens=size)

    def read(reply: PassagesReply) -> tuple[str, str | None]:
        passages = [WrittenPassage(one.statement, one.text) for one in reply.passages]
        return "\n\n".join(one.text for one in passages), broken_invariant(statements, passages)

    return await ask_model(
        client, request, PassagesReply, read=lambda reply: read(reply.value), fail=lambda fault: ("", NO_REPLY)
    )
