"""Base classes of two roles: derivers prepare material and evaluators score; combiners are in `decision`.

`Deriver`   sees one view of the task and one response; returns material, never a score.
`Evaluator` sees one view of the task and one, two or all responses, masked; returns verdicts.

Only the router decides which of them run.

All that judge by a model take one path, and so do the readers of a task: request → reply → check of quotations →
verdict, or what failed (`ask_model`, `request_finding_verdicts`). The Data Synthesizer's contrasts alone call
`client.judge` themselves: a fault fails the whole material. A fault concerns one question and becomes its failed
verdict or material here; an error that ends the run is left alone. A finding that needs a quotation and has none, even
when asked for it again, is marked `unsupported`. If quotations are required it counts as the worst case, so that a
fooled judge pays nothing; if they are preferred it stands, so that a judge that paraphrases does not lose exactly the
good responses. It is no failure under either.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    get_args,
)

from pydantic import BaseModel, Field

from jurygraph.concurrency import gather_all
from jurygraph.display import ShortRepr
from jurygraph.errors import ConfigError
from jurygraph.messages import shorten
from jurygraph.models.request import CallLog, Fault, Reply, Request, ToolResult
from jurygraph.safety.evidence import (
    SearchableText,
    search_off_loop,
    to_searchable_text,
    to_searchable_text_async,
)
from jurygraph.schema import (
    Audience,
    EvaluatorRecord,
    EvaluatorScope,
    Evidence,
    GraphBranchName,
    Layer,
    Material,
    Question,
    Response,
    Step,
    TaskView,
    Verdict,
)
from jurygraph.schema.config import EvidencePolicy
from jurygraph.schema.conversation import VisiblePart
from jurygraph.schema.frozen_model import (
    JsonFields,
    ParamsModel,
    RawParams,
    ReadOnlyFields,
    StrPath,
    read_params,
)
from jurygraph.schema.lookup import TOOL_SOURCE_PREFIX
from jurygraph.schema.task import chat_to_prompt_text

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient, ParsedReply, ProblemFinder

EvaluatorAnswer = Verdict | float | bool
EvaluatorAnswers = EvaluatorAnswer | Sequence[EvaluatorAnswer]
"""One answer; in scope `group`, one for each response."""
MaterialByName = Mapping[str, Material]
NO_PARAMS: RawParams = MappingProxyType({})

CODE_TIME_LIMIT_SECONDS = 60.0
"""Seconds for a call of user code that uses no model, unless it or the config sets a `timeout`."""

BRANCH_OF_AUDIENCE: dict[Audience, GraphBranchName] = {
    "task": "checks",
    "everyone": "judges",
    "stakeholder": "stakeholders",
    "criterion": "criteria",
    "reviewer": "judges",
}


class UndeclaredClient:
    """Stands in for the client of an evaluator or deriver, `owner`, that does not declare that it uses the model.

    It is false. To use it raises ConfigError: such calls would be in no forecast, and model `none` would break them.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> NoReturn:
        # `copy`, `pickle` and `inspect` look for these: no use of the model.
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConfigError(
            f"{self._owner!r} uses the config's model and does not declare it: write `uses_model = True` in its "
            "class, or `own_model=False` where jg.evaluator makes it of a Runnable"
        )


def _ignore_answer(answer: Any) -> None:
    """Drop an answer: there is no listener. A lambda could not be pickled."""


@dataclass(frozen=True, slots=True, repr=False)
class EvaluatorInput(ShortRepr):
    """Input of an evaluator.

    `responses` has one entry for scope `response`, two for `pair`, and the whole group for `group`; that of a turn is
    made whenever it is read, so that turns do not pile up. `material` has one mapping per response, from the name of
    the needed material to the material. `client` gives access to the model, if the evaluator `uses_model`. `call_log`
    and `steps` are what jurygraph records with the verdict. A `batched` evaluator may `report` the answer to an input
    before it has those to the others: a listener gets it then.
    """

    question: Question
    task: TaskView
    responses: Sequence[Response]
    material: tuple[MaterialByName, ...]
    sample: int = 0
    client: "JudgeClient | None" = None
    call_log: CallLog = field(default_factory=CallLog, compare=False, repr=False)
    steps: list[Step] = field(default_factory=list, compare=False, repr=False)
    report: Callable[[Any], object] = field(default=_ignore_answer, compare=False, repr=False)

    @property
    def response(self) -> Response:
        """Return the first response, which is the only one in scope `response`."""
        return self.responses[0]


