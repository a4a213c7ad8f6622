"""Base of DecompR's scoring protocols: one call for a whole protocol, and one reply for all its verdicts."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from jurygraph.agents.judging.evaluator import shared_prompt_variables
from jurygraph.agents.judging.findings import Finding, build_verdict, find_unsupported_claims
from jurygraph.agents.judging.forms import Claim
from jurygraph.agents.judging.quotations import check_off_loop
from jurygraph.agents.judging.single_call import SingleCallEvaluator
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.judges.protocols.people import named_people
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import aread_text
from jurygraph.schema import Audience, FrozenModel, Question, Stakeholder, TaskView, Verdict

TOKENS_PER_REASON = 160
"""Tokens that a reply may use for one reason with its quotations and its conclusion; most use half."""

People = Sequence[Stakeholder]


class ScoringProtocol(SingleCallEvaluator):
    """Judge one response for all people whom it should serve, in a single call (DecompR, Appendix A.2).

    The call contains the whole protocol even if only a part of it is requested, so that a later request for another
    part finds the reply in the cache. If `safety.evidence` is on in the config, each finding about a response needs a
    quotation that occurs in it; other quotations are discarded, which is reported to the model once, and a finding that
    then has no quotation becomes a failed verdict of cause `response`.
    """

    audience: Audience = "everyone"
    combiner = "protocol"
    prompt: ClassVar[str]
    """Name of the prompt with the judging instructions."""

    def __init__(self) -> None:
        self._prompt = load_prompt(self.prompt)
        self.version = f"1 prompt {self._prompt.full_version}"

    @abstractmethod
    def subjects(self, people: People) -> Sequence[str]:
        """Return the subjects, with one question each."""

    @abstractmethod
    def reply_model(self, people: People) -> type[FrozenModel]:
        """Return the pydantic model of the reply."""

    @abstractmethod
    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        """Return the findings of a reply by subject, at least those of all `subjects`."""

    @abstractmethod
    def max_reasons(self, people: People) -> int:
        """Return the most reasons that a reply may hold, each with its quotations."""

    def prompt_variables(self, people: People) -> Mapping[str, Any]:
        """Return additional prompt variables."""
        return {}

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, subject) for subject in self.subjects(view.people)]

    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return all verdicts of the protocol on a response, by subject."""
        people, gateway = inputs.task.people, inputs.client
        assert gateway is not None, "a model is required"
        reply_model = self.reply_model(people)
        variables = {**shared_prompt_variables(inputs), "people": named_people(people), **self.prompt_variables(people)}
        request = gateway.request(
            self._prompt,
            reply_model,
            variables,
            sample=inputs.sample,
            max_reply_tokens=TOKENS_PER_REASON * self.max_reasons(people),
        )
        text = await aread_text(inputs.response.text) if gateway.safety.evidence else None

        def find_flaw(reply: FrozenModel) -> str | None:
            return (
                None if text is None else find_unsupported_claims(_claims(self.findings(reply, people).values()), text)
            )

        try:
            judged = await gateway.judge(request, reply_model, check_off_loop(find_flaw, len(inputs.response.text)))
        except Fault as fault:
            failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
            return dict.fromkeys(self.subjects(people), failed)
        findings = self.findings(judged.value, people)
        return {subject: build_verdict(finding, text, judged.call.id) for subject, finding in findings.items()}


def _claims(findings: Iterable[Finding]) -> Iterator[tuple[str, Sequence[Claim]]]:
    return ((finding.place, finding.claims) for finding in findings)
