"""Judges that compare responses: pairs in both orders, or a whole group in one order and in reverse."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, Field, create_model

from jurygraph.agents.roles import (
    Evaluator,
    EvaluatorAnswers,
    EvaluatorInput,
    QuotableTexts,
    QuoteTexts,
    ReasonText,
    ask_model,
    describe_missing_quotes,
    failed_verdict,
    mark_unsupported,
    require_client,
    shared_prompt_variables,
    shorten_quotes,
    verify_quotes,
)
from jurygraph.judges.criteria import REASON_AND_QUOTES_FIELDS, NonEmptySentence, ReplyVerbosity
from jurygraph.models.request import ToolResult
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import to_searchable_text_async
from jurygraph.schema import (
    EvaluatorScope,
    Evidence,
    FrozenModel,
    Layer,
    Question,
    Response,
    TaskView,
    Verdict,
)
from jurygraph.schema.frozen_model import ParamsModel, ReadOnlyFields

if TYPE_CHECKING:
    from jurygraph.models.judge_client import ParsedReply


OPPONENT_EVIDENCE_SOURCE = (
    "opponent"  # source of evidence from the response with which a verdict compares its own
)
MAX_RESPONSES_SHOWN = 20  # most responses in one prompt
DEFAULT_COMPARISON_QUESTION = (
    "Which one serves the task better: it does what was asked, it is right, "
    "and it can be used as it stands."
)


class LocatedQuotations(NamedTuple):
    """The quotations of a reply: as evidence in each of the responses as they are shown, and those in none of them."""

    evidence: Sequence[tuple[Evidence, ...]]
    lost: str

    @property
    def missing(self) -> str:
        """The problem if no quotation occurs in a response and is valid evidence; empty if there is one."""
        if any(self.evidence):
            return ""
        return f"and quotes {self.lost}" if self.lost else "and nothing is quoted for it"


def locate_quotes(reply: Any, texts: Sequence[QuotableTexts]) -> LocatedQuotations:
    """Search the quotations of a reply in all responses; each passage is evidence once."""
    quotations = list(dict.fromkeys(filter(str.strip, getattr(reply, "quotes", ()))))
    unmatched_quotations = quotations
    evidence = []
    for text in texts:
        passages, rejected_quotations = verify_quotes(quotations, text)
        evidence.append(passages)
        unmatched_quotations = [
            quotation for quotation in unmatched_quotations if quotation in rejected_quotations
        ]
    why = "in no response, too short, or cut within a word or number"
    lost = f"{shorten_quotes(unmatched_quotations)} ({why})" if unmatched_quotations else ""
    return LocatedQuotations(evidence, lost)


class ComparisonJudge(Evaluator):
    """Ask a model to compare responses, which are named A, B and so on in its prompt.

    Unless `safety.evidence` is off in the config, a reply that prefers a response needs a quotation that occurs in one
    of the responses shown. A reply without one is returned to the model once. If a quotation is required, it then is a
    tie. A `compact` profile gives neither reasons nor quotations, so that its verdicts have no evidence.
    """

    class Params(ParamsModel):
        criterion: NonEmptySentence = DEFAULT_COMPARISON_QUESTION
        """What is compared, in a sentence; by default, which response serves the task better."""
        profile: ReplyVerbosity = "full"
        """`full`, or `compact` for fewer tokens."""

    layer: Layer = "model"
    uses_model = True
    prompt_name: ClassVar[str]
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._compact = self.settings.profile == "compact"
        self._prompt = load_prompt(self.prompt_name)
        self.version = f"1 prompt {self._prompt.full_version}"

    @abstractmethod
    def reply_model(self, names: Sequence[str], compact: bool) -> type[FrozenModel]:
        """Return the pydantic model of the reply about responses of these names."""

    @abstractmethod
    def has_preference(self, reply: Any) -> bool:
        """Return True if a reply prefers one response to another, and so needs a quotation."""

    def prompt_variables(self, names: Sequence[str]) -> ReadOnlyFields:
        """Return prompt variables in addition to task, responses and criterion."""
        return {}

    @abstractmethod
    def read_scores(self, reply: Any) -> list[Verdict]:
        """Return the verdicts of a reply, in the order in which responses were shown, without reason and evidence."""

    async def compare(self, inputs: EvaluatorInput, responses: Sequence[Response]) -> list[Verdict]:
        """Return the verdicts on the responses, shown in this order; failed ones if there is no usable reply.

        They are marked if there is no quotation for a preference.
        """
        client = require_client(inputs.client).with_responses(responses)
        names = tuple(ascii_uppercase[: len(responses)])
        reply_model = self.reply_model(names, self._compact)
        named_responses = zip(names, responses, strict=True)
        variables = {
            **shared_prompt_variables(inputs),
            "responses": [
                {"name": name, "text": response.text} for name, response in named_responses
            ],
            "criterion": self.settings.criterion,
            "compact": self._compact,
            **self.prompt_variables(names),
        }
        request = client.request(self._prompt, reply_model, variables, sample=inputs.sample)
        texts = [
            QuotableTexts(await to_searchable_text_async(response.text)) for response in responses
        ]
        rule = client.safety.evidence
        needs_evidence = rule != "off" and not self._compact

        def record_tool_results(results: Sequence[ToolResult]) -> None:
            """Let each response be quoted from what a tool read of it, too, such as a file of its workspace."""
            for number, text in enumerate(texts, start=1):
                text.add_tool_results(
                    [item._replace(response=1) for item in results if item.response == number]
                )

        def locate(reply: Any) -> tuple[LocatedQuotations, str]:
            """Return the quotations of a reply, and what is missing of them."""
            quotations = locate_quotes(reply, texts)
            is_evidence_needed = needs_evidence and self.has_preference(reply)
            return quotations, quotations.missing if is_evidence_needed else ""

        def find_reply_flaw(reply: Any) -> str | None:
            _, missing = locate(reply)
            problems = [f"a response is preferred, {missing}"] if missing else []
            return describe_missing_quotes(problems, "a response")

        def read(reply: "ParsedReply[Any]") -> list[Verdict]:
            quotations, missing = locate(reply.value)
            reason = getattr(reply.value, "reason", "")
            if quotations.lost:
                reason += f" [lost: {quotations.lost}]"
            verdicts = []
            for index, scored in enumerate(self.read_scores(reply.value)):
                evidence = self.choose_evidence(quotations, index)
                fields = {"reason": reason, "evidence": evidence, "call": reply.call.id}
                verdict = scored.model_copy(update=fields)
                if missing:
                    problem = f"prefers a response, {missing}"
                    # a tie of two, or of a whole ranking
                    native = "tie" if verdict.scale is None else sum(verdict.scale) / 2.0
                    met = None if verdict.met is None else False
                    tie_fields = {"score": 0.5, "met": met, "native": native, "unsupported": "tie"}
                    verdict = mark_unsupported(verdict, problem, rule, tie_fields)
                verdicts.append(verdict)
            return verdicts

        character_count = sum(len(response.text) for response in responses)
        return await ask_model(
            client,
            request,
            reply_model,
            read=read,
            fail=lambda fault: [failed_verdict(fault)] * len(responses),
            find_reply_flaw=find_reply_flaw,
            record_tool_results=record_tool_results,
            character_count=character_count,
        )

    def choose_evidence(
        self, quoted_evidence: LocatedQuotations, index: int
    ) -> tuple[Evidence, ...]:
        """Return the evidence of the verdict on the response at an index: what is quoted from it."""
        return quoted_evidence.evidence[index]


PreferredTextLabel = Literal["A", "B", "tie"]
_SCORE_BY_PREFERENCE: dict[PreferredTextLabel, tuple[float, str]] = {
    "A": (1.0, "first"),
    "B": (0.0, "second"),
    "tie": (0.5, "tie"),
}


# No docstrings: they would be part of the schema in the prompt. Class names appear in messages about missing fields.


class PreferenceReply(FrozenModel):
    reason: ReasonText
    quotes: QuoteTexts
    preferred: PreferredTextLabel


class BarePreferenceReply(FrozenModel):
    preferred: PreferredTextLabel


class Pairwise(ComparisonJudge):
    """Preference between two responses, from the side of the first: 1 for the first, 0 for the second, 0.5 for a tie.

    Each ordered pair takes a call, G (G - 1) calls for G responses, so that the effect of the order can be measured.
    Quotations from the second response are evidence of source `opponent`.
    """

    name = "pairwise"
    scope: EvaluatorScope = "pair"
    prompt_name = "pair"
    combiner = "win-share"

    def reply_model(self, names: Sequence[str], compact: bool) -> type[FrozenModel]:
        return BarePreferenceReply if compact else PreferenceReply

    def has_preference(self, reply: Any) -> bool:
        return bool(reply.preferred != "tie")

    def read_scores(self, reply: Any) -> list[Verdict]:
        """Return the only verdict, on the first response."""
        score, native = _SCORE_BY_PREFERENCE[reply.preferred]
        return [Verdict(score=score, met=native == "first", native=native)]

    def choose_evidence(
        self, quoted_evidence: LocatedQuotations, index: int
    ) -> tuple[Evidence, ...]:
        first, second = quoted_evidence.evidence
        opponent_evidence = []
        for passage in second:
            source = OPPONENT_EVIDENCE_SOURCE if passage.source == "response" else passage.source
            opponent_evidence.append(passage.model_copy(update={"source": source}))
        return (*first, *opponent_evidence)

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        verdicts = await self.compare(inputs, inputs.responses)
        return verdicts[0]


class Listwise(ComparisonJudge):
    """Rank of each response in a ranking of a group of G without ties, as (G - rank) / (G - 1).

    A group takes two calls: one shows it in an order that depends on the content, the other in reverse. A group of more
    than 20 is not sent to the model, and its verdicts are failed: in a list of that length, the position decides the
    rank.
    """

    name = "listwise"
    scope: EvaluatorScope = "group"
    prompt_name = "listing"
    combiner = "rank-share"

    def question(self, view: TaskView, subject: str | None = None, **fields: Any) -> Question:
        return super().question(view, subject, **{"samples": 2, **fields})

    def reply_model(self, names: Sequence[str], compact: bool) -> type[FrozenModel]:
        return _ranking_reply_model(tuple(names), compact)

    def has_preference(self, reply: Any) -> bool:
        return True

    def prompt_variables(self, names: Sequence[str]) -> ReadOnlyFields:
        return {"names": tuple(names)}

    def read_scores(self, reply: Any) -> list[Verdict]:
        size = len(reply.ranking)
        # In the order in which the responses were shown, which is that of their names.
        ranks = [1 + reply.ranking.index(name) for name in sorted(reply.ranking)]
        scale = (float(size), 1.0)
        return [
            Verdict(score=(size - rank) / (size - 1), native=float(rank), scale=scale)
            for rank in ranks
        ]

    async def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswers:
        size = len(inputs.responses)
        if size > MAX_RESPONSES_SHOWN:
            return Verdict.fail(
                "too-many",
                f"{self.name} ranks {MAX_RESPONSES_SHOWN} responses at most, not {size}; score smaller groups, or "
                "compare by `pairwise`",
            )
        step = 1 if inputs.sample % 2 == 0 else -1
        verdicts = await self.compare(inputs, inputs.responses[::step])
        return verdicts[::step]


@lru_cache(maxsize=MAX_RESPONSES_SHOWN * 2)
def _ranking_reply_model(names: tuple[str, ...], compact: bool) -> type[FrozenModel]:
    """Return the pydantic model of the reply: every name once, the best first."""

    def require_each_once(ranking: tuple[str, ...]) -> tuple[str, ...]:
        if sorted(ranking) != list(names):
            raise ValueError(
                f"the ranking is {', '.join(ranking)}: name each of {', '.join(names)} once"
            )
        return ranking

    label: Any = Literal[names]
    length_constraint = Field(min_length=len(names), max_length=len(names))
    ranking_type = Annotated[
        tuple[label, ...], length_constraint, AfterValidator(require_each_once)
    ]
    explanation = {} if compact else REASON_AND_QUOTES_FIELDS
    return create_model(
        "RankingReply", __base__=FrozenModel, **explanation, ranking=(ranking_type, ...)
    )
