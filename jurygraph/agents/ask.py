"""The path of everything that asks a model: request → reply → check of quotations → verdict, or what failed.

Criteria, protocols, comparisons, reviewers, reasoning and extraction take it, and so do the readers of a task. A fault
concerns one question and becomes its failed verdict or material here; an error that ends the run is left alone.

A finding that needs a quotation and has none, even when asked for it again, is marked `unsupported`. If quotations are
required it counts as the worst case, so that a fooled judge pays nothing; if they are preferred it stands, so that a
judge that paraphrases does not lose exactly the good responses. It is no failure under either.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field

from jurygraph.agents.roles import BatchEvaluator, DeriverInput, EvaluatorInput, share_client
from jurygraph.concurrency import each_answered
from jurygraph.messages import shorten
from jurygraph.models.request import Fault, Reply, Request
from jurygraph.safety.evidence import SearchableText, aread_text, search_off_loop
from jurygraph.schema import Evidence, Layer, Verdict
from jurygraph.schema.config import EvidenceRule
from jurygraph.schema.task import chat_text

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient, ParsedReply

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

MAX_QUOTES = 3
CANNOT_TELL = "the judge cannot tell"
Quotes = Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=MAX_QUOTES)]
Reason = Annotated[str, Field(max_length=2000)]


async def ask_model(
    client: "JudgeClient",
    request: Request,
    reply_model: type[T],
    *,
    read: "Callable[[ParsedReply[T]], R]",
    fail: Callable[[Fault], R],
    find_flaw: Callable[[T], str | None] | None = None,
    letters: int = 0,
) -> R:
    """Return what `read` makes of the model's reply, or `fail` of the fault in its place.

    A reply in which `find_flaw` finds one is sent back to the model once. Both functions may search texts of `letters`
    characters in total: in a thread if there are many. Raises the errors that end a run.
    """

    async def check(reply: T) -> str | None:
        return None if find_flaw is None else await search_off_loop(lambda: find_flaw(reply), letters)

    try:
        reply = await client.judge(request, reply_model, check)
    except Fault as fault:
        return fail(fault)
    return await search_off_loop(lambda: read(reply), letters)


def failed_verdict(fault: Fault) -> Verdict:
    """Return the verdict on a question without a usable reply."""
    return Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)


class Measurement(NamedTuple):
    """The content of a verdict: score in [0, 1], the judge's decision, native value and scale, confidence in [0, 1].

    `score` is None where the judge says that the item does not apply.
    """

    score: float | None
    met: bool | None = None
    native: float | str | None = None
    scale: tuple[float, float] | None = None
    confidence: float | None = None


class Claim(NamedTuple):
    """A claim of a reply about a response that needs a quotation, with the quotations given for it."""

    statement: str
    quotes: Sequence[str]


class Finding(NamedTuple):
    """The answer of a reply to one question: its `place` in the reply, its measured value, and the reason.

    `measurement` is None where the judge cannot tell. `claims` are the parts that need a quotation from the response;
    `quotes` are all quotations given.
    """

    place: str
    measurement: Measurement | None
    reason: str
    quotes: Sequence[str] = ()
    claims: Sequence[Claim] = ()


async def judge_findings(
    client: "JudgeClient",
    request: Request,
    reply_model: type[T],
    response: str,
    subjects: Iterable[str],
    find: Callable[[T, Reply | None], Mapping[str, Finding]],
    *,
    is_quoted: bool = True,
) -> dict[str, Verdict]:
    """Return a verdict on each subject: what `find` finds in the model's reply on a response.

    Unless the config's `safety.evidence` is off, every claim needs a quotation from the response: quotations from
    elsewhere are discarded, the model gets one chance to repair its reply, and a finding with a claim that is left
    without any is marked `unsupported`. Nothing is credited where the judge cannot tell, so that it needs no quotation.
    `is_quoted` is false if replies have no quotations. The reply itself has the log probabilities of its tokens; a
    check of quotations needs none.
    """
    rule = client.safety.evidence
    text = await aread_text(response) if is_quoted and rule != "off" else None

    def find_flaw(value: T) -> str | None:
        if text is None:
            return None
        return describe_missing_quotes(
            f"{finding.place}: {_missing_evidence(claim, text)}"
            for finding in find(value, None).values()
            for claim in _unsupported_claims(finding.claims, text)
        )

    def read(reply: "ParsedReply[T]") -> dict[str, Verdict]:
        findings = find(reply.value, reply.reply)
        return {subject: build_verdict(finding, text, reply.call.id, rule) for subject, finding in findings.items()}

    def fail(fault: Fault) -> dict[str, Verdict]:
        return dict.fromkeys(subjects, failed_verdict(fault))

    return await ask_model(
        client, request, reply_model, read=read, fail=fail, find_flaw=find_flaw, letters=len(response)
    )


def build_verdict(finding: Finding, text: SearchableText | None, call: str, rule: EvidenceRule) -> Verdict:
    """Return the verdict; `text` is where quotations are searched, or None if no quotations are asked for.

    It abstains where the judge cannot tell, and is not applicable where the measurement has no score.
    """
    quotes = list(dict.fromkeys(quote for quote in finding.quotes if quote.strip()))
    reason = finding.reason
    unsupported: Sequence[Claim] = ()
    if text is None:
        evidence = tuple(Evidence(quote=quote) for quote in quotes)
    else:
        evidence, rejected = verify_quotes(quotes, text)
        unsupported = _unsupported_claims(finding.claims, text)
        if rejected and not unsupported:  # else the mark says it
            reason = f"{reason} [lost: {_explain_rejected_quotes(rejected, text)}]"
    if finding.measurement is None:
        return Verdict(status="abstained", reason=reason or CANNOT_TELL, evidence=evidence, call=call)
    status = "ok" if finding.measurement.score is not None else "not_applicable"
    verdict = Verdict(**finding.measurement._asdict(), status=status, reason=reason, evidence=evidence, call=call)
    if text is None or not unsupported:
        return verdict
    problems = "; ".join(_missing_evidence(claim, text) for claim in unsupported)
    return mark_unsupported(verdict, f"says {problems}", rule)


def _unsupported_claims(claims: Iterable[Claim], text: SearchableText) -> list[Claim]:
    return [claim for claim in claims if not any(map(text.find_support, claim.quotes))]


def _missing_evidence(claim: Claim, text: SearchableText) -> str:
    if not claim.quotes:
        return f"{claim.statement}, and nothing is quoted for it"
    return f"{claim.statement}, and quotes {_explain_rejected_quotes(claim.quotes, text)}"


def _explain_rejected_quotes(quotations: Sequence[str], text: SearchableText) -> str:
    """Return why quotations support nothing: not in the text, too weak to be evidence, or without content."""
    reasons: dict[str, list[str]] = {NOT_THERE: [], TOO_WEAK: [], NO_CONTENT: []}
    for quotation in quotations:
        reasons[explain_rejected_quote(quotation, text)].append(quotation)
    return " and ".join(f"{shorten_quotes(rejected)} ({why})" for why, rejected in reasons.items() if rejected)


WORST_CASE: Mapping[str, Any] = MappingProxyType(
    {"score": 0.0, "met": False, "native": None, "confidence": None, "status": "ok", "unsupported": "worst-case"}
)
"""The fields of a verdict that counts as the worst case: nothing is met. For a penalty, the decision turns it round."""
NOT_THERE = "not in the response"
TOO_WEAK = "too short, or cut within a word or number"
NO_CONTENT = "announces an answer, or fills a line, and says nothing"


def describe_missing_quotes(problems: Iterable[str], source: str = "the response") -> str | None:
    """Return the problems of a reply that lacks quotations from the source, with what to do; None if there is none."""
    listed = "; ".join(problems)
    hint = f"quote from {source} letter by letter, eight letters or more, or decide anew"
    return f"{listed}; {hint}" if listed else None


def mark_unsupported(
    verdict: Verdict, problem: str, rule: EvidenceRule, required: Mapping[str, Any] = WORST_CASE
) -> Verdict:
    """Return the verdict on a finding that no quotation supports; `problem` follows "the judge".

    `required` are the fields that change if the rule requires a quotation; else the finding stands.
    """
    changed = required if rule == "required" else {"unsupported": "stands"}
    reason = f"{verdict.reason} [unsupported: the judge {problem}]".lstrip()
    return verdict.model_copy(update={"reason": reason, **changed})


def explain_rejected_quote(quotation: str, text: SearchableText) -> str:
    """Return why a single quotation supports no verdict."""
    if text.find(quotation) is None:
        return NOT_THERE
    return NO_CONTENT if text.has_nothing_but_filler(quotation) else TOO_WEAK


def verify_quotes(quotations: Sequence[str], text: SearchableText) -> tuple[tuple[Evidence, ...], list[str]]:
    """Return the quoted passages as evidence, and the quotations that match no passage."""
    passage_of = {quotation: text.find_support(quotation) for quotation in quotations}
    found = dict.fromkeys(passage for passage in passage_of.values() if passage is not None)
    evidence = tuple(Evidence(quote=place.text, start=place.start, end=place.end, verified=True) for place in found)
    return evidence, [quotation for quotation, passage in passage_of.items() if passage is None]


def shorten_quotes(quotations: Sequence[str]) -> str:
    return ", ".join(f"'{shorten(quotation, 80)}'" for quotation in quotations[:3])


def shared_prompt_variables(inputs: EvaluatorInput | DeriverInput) -> dict[str, Any]:
    """Return the prompt variables that all prompts about a response share: the task, a reference, and the response."""
    return {"query": chat_text(inputs.task.query), "reference": inputs.task.reference, "response": inputs.response.text}


class SingleCallEvaluator(BatchEvaluator):
    """Ask a model once about a response, and read all verdicts from the reply."""

    layer: Layer = "model"
    uses_model = True
    bounds_its_time = True

    @abstractmethod
    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return all verdicts on a response, by the subjects of their questions."""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `batch`; those on one response and sample come from one call."""
        calls: dict[tuple[str, int], list[EvaluatorInput]] = defaultdict(list)
        for inputs in batch:
            calls[inputs.response.id, inputs.sample].append(inputs)
        shared = [replace(same_call[0], client=share_client(same_call)) for same_call in calls.values()]
        verdicts = dict(zip(calls, await each_answered(map(self.judge_response, shared)), strict=True))
        return [verdicts[inputs.response.id, inputs.sample][inputs.question.subject] for inputs in batch]