@dataclass(frozen=True, slots=True, repr=False)
class DeriverInput(ShortRepr):
    """Input of a deriver: one view, one response, and the material that the deriver needs.

    `client` gives access to the model, if the deriver `uses_model`.
    """

    task: TaskView
    response: Response
    material: MaterialByName
    client: "JudgeClient | None" = None


def share_client(batch: Sequence[EvaluatorInput]) -> "JudgeClient | None":
    """Return a client whose calls are listed with the verdicts on all these inputs; None without a model."""
    return batch[0].client and batch[0].client.with_call_logs(
        *(inputs.call_log for inputs in batch)
    )


def require_client(client: "JudgeClient | None") -> "JudgeClient":
    """Return the client of an evaluator or a deriver that uses the model."""
    assert client is not None, "a model is required"
    return client


class Configurable(ShortRepr):
    """Base class of evaluators and derivers, which a config sets up by params.

    `Params` is the model of these params, with their types, bounds, defaults and descriptions. `settings` are the
    params as that model; narrow its type with `settings: Params`. A class with an `__init__` of its own takes the
    keyword arguments that this one declares, and has settings only if it calls that of its base class.
    """

    name: str
    version = "1"
    timeout: float | None = None
    params: RawParams = NO_PARAMS
    reads: tuple[StrPath, ...] = ()
    """The files that its answers depend on: names of params that are paths, and else paths. Relative ones are found
    beside the config, and `__init__` gets absolute ones. Their contents are part of the version."""
    bounds_its_time = False
    may_take_long = False
    """Its answers may take long, though the class bounds its time."""
    Params: ClassVar[type[ParamsModel]] = ParamsModel
    settings: Any
    toolset: Any = None
    """The tools of its model (`tools.tool.ToolSet`), which the config sets; None without any."""

    def __init__(self, **params: Any) -> None:
        """Validate the params. Raises ConfigError that names the first wrong one."""
        owner = getattr(self, "name", type(self).__name__)
        self.settings = read_params(owner, self.Params, params, ConfigError)
        self._set_up_from_settings()

    def _set_up_from_settings(self) -> None:
        """Set what depends on the settings. Raises ConfigError for what no type of a param excludes."""


