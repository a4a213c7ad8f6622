"""Rank a whole group at once, in one order and in reverse."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from jurygraph.agents.judging.forms import Quotes, Reason
from jurygraph.agents.roles import Answer, EvaluatorInput
from jurygraph.judges.pairwise.comparison_judge import MOST_SHOWN, ComparisonJudge, reason_with_notes
from jurygraph.schema import FrozenModel, Question, Scope, TaskView, Verdict


class Listwise(ComparisonJudge):
    """Rank of each response in a ranking of a group of G without ties, as (G - rank) / (G - 1).

    A group takes two calls: one shows it in an order that depends on the content, the other in reverse. A group of more
    than 20 is not sent to the model, and its verdicts are failed: in a list of that length, the position decides the
    rank.
    """

    name = "listwise"
    scope: Scope = "group"
    prompt = "listing"
    combiner = "rank-share"

    def question(self, view: TaskView, subject: str | None = None, **fields: Any) -> Question:
        return super().question(view, subject, **{"samples": 2, **fields})

    def reply_model(self, names: Sequence[str], compact: bool) -> type[FrozenModel]:
        return _ranking_model(tuple(names), compact)

    def has_preference(self, reply: Any) -> bool:
        return True

    def prompt_variables(self, names: Sequence[str]) -> Mapping[str, Any]:
        return {"names": tuple(names)}

    async def answer(self, inputs: EvaluatorInput) -> Answer | Sequence[Answer]:
        size = len(inputs.responses)
        if size > MOST_SHOWN:
            advice = "score smaller groups, or compare by `pairwise`"
            return Verdict.fail("too-many", f"{self.name} ranks {MOST_SHOWN} responses at most, not {size}; {advice}")
        order = range(size) if inputs.sample % 2 == 0 else range(size - 1, -1, -1)
        reply = await self.ask_model(inputs, [inputs.responses[index] for index in order])
        if isinstance(reply, Verdict):
            return reply
        judged, quoted = reply
        names, reason = sorted(judged.value.ranking), reason_with_notes(judged.value, quoted)
        verdicts: dict[int, Verdict] = {}
        for position, index in enumerate(order):
            rank = 1 + judged.value.ranking.index(names[position])
            verdicts[index] = Verdict(
                score=(size - rank) / (size - 1),
                native=float(rank),
                scale=(float(size), 1.0),
                reason=reason,
                evidence=quoted.evidence(position),
                call=judged.call.id,
            )
        return [verdicts[index] for index in range(size)]


@lru_cache(maxsize=MOST_SHOWN * 2)
def _ranking_model(names: tuple[str, ...], compact: bool) -> type[FrozenModel]:
    """Return the pydantic model of the reply: every name once, the best first."""

    def each_once(ranking: tuple[str, ...]) -> tuple[str, ...]:
        if sorted(ranking) != list(names):
            raise ValueError(f"the ranking is {', '.join(ranking)}: name each of {', '.join(names)} once")
        return ranking

    label: Any = Literal[names]
    exact_length = Field(min_length=len(names), max_length=len(names))
    ranking_type = Annotated[tuple[label, ...], exact_length, AfterValidator(each_once)]
    explanation: Any = {} if compact else {"reason": (Reason, ...), "quotes": (Quotes, ...)}
    return create_model("RankingReply", __base__=FrozenModel, **explanation, ranking=(ranking_type, ...))
