"""What the judges that compare responses share: what is asked, and that no preference rests on invented quotations."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from jurygraph.agents.judging.evaluator import Profile, shared
from jurygraph.agents.judging.quotations import off_loop
from jurygraph.agents.roles import Ask, Evaluator
from jurygraph.errors import ConfigError
from jurygraph.judges.pairwise.quoting import Quoted
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import Text, aread_text
from jurygraph.schema import Failure, Layer, Noun, Response, Verdict

if TYPE_CHECKING:
    from jurygraph.models.consultation import Judged

MOST_SHOWN = 20
"""Responses in one prompt, at most."""
USUAL = "Which one serves the task better: it does what was asked, it is right, and it can be used as it stands."


class Comparing(Evaluator):
    """Asks a model to compare responses, which stand in its prompt as A, B and so on.

    Where the config's `safety.evidence` stands, whatever prefers a response needs a quotation that stands in one of
    those shown: a reply without any is shown to the model once, and is then a failed verdict of cause `response`. A
    `compact` profile gives neither reasons nor quotations, so that nothing it says rests on evidence.

    Args:
        criterion: what is compared, in a sentence; what serves the task better unless given.
        profile: `full`, or `compact` for fewer tokens.
    """

    layer: Layer = "model"
    asks_model = True
    prompt: ClassVar[str]

    def __init__(self, criterion: str = USUAL, profile: Profile = "full") -> None:
        if not isinstance(criterion, str) or not criterion.strip():
            raise ConfigError(f"{self.name}: criterion is a sentence that says what is compared, not {criterion!r}")
        if profile not in get_args(Profile):
            raise ConfigError(f"{self.name}: profile is one of {', '.join(get_args(Profile))}, not {profile!r}")
        self._criterion, self._compact = criterion, profile == "compact"
        self._prompt = load_prompt(self.prompt)
        self.version = f"1 prompt {self._prompt.edition}"

    @abstractmethod
    def noun(self, names: Sequence[str], compact: bool) -> type[Noun]:
        """What is to be replied about responses of these names."""

    @abstractmethod
    def prefers(self, stated: Any) -> bool:
        """Whether a reply prefers one response to another, and so needs a quotation."""

    def variables(self, names: Sequence[str]) -> Mapping[str, Any]:
        """What the prompt shows beside task, responses and criterion."""
        return {}

    async def asked(self, ask: Ask, responses: Sequence[Response]) -> "tuple[Judged[Any], Quoted] | Verdict":
        """The reply on the responses in this order, and what it quotes from them; or the verdict that there is none."""
        gateway = ask.gateway
        assert gateway is not None, "asked without a model"
        names = tuple(ascii_uppercase[: len(responses)])
        noun: type[Any] = self.noun(names, self._compact)
        shown = [{"name": name, "text": one.text} for name, one in zip(names, responses, strict=True)]
        asking = {"responses": shown, "criterion": self._criterion, "compact": self._compact, **self.variables(names)}
        request = gateway.request(self._prompt, noun, {**shared(ask), **asking}, sample=ask.sample)
        texts = [await aread_text(one.text) for one in responses]
        needed = gateway.safety.evidence and not self._compact
        try:
            flaw = off_loop(partial(self._flaw, texts), sum(len(one.text) for one in responses)) if needed else None
            judged = await gateway.judge(request, noun, flaw)
        except Fault as fault:
            return Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
        quoted = _quoted(judged.value, texts)
        if needed and self.prefers(judged.value) and not quoted.supports:
            message = f"the judge prefers a response, {_lacking(quoted)}"
            failure = Failure(cause="response", kind="unsupported", message=message)
            return Verdict(
                status="failed", failure=failure, reason=reason_of(judged.value, quoted), call=judged.call.id
            )
        return judged, quoted

    def _flaw(self, texts: Sequence[Text], stated: Any) -> str | None:
        """What is wrong with a reply that prefers a response and quotes what stands in none."""
        quoted = _quoted(stated, texts)
        if quoted.supports or not self.prefers(stated):
            return None
        hint = "quote from a response letter by letter, eight letters or more, or decide anew"
        return f"a response is preferred, {_lacking(quoted)}; {hint}"


def reason_of(stated: Any, quoted: Quoted) -> str:
    """The reason that a reply gives, and which of its quotations stand in no response."""
    reason: str = getattr(stated, "reason", "")
    return f"{reason} [lost: {quoted.lost}]" if quoted.lost else reason


def _quoted(stated: Any, texts: Sequence[Text]) -> Quoted:
    return Quoted(getattr(stated, "quotes", ()), texts)


def _lacking(quoted: Quoted) -> str:
    return f"and quotes {quoted.lost}" if quoted.lost else "and nothing is quoted for it"