class Evaluator(Configurable, ABC):
    """Base class of evaluators. Set `name` and implement `answer`; everything else has a default.

    `answer` returns a Verdict, a number in [0, 1] or a boolean; for scope `group`, a sequence of them, one per response
    in the order shown. It may be a coroutine; otherwise it runs in a thread, or, if the evaluator is `runs_inline`
    (microseconds, no waiting), in the event loop itself. An exception becomes a failed verdict. An evaluator that is
    `batched` receives all its inputs at once in `answer_all`, to make fewer model calls; those about several inputs are
    sent by `share_client`. An evaluator with `reads_data` sees the data that a deriver of material `data` extracted
    from the response, if any. An evaluator with `uses_model` abstains if the config's model is `none`. `params` come
    from the config, which sets them after `__init__` received them; they are part of every question, so other params
    give another question; `Configurable` says how they are validated. `timeout` is the time limit of a call in seconds,
    unless the config sets another; None is the default of its kind: none if its class `bounds_its_time`, which says
    that its calls end in time by themselves, else 60 without a model. `combiner`, `shares` and `musts` describe how
    the evaluator's questions form a component of their own. `depends_on` names what the questions depend on besides the
    params; a run then keeps it fixed (see `EvaluatorRecord`). `sees` is the part of a conversation that is the text of
    the response which it gets; None is the default of its layer (`Question.shown_part`). One that `reads_context` shows
    a model the task's passages. One that `judges_whole_conversation` judges no single turns. It
    abstains where a task has none of its `task_fields`.
    """

    audience: Audience = "task"
    layer: Layer = "check"
    scope: EvaluatorScope = "response"
    uses_model = False
    no_model_message = "the config's model is none"
    """Why it abstains where it uses the model and there is none."""
    batched = False
    runs_inline = False
    reads_data = False
    needs: tuple[str, ...] = ()
    combiner = "mean"
    shares: Mapping[str, float] = MappingProxyType({})
    musts: tuple[str, ...] = ()
    depends_on = ""
    rarely_has_majority = False
    """Whether it gives several samples on a scale of more than three steps, which seldom agree."""
    sees: VisiblePart | None = None
    reads_context = False
    judges_whole_conversation = False
    task_fields: tuple[str, ...] = ()
    earlier_versions: tuple[str, ...] = ()
    """Versions whose questions it answers by the rules of then, so that their plans and runs can be repeated."""

    def describe_missing_fields(self, view: TaskView, subject: str) -> str | None:
        """Return the `task_fields` if the task has none of them; None if it has any, or nothing is needed.

        `subject` is that of the question, for an evaluator whose questions differ in what they need.
        """
        fields = self.task_fields
        # an empty cell of a table is no reference; an empty list of actions is one
        is_missing = bool(fields) and all(getattr(view, field) in (None, "") for field in fields)
        return " or ".join(fields) if is_missing else None

    def describe_doubtful_reference(self, reference: str) -> str | None:
        """Return how a reference is read where its author may have meant something else; None for all others."""
        return None

    @property
    def branch(self) -> GraphBranchName:
        """Return the branch of the score graph that this evaluator belongs to."""
        return BRANCH_OF_AUDIENCE[self.audience]

    @property
    def record(self) -> EvaluatorRecord:
        """Return the record of this evaluator that a run stores."""
        return EvaluatorRecord(
            version=self.version,
            audience=self.audience,
            combiner=self.combiner,
            shares=dict(self.shares),
            musts=self.musts,
            depends_on=self.depends_on,
        )

    @property
    def notes(self) -> Sequence[str]:
        """Return what the user should know before a run, such as skipped parts; one sentence each."""
        return ()

    @property
    def predictable_reviewers(self) -> Sequence[str]:
        """Return the only reviewers whom it can predict, sorted; empty if it can predict any, or none."""
        return ()

    def check(self, question: Question) -> None:
        """Check that the question is valid. Called when a plan is made, and before an earlier plan is used.

        Raises `ConfigError` if the config asks for a question that is not possible, and `InputError` if anything other
        than the task that the question depends on has changed.
        """

    def questions(self, view: TaskView) -> Sequence[Question]:
        """Return the questions about this member of the audience; one question unless overridden."""
        return [self.question(view)]

    def question(self, view: TaskView, subject: str | None = None, **fields: Any) -> Question:
        """Return a question of this evaluator about `view`; `fields` override those of Question."""
        default_subject = view.member or self.name.rpartition(".")[2]
        aspect = "" if subject is None else f"/{subject}"
        member = "" if view.member is None else f"@{view.member}"
        default_question_fields = {
            "id": f"{self.name}{aspect}{member}",
            "evaluator": self.name,
            "version": self.version,
            "subject": subject or default_subject,
            "view": view.digest,
            "branch": self.branch,
            "layer": self.layer,
            "scope": self.scope,
            "needs": self.needs,
            "params": dict(self.params),
            "sees": self.sees,
        }
        return Question.model_validate(default_question_fields | fields)

    @abstractmethod
    def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswers | Awaitable[EvaluatorAnswers]:
        """Return the verdict on the question."""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> Sequence[Any]:
        """Return the verdicts on all inputs, in the order of `batch`; called if the evaluator is `batched`."""
        raise NotImplementedError(f"evaluator {self.name!r} is `batched`, and has no `answer_all`")

    def open(self) -> None:
        """Prepare for the first question. Called once before it; start slow resources here."""

    def close(self) -> None:
        """Release resources. Called when the jury is closed; may be called more than once."""


class CodeEvaluator(Evaluator):
    """Base class of evaluators by code alone that take microseconds: they answer in the event loop itself."""

    version = "1"
    runs_inline = True
    bounds_its_time = True


