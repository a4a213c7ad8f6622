"""What DecompR's scoring protocols share: one call for the whole of a protocol, and one reply for all its verdicts."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from jurygraph.agents.judging.evaluator import shared
from jurygraph.agents.judging.findings import Finding, flaw_in, verdict_on
from jurygraph.agents.judging.forms import Claim
from jurygraph.agents.judging.one_call import OneCall
from jurygraph.agents.judging.quotations import off_loop
from jurygraph.agents.roles import Ask
from jurygraph.judges.protocols.people import shown
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import aread_text
from jurygraph.schema import Audience, Noun, Question, Stakeholder, TaskView, Verdict

ROOM = 160
"""Tokens that a reply may take for one reason with its quotations and what follows from them; most take half."""

People = Sequence[Stakeholder]


class ScoringProtocol(OneCall):
    """Judges one response for everybody whom it is to serve, in a single call (DecompR, Appendix A.2).

    The call holds the whole protocol, however much of it is asked for, so that a part that is asked for later finds the
    reply to the whole. Where the config's `safety.evidence` stands, whatever the model finds in a response needs a
    quotation that stands there; what is quoted from elsewhere is lost, which the model is told once, and what is then
    left without any is a failed verdict of cause `response`.
    """

    audience: Audience = "everyone"
    combiner = "protocol"
    prompt: ClassVar[str]
    """The name of the prompt that says how to judge."""

    def __init__(self) -> None:
        self._prompt = load_prompt(self.prompt)
        self.version = f"1 prompt {self._prompt.edition}"

    @abstractmethod
    def subjects(self, people: People) -> Sequence[str]:
        """What is asked about, one question each."""

    @abstractmethod
    def reply(self, people: People) -> type[Noun]:
        """What is to be replied."""

    @abstractmethod
    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        """What a reply says, by the subjects that it speaks of; those that are asked about are among them."""

    @abstractmethod
    def reasons(self, people: People) -> int:
        """How many reasons a reply may hold, each with its quotations."""

    def beside(self, people: People) -> Mapping[str, Any]:
        """What else fills the prompt."""
        return {}

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, subject) for subject in self.subjects(view.people)]

    async def judged(self, ask: Ask) -> Mapping[str, Verdict]:
        """All verdicts of the protocol on a response, by their subjects."""
        people, gateway = ask.task.people, ask.gateway
        assert gateway is not None, "asked without a model"
        noun = self.reply(people)
        variables = {**shared(ask), "people": shown(people), **self.beside(people)}
        request = gateway.request(self._prompt, noun, variables, sample=ask.sample, room=ROOM * self.reasons(people))
        text = await aread_text(ask.response.text) if gateway.safety.evidence else None

        def flaw(reply: Noun) -> str | None:
            return None if text is None else flaw_in(_claims(self.findings(reply, people).values()), text)

        try:
            judged = await gateway.judge(request, noun, off_loop(flaw, len(ask.response.text)))
        except Fault as fault:
            failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
            return dict.fromkeys(self.subjects(people), failed)
        found = self.findings(judged.value, people)
        return {subject: verdict_on(one, text, judged.call.id) for subject, one in found.items()}


def _claims(findings: Iterable[Finding]) -> Iterator[tuple[str, Sequence[Claim]]]:
    return ((one.place, one.claims) for one in findings)
