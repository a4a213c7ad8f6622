"""Base of the judges that compare responses: their requests, and the check of quotations behind a preference."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from jurygraph.agents.judging.evaluator import Profile, shared_prompt_variables
from jurygraph.agents.judging.quotations import check_off_loop
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.errors import ConfigError
from jurygraph.judges.pairwise.quotations import LocatedQuotations
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import SearchableText, aread_text
from jurygraph.schema import Failure, FrozenModel, Layer, Response, Verdict

if TYPE_CHECKING:
    from jurygraph.models.judge_client import ParsedReply

MOST_SHOWN = 20
"""Most responses in one prompt."""
USUAL = "Which one serves the task better: it does what was asked, it is right, and it can be used as it stands."


class ComparisonJudge(Evaluator):
    """Ask a model to compare responses, which are named A, B and so on in its prompt.

    If `safety.evidence` is on in the config, a reply that prefers a response needs a quotation that occurs in one of
    the responses shown. A reply without one is returned to the model once, and then becomes a failed verdict of cause
    `response`. A `compact` profile gives neither reasons nor quotations, so that its verdicts have no evidence.

    Args:
        criterion: what is compared, in a sentence; by default, which response serves the task better.
        profile: `full`, or `compact` for fewer tokens.
    """

    layer: Layer = "model"
    uses_model = True
    prompt: ClassVar[str]

    def __init__(self, criterion: str = USUAL, profile: Profile = "full") -> None:
        if not isinstance(criterion, str) or not criterion.strip():
            raise ConfigError(f"{self.name}: criterion is a sentence that says what is compared, not {criterion!r}")
        if profile not in get_args(Profile):
            raise ConfigError(f"{self.name}: profile is one of {', '.join(get_args(Profile))}, not {profile!r}")
        self._criterion, self._compact = criterion, profile == "compact"
        self._prompt = load_prompt(self.prompt)
        self.version = f"1 prompt {self._prompt.full_version}"

    @abstractmethod
    def reply_model(self, names: Sequence[str], compact: bool) -> type[FrozenModel]:
        """Return the pydantic model of the reply about responses of these names."""

    @abstractmethod
    def has_preference(self, reply: Any) -> bool:
        """Return True if a reply prefers one response to another, and so needs a quotation."""

    def prompt_variables(self, names: Sequence[str]) -> Mapping[str, Any]:
        """Return prompt variables in addition to task, responses and criterion."""
        return {}

    async def ask_model(
        self, inputs: EvaluatorInput, responses: Sequence[Response]
    ) -> "tuple[ParsedReply[Any], LocatedQuotations] | Verdict":
        """Return the reply on the responses in this order with its quotations, or a failed verdict without a reply."""
        gateway = inputs.client
        assert gateway is not None, "a model is required"
        names = tuple(ascii_uppercase[: len(responses)])
        reply_model: type[Any] = self.reply_model(names, self._compact)
        named_responses = [
            {"name": name, "text": response.text} for name, response in zip(names, responses, strict=True)
        ]
        own_variables = {
            "responses": named_responses,
            "criterion": self._criterion,
            "compact": self._compact,
            **self.prompt_variables(names),
        }
        request = gateway.request(
            self._prompt, reply_model, {**shared_prompt_variables(inputs), **own_variables}, sample=inputs.sample
        )
        texts = [await aread_text(response.text) for response in responses]
        needs_evidence = gateway.safety.evidence and not self._compact
        try:
            flaw = (
                check_off_loop(
                    partial(self._check_quotations, texts), sum(len(response.text) for response in responses)
                )
                if needs_evidence
                else None
            )
            judged = await gateway.judge(request, reply_model, flaw)
        except Fault as fault:
            return Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
        quoted = _find_quotations(judged.value, texts)
        if needs_evidence and self.has_preference(judged.value) and not quoted.has_evidence:
            message = f"the judge prefers a response, {_describe_missing(quoted)}"
            failure = Failure(cause="response", kind="unsupported", message=message)
            return Verdict(
                status="failed", failure=failure, reason=reason_with_notes(judged.value, quoted), call=judged.call.id
            )
        return judged, quoted

    def _check_quotations(self, texts: Sequence[SearchableText], reply: Any) -> str | None:
        """Return a message about a reply that prefers a response and has no quotation from any, None if it is valid."""
        quoted = _find_quotations(reply, texts)
        if quoted.has_evidence or not self.has_preference(reply):
            return None
        hint = "quote from a response letter by letter, eight letters or more, or decide anew"
        return f"a response is preferred, {_describe_missing(quoted)}; {hint}"


def reason_with_notes(reply: Any, quoted: LocatedQuotations) -> str:
    """Return the reason in a reply, with a note on its quotations that occur in no response."""
    reason: str = getattr(reply, "reason", "")
    return f"{reason} [lost: {quoted.unverified}]" if quoted.unverified else reason


def _find_quotations(reply: Any, texts: Sequence[SearchableText]) -> LocatedQuotations:
    return LocatedQuotations(getattr(reply, "quotes", ()), texts)


def _describe_missing(quoted: LocatedQuotations) -> str:
    return f"and quotes {quoted.unverified}" if quoted.unverified else "and nothing is quoted for it"