class BatchEvaluator(Evaluator):
    """Base class of evaluators that answer all their inputs in one batch: implement `answer_all`."""

    batched = True

    async def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswer:
        (verdict,) = await self.answer_all([inputs])
        return verdict

    @abstractmethod
    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> Sequence[Verdict]:
        """Return the verdicts on all inputs, in the order of `batch`."""


class Deriver(Configurable, ABC):
    """Base class of derivers, which make material from one response for evaluators that list it in `needs`.

    Evaluators of variants name it in `material` instead. `params` come from the config, as for an evaluator;
    `uses_model`, `reads_data`, `bounds_its_time` and `timeout` mean the same as there. Material `data` replaces the
    response's own data for those that read data.
    """

    gives: str
    uses_model = False
    reads_data = False
    needs: tuple[str, ...] = ()

    def params_for(self, view: TaskView) -> RawParams:
        """Return what the plan records: the params, and everything besides the view that the material depends on."""
        return self.params

    @abstractmethod
    def derive(self, inputs: DeriverInput) -> Material | Awaitable[Material]:
        """Return the material, under the name in `gives`. May be a coroutine; otherwise it runs in a thread."""


T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

MAX_QUOTES = 3
CANNOT_TELL_REASON = "the judge cannot tell"
QuoteText = Annotated[str, Field(max_length=1000)]
QuoteTexts = Annotated[tuple[QuoteText, ...], Field(max_length=MAX_QUOTES)]
ReasonText = Annotated[str, Field(max_length=2000)]


async def ask_model(
    client: "JudgeClient",
    request: Request,
    reply_model: type[T],
    *,
    read: "Callable[[ParsedReply[T]], R]",
    fail: Callable[[Fault], R],
    find_reply_flaw: Callable[[T], str | None] | None = None,
    find_reply_problem: "ProblemFinder[T] | None" = None,
    record_tool_results: Callable[[Sequence[ToolResult]], object] | None = None,
    character_count: int = 0,
) -> R:
    """Return what `read` makes of the model's reply, or `fail` of the fault in its place.

    A reply in which `find_reply_flaw` finds one is sent back to the model once, and counts if that changes nothing. One
    in which `find_reply_problem` finds a problem is malformed: it is sent back as well, and never counts. `read` and
    `find_reply_flaw` may search texts of `character_count` characters in total: in a thread if there are many.
    `record_tool_results` gets what the model looked up before it answered. Raises the errors that end a run.
    """

    async def check(reply: T) -> str | None:
        if find_reply_flaw is None:
            return None
        return await search_off_loop(lambda: find_reply_flaw(reply), character_count)

    try:
        reply = await client.judge(
            request,
            reply_model,
            check,
            find_reply_problem=find_reply_problem,
            record_tool_results=record_tool_results,
        )
    except Fault as fault:
        return fail(fault)
    return await search_off_loop(lambda: read(reply), character_count)


def failed_verdict(fault: Fault) -> Verdict:
    return Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)


class JudgedValue(NamedTuple):
    """The content of a verdict: score in [0, 1], the judge's decision, native value and scale, confidence in [0, 1].

    `score` is None where the judge says that the item does not apply.
    """

    score: float | None
    met: bool | None = None
    native: float | str | None = None
    scale: tuple[float, float] | None = None
    confidence: float | None = None


QuotedSourceKind = Literal["response", "context"]
_TEXT_TO_QUOTE_BY_KIND = {"response": "the response", "context": "a passage of the context"}
_TextKind = Literal["response", "context", "other"]


class ClaimWithQuotes(NamedTuple):
    """A claim of a reply about a response that needs a quotation, with the quotations given for it.

    `needs` are the texts of which each has to be quoted.
    """

    statement: str
    quotes: Sequence[str]
    needs: tuple[QuotedSourceKind, ...] = ("response",)


