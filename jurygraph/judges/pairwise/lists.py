"""A whole group at a time, in one order and in reverse: who is ranked where."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from jurygraph.agents.judging.forms import Quotes, Reason
from jurygraph.agents.roles import Answer, Ask
from jurygraph.judges.pairwise.comparing import MOST_SHOWN, Comparing, reason_of
from jurygraph.schema import Noun, Question, Scope, TaskView, Verdict


class Listwise(Comparing):
    """The place of each response of a group of G in a ranking without ties: (G - place) / (G - 1).

    Two calls a group: one shows it in an order that the content gives, the other in reverse. A group of more than 20 is
    not asked about at all, and its verdicts are failed: who is shown among so many is ranked by where it stands.
    """

    name = "listwise"
    scope: Scope = "group"
    prompt = "listing"
    combiner = "rank-share"

    def question(self, view: TaskView, subject: str | None = None, **fields: Any) -> Question:
        return super().question(view, subject, **{"samples": 2, **fields})

    def noun(self, names: Sequence[str], compact: bool) -> type[Noun]:
        return _ranking(tuple(names), compact)

    def prefers(self, stated: Any) -> bool:
        return True

    def variables(self, names: Sequence[str]) -> Mapping[str, Any]:
        return {"names": tuple(names)}

    async def answer(self, ask: Ask) -> Answer | Sequence[Answer]:
        size = len(ask.responses)
        if size > MOST_SHOWN:
            advice = "score smaller groups, or compare by `pairwise`"
            return Verdict.failed("too-many", f"{self.name} ranks {MOST_SHOWN} responses at most, not {size}; {advice}")
        order = range(size) if ask.sample % 2 == 0 else range(size - 1, -1, -1)
        found = await self.asked(ask, [ask.responses[place] for place in order])
        if isinstance(found, Verdict):
            return found
        judged, quoted = found
        names, reason = sorted(judged.value.ranking), reason_of(judged.value, quoted)
        verdicts: dict[int, Verdict] = {}
        for at, place in enumerate(order):
            rank = 1 + judged.value.ranking.index(names[at])
            verdicts[place] = Verdict(
                score=(size - rank) / (size - 1),
                native=float(rank),
                scale=(float(size), 1.0),
                reason=reason,
                evidence=quoted.evidence(at),
                call=judged.call.id,
            )
        return [verdicts[place] for place in range(size)]


@lru_cache(maxsize=MOST_SHOWN * 2)
def _ranking(names: tuple[str, ...], compact: bool) -> type[Noun]:
    """What is to be replied: every name once, the best first."""

    def each_once(ranking: tuple[str, ...]) -> tuple[str, ...]:
        if sorted(ranking) != list(names):
            raise ValueError(f"the ranking is {', '.join(ranking)}: name each of {', '.join(names)} once")
        return ranking

    name: Any = Literal[names]
    length = Field(min_length=len(names), max_length=len(names))
    stated = Annotated[tuple[name, ...], length, AfterValidator(each_once)]
    said: Any = {} if compact else {"reason": (Reason, ...), "quotes": (Quotes, ...)}
    return create_model("RankingStated", __base__=Noun, **said, ranking=(stated, ...))
