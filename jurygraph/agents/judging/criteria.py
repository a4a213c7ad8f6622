"""Rubric criteria, judged by a model: binary, each with its probability (GEAR's local event scores p_i)."""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, create_model, model_validator

from jurygraph.agents.roles import Answer, Ask, Evaluator
from jurygraph.errors import PlanError
from jurygraph.models.faults import Fault
from jurygraph.models.probability import p_true
from jurygraph.prompts import load_prompt
from jurygraph.schema import Criterion, Noun, Question, TaskView, Verdict
from jurygraph.schema.noun import Flag, Unit

if TYPE_CHECKING:
    from jurygraph.models.consultation import Judged

AT_ONCE = 4
"""Criteria in one call. More save tokens, and each is judged less by itself."""


class Stated(Noun):
    """What a model says of one criterion."""

    reason: Annotated[str, Field(max_length=2000)]
    met: Flag
    probability: Unit

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Stated":
        if self.met != (self.probability >= 0.5):
            said = f"met is {str(self.met).lower()} and probability {self.probability}"
            raise ValueError(f"{said}: it is 0.5 or more exactly where met is true")
        return self


def _names(number: int) -> list[str]:
    return [f"criterion_{place}" for place in range(1, number + 1)]


_ANSWERS: dict[int, type[Noun]] = {
    number: create_model("Verdicts", __base__=Noun, **dict.fromkeys(_names(number), (Stated, ...)))  # type: ignore[call-overload]
    for number in range(1, AT_ONCE + 1)
}
"""What is to be answered about so many criteria."""


class _Named(NamedTuple):
    """A criterion as the prompt shows it."""

    name: str
    text: str


class Criteria(Evaluator):
    """Whether each criterion of the rubric is met; up to four criteria of a response are asked about in one call.

    The score is P(met): from the log probabilities of the word that says so where the model gives them, else as stated.
    """

    name = "criteria"
    audience = "criterion"
    layer = "model"
    asks_model = True
    together = True

    def __init__(self) -> None:
        self._prompt = load_prompt("criteria")
        self.version = f"1 prompt {self._prompt.version}"

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Criterion)
        if view.about.scale is not None:
            where = f"task {view.id!r}: rubric criterion {view.about.id!r}"
            raise PlanError(f"{where} has a `scale`, and `criteria` says yes or no; leave the scale out")
        return [self.question(view)]

    async def answer(self, ask: Ask) -> Answer:
        (verdict,) = await self.answer_all([ask])
        return verdict

    async def answer_all(self, asks: Sequence[Ask]) -> list[Verdict]:
        """The verdicts, in the order of the asks; what is asked together hangs on ids alone, so that it is the same
        whenever the same is asked."""
        places = sorted(range(len(asks)), key=lambda place: _place(asks[place]))
        batches = [
            batch
            for _, own in groupby(places, key=lambda place: _place(asks[place])[:2])
            for batch in _chunks(list(own))
        ]
        found = await asyncio.gather(*(self._judged([asks[place] for place in batch]) for batch in batches))
        verdicts = {
            place: one
            for batch, ones in zip(batches, found, strict=True)
            for place, one in zip(batch, ones, strict=True)
        }
        return [verdicts[place] for place in range(len(asks))]

    async def _judged(self, asks: Sequence[Ask]) -> list[Verdict]:
        names, noun = _names(len(asks)), _ANSWERS[len(asks)]
        ask = asks[0]
        assert ask.gateway is not None, "asked without a model"
        shown = [_Named(name, one.task.about.text) for name, one in zip(names, asks, strict=True)]  # type: ignore[union-attr]
        variables = {
            "query": _query(ask.task),
            "reference": ask.task.reference,
            "criteria": shown,
            "response": ask.response.text,
        }
        request = ask.gateway.request(self._prompt, noun, variables, sample=ask.sample, logprobs=True)
        try:
            judged = await ask.gateway.judge(request, noun)
        except Fault as fault:
            failed = Verdict(status="failed", failure=fault.failure, reason=str(fault), call=fault.call)
            return [failed] * len(asks)
        return [_verdict(judged, name) for name in names]


def _place(ask: Ask) -> tuple[str, int, str]:
    return ask.response.id, ask.sample, ask.question.id


def _chunks(places: Sequence[int]) -> list[Sequence[int]]:
    return [places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE)]


def _query(view: TaskView) -> str:
    if isinstance(view.query, str):
        return view.query
    return "\n\n".join(f"{message.role}: {message.content}" for message in view.query)


def _verdict(judged: "Judged[Any]", name: str) -> Verdict:
    stated: Stated = getattr(judged.value, name)
    likely = p_true(judged.reply, (name, "met"))
    source = "as stated" if likely is None else "from log probabilities"
    return Verdict(
        score=stated.probability if likely is None else likely,
        met=stated.met,
        native=f"P(met) {source}",
        reason=stated.reason,
        call=judged.call.id,
    )