class QuotableTexts:
    """The texts that a judge may quote: the response, the passages of the task's context by name, and what tools found.

    A result of a tool supports a claim about the response only if its words are the response's, such as those of a file
    in its workspace: that a price list has a price does not show that the response has it.
    """

    def __init__(self, response: SearchableText, passages: Mapping[str, str] | None = None) -> None:
        context = {name: to_searchable_text(text) for name, text in (passages or {}).items()}
        # In the order of the search: a quotation that stands in several texts is evidence from the first.
        self._texts = {
            "response": {"response": response},
            "context": context,
            "other": {},
        }

    def add_tool_results(self, results: Sequence[ToolResult]) -> None:
        """Add the results of tools, under the names that evidence has as its source, such as `tool:3`."""
        for result in results:
            if result.text:
                texts = self._texts["response" if result.response == 1 else "other"]
                texts[f"{TOOL_SOURCE_PREFIX}{result.number}"] = to_searchable_text(result.text)

    def find_support(
        self, quotation: str, kinds: Iterable[_TextKind] = get_args(_TextKind)
    ) -> Evidence | None:
        """Return the passage of such texts that a quotation matches, first in the response; None if it is nowhere."""
        for kind in kinds:
            for source, text in self._texts[kind].items():
                found = text.find_support(quotation)
                if found is not None:
                    return Evidence(
                        quote=found.text,
                        start=found.start,
                        end=found.end,
                        source=source,
                        verified=True,
                    )
        return None

    def list_unquoted_kinds(self, claim: ClaimWithQuotes) -> list[QuotedSourceKind]:
        """Return the kinds of texts that the claim needs and does not quote."""
        return [
            kind
            for kind in claim.needs
            if not any(self.find_support(quotation, [kind]) for quotation in claim.quotes)
        ]

    def explain_rejected_quotation(self, quotation: str) -> str:
        """Return why a quotation supports nothing, by the response or else the first result in which it stands."""
        for text in (*self._texts["response"].values(), *self._texts["other"].values()):
            reason = explain_rejected_quote(quotation, text)
            if reason != QUOTE_NOT_FOUND_REASON:
                return reason
        return QUOTE_NOT_FOUND_REASON


class Finding(NamedTuple):
    """The answer of a reply to one question: its `place` in the reply, its measured value, and the reason.

    `judged_value` is None where the judge cannot tell. `claims` are the parts that need a quotation from the response;
    `quotes` are all quotations given.
    """

    place: str
    judged_value: JudgedValue | None
    reason: str
    quotes: Sequence[str] = ()
    claims: Sequence[ClaimWithQuotes] = ()


async def request_finding_verdicts(
    client: "JudgeClient",
    request: Request,
    reply_model: type[T],
    response: str,
    subjects: Iterable[str],
    find: Callable[[T, Reply | None], Mapping[str, Finding]],
    *,
    find_reply_problem: "ProblemFinder[T] | None" = None,
    are_quotes_checked: bool = True,
    passages: Mapping[str, str] | None = None,
) -> dict[str, Verdict]:
    """Return a verdict on each subject: what `find` finds in the model's reply on a response.

    Unless the config's `safety.evidence` is off, every claim needs a quotation from the response: quotations from
    elsewhere are discarded, the model gets one chance to repair its reply, and a finding with a claim that is left
    without any is marked `unsupported`. Nothing is credited where the judge cannot tell, so that it needs no quotation.
    `passages` are other texts that may be quoted, by the names that evidence has as its source. `are_quotes_checked` is
    false if replies have no quotations. The reply itself has the log probabilities of its tokens; a check of quotations
    needs none. A reply in which `find_reply_problem` finds a problem is malformed (see `ask_model`).
    """
    evidence_rule = client.safety.evidence
    text = None
    if are_quotes_checked and evidence_rule != "off":
        text = QuotableTexts(await to_searchable_text_async(response), passages)

    def find_reply_flaw(value: T) -> str | None:
        if text is None:
            return None
        problems = []
        unquoted_kinds: set[QuotedSourceKind] = set()
        for finding in find(value, None).values():
            for claim in _find_unsupported_claims(finding.claims, text):
                problems.append(f"{finding.place}: {_describe_missing_evidence(claim, text)}")
                unquoted_kinds.update(text.list_unquoted_kinds(claim))
        sources = [_TEXT_TO_QUOTE_BY_KIND[kind] for kind in sorted(unquoted_kinds, reverse=True)]
        return describe_missing_quotes(problems, " and from ".join(sources))

    def read(reply: "ParsedReply[T]") -> dict[str, Verdict]:
        return {
            subject: build_verdict(finding, text, reply.call.id, evidence_rule)
            for subject, finding in find(reply.value, reply.reply).items()
        }

    return await ask_model(
        client,
        request,
        reply_model,
        read=read,
        fail=lambda fault: dict.fromkeys(subjects, failed_verdict(fault)),
        find_reply_flaw=find_reply_flaw,
        find_reply_problem=find_reply_problem,
        record_tool_results=None if text is None else text.add_tool_results,
        character_count=len(response),
    )


def build_verdict(
    finding: Finding, text: QuotableTexts | None, call: str, evidence_rule: EvidencePolicy
) -> Verdict:
    """Return the verdict; `text` is where quotations are searched, or None if no quotations are asked for.

    It abstains where the judge cannot tell, and is not applicable where the measurement has no score.
    """
    quotes = list(dict.fromkeys(quote for quote in finding.quotes if quote.strip()))
    reason = finding.reason
    unsupported_claims: Sequence[ClaimWithQuotes] = ()
    if text is None:
        evidence = tuple(Evidence(quote=quote) for quote in quotes)
    else:
        needed_kinds = dict.fromkeys(kind for claim in finding.claims for kind in claim.needs)
        evidence, rejected_quotes = verify_quotes(quotes, text, needed_kinds)
        unsupported_claims = _find_unsupported_claims(finding.claims, text)
        if rejected_quotes and not unsupported_claims:  # else the mark says it
            reason = f"{reason} [lost: {_explain_rejected_quotes(rejected_quotes, text)}]"
    if finding.judged_value is None:
        return Verdict(
            status="abstained", reason=reason or CANNOT_TELL_REASON, evidence=evidence, call=call
        )
    status = "ok" if finding.judged_value.score is not None else "not_applicable"
    verdict = Verdict(
        **finding.judged_value._asdict(), status=status, reason=reason, evidence=evidence, call=call
    )
    if text is None or not unsupported_claims:
        return verdict
    problems = "; ".join(_describe_missing_evidence(claim, text) for claim in unsupported_claims)
    return mark_unsupported(verdict, f"says {problems}", evidence_rule)


def _find_unsupported_claims(
    claims: Iterable[ClaimWithQuotes], text: QuotableTexts
) -> list[ClaimWithQuotes]:
    return [claim for claim in claims if text.list_unquoted_kinds(claim)]


def _describe_missing_evidence(claim: ClaimWithQuotes, text: QuotableTexts) -> str:
    if not claim.quotes:
        return f"{claim.statement}, and nothing is quoted for it"
    rejected_quotes = [
        quotation for quotation in claim.quotes if text.find_support(quotation) is None
    ]
    if not rejected_quotes:  # what is quoted is there, in another text than the one that is needed
        unquoted_kinds = text.list_unquoted_kinds(claim)
        return f"{claim.statement}, and does not quote {' and '.join(unquoted_kinds)}"
    return f"{claim.statement}, and quotes {_explain_rejected_quotes(rejected_quotes, text)}"


def _explain_rejected_quotes(quotations: Sequence[str], text: QuotableTexts) -> str:
    """Return why quotations support nothing: not in the texts, too weak to be evidence, or without content."""
    reasons: dict[str, list[str]] = {
        QUOTE_NOT_FOUND_REASON: [],
        QUOTE_TOO_WEAK_REASON: [],
        QUOTE_WITHOUT_CONTENT_REASON: [],
    }
    for quotation in quotations:
        reasons[text.explain_rejected_quotation(quotation)].append(quotation)
    return " and ".join(
        f"{shorten_quotes(rejected_quotes)} ({why})"
        for why, rejected_quotes in reasons.items()
        if rejected_quotes
    )


WORST_CASE_VERDICT_FIELDS = MappingProxyType(
    {
        "score": 0.0,
        "met": False,
        "native": None,
        "confidence": None,
        "status": "ok",
        "unsupported": "worst-case",
    }
)
"""The fields of a verdict that counts as the worst case: nothing is met. For a penalty, the decision turns it round."""
QUOTE_NOT_FOUND_REASON = "not in the response"
QUOTE_TOO_WEAK_REASON = "too short, or cut within a word or number"
QUOTE_WITHOUT_CONTENT_REASON = "announces an answer, or fills a line, and says nothing"


def describe_missing_quotes(problems: Iterable[str], source: str) -> str | None:
    """Return the problems of a reply that lacks quotations from the source, with what to do; None if there is none."""
    problems_text = "; ".join(problems)
    hint = f"quote from {source} letter by letter, eight letters or more, or decide anew"
    return f"{problems_text}; {hint}" if problems_text else None


def mark_unsupported(
    verdict: Verdict,
    problem: str,
    evidence_rule: EvidencePolicy,
    unsupported_fields: ReadOnlyFields = WORST_CASE_VERDICT_FIELDS,
) -> Verdict:
    """Return the verdict on a finding that no quotation supports; `problem` follows "the judge".

    `unsupported_fields` are the fields that change if the rule requires a quotation; else the finding stands.
    """
    changed_fields = (
        unsupported_fields if evidence_rule == "required" else {"unsupported": "stands"}
    )
    reason = f"{verdict.reason} [unsupported: the judge {problem}]".lstrip()
    return verdict.model_copy(update={"reason": reason, **changed_fields})


def explain_rejected_quote(quotation: str, text: SearchableText) -> str:
    passage = text.find(quotation)
    if passage is None:
        return QUOTE_NOT_FOUND_REASON
    return QUOTE_WITHOUT_CONTENT_REASON if text.is_filler(passage) else QUOTE_TOO_WEAK_REASON


def verify_quotes(
    quotations: Sequence[str], text: QuotableTexts, needed_kinds: Iterable[_TextKind] = ()
) -> tuple[tuple[Evidence, ...], list[str]]:
    """Return the quoted passages as evidence, and the quotations that match no passage.

    What stands in several of the texts that are needed is evidence from each, and from others only if it is in none.
    """
    passages: dict[Evidence, None] = {}  # in order, each once
    rejected_quotes = []
    for quotation in quotations:
        found = [text.find_support(quotation, [kind]) for kind in needed_kinds]
        if not any(found):
            found = [text.find_support(quotation)]
        evidence = [passage for passage in found if passage is not None]
        if not evidence:
            rejected_quotes.append(quotation)
        passages |= dict.fromkeys(evidence)
    return tuple(passages), rejected_quotes


def shorten_quotes(quotations: Sequence[str]) -> str:
    return ", ".join(f"'{shorten(quotation, 80)}'" for quotation in quotations[:3])


def shared_prompt_variables(inputs: EvaluatorInput | DeriverInput) -> JsonFields:
    """Return the prompt variables that all prompts about a response share: the task, a reference, and the response."""
    return {
        "query": chat_to_prompt_text(inputs.task.query),
        "reference": inputs.task.reference,
        "response": inputs.response.text,
    }


class SingleCallEvaluator(BatchEvaluator):
    """Ask a model once about a response, and read all verdicts from the reply."""

    layer = "model"
    uses_model = True
    bounds_its_time = True

    @abstractmethod
    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return all verdicts on a response, by the subjects of their questions."""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `batch`; those on one response and sample come from one call."""
        inputs_by_model_call = defaultdict(list)
        for inputs in batch:
            inputs_by_model_call[inputs.response.id, inputs.sample].append(inputs)
        results = await gather_all(map(self._judge_call, inputs_by_model_call.values()))
        verdicts_by_model_call = dict(zip(inputs_by_model_call, results, strict=True))
        return [
            verdicts_by_model_call[inputs.response.id, inputs.sample][inputs.question.subject]
            for inputs in batch
        ]

    async def _judge_call(self, call_inputs: Sequence[EvaluatorInput]) -> Mapping[str, Verdict]:
        shared_call_input = replace(call_inputs[0], client=share_client(call_inputs))
        verdicts = await self.judge_response(shared_call_input)
        for inputs in call_inputs:
            inputs.report(verdicts[inputs.question.subject])
        return verdicts
