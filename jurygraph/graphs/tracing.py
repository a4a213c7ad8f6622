"""From the score graph's final state to traces."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jurygraph import aggregation
from jurygraph.graphs.decide import verdicts_of
from jurygraph.graphs.state import ScoreState
from jurygraph.schema import Call, Material, Question, Response, Trace, Verdict, digest_of


def group_statistics(questions: Sequence[Question], scored: Iterable[tuple[str, float | None]]) -> dict[str, Any]:
    """For every question, how the group's scores lie: judged, mean, least and greatest.

    `scored` gives every verdict of the group as its question's id and its score, None where there is none.
    A question whose least and greatest score are equal tells the responses of this group apart by nothing.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for question, score in scored:
        if score is not None:
            scores[question].append(score)
    return {"questions": {q.id: _spread(sorted(scores[q.id])) for q in questions}}


def _spread(scores: Sequence[float]) -> dict[str, Any]:
    if not scores:
        return {"judged": 0, "mean": None, "low": None, "high": None}
    mean = float(aggregation.total(scores)) / len(scores)
    return {"judged": len(scores), "mean": mean, "low": scores[0], "high": scores[-1]}


def write_traces(state: ScoreState, calls: Mapping[str, Call]) -> tuple[Trace, ...]:
    """One trace for each response, in canonical order; the caller puts agents and labels back.

    `calls` are those that the group's verdicts and material may name.
    """
    plan, responses = state["plan"], state["responses"]
    mine = verdicts_of(plan.survey.questions, [r.id for r in responses], state["verdicts"])
    material: dict[str, list[Material]] = defaultdict(list)
    for one in state["material"]:
        material[one.response].append(one)
    group, plan_digest = group_digest(responses), plan.digest
    return tuple(
        Trace(
            task_id=plan.task_id,
            response_id=response.id,
            group=group,
            plan_digest=plan_digest,
            reward=reward,
            verdicts=tuple(mine[response.id]),
            calls=_named(calls, (*mine[response.id], *material[response.id])),
            material=tuple(sorted(material[response.id], key=lambda one: one.name)),
            statistics=state["statistics"],
            plan=plan,
        )
        for response, reward in zip(responses, state["rewards"], strict=True)
    )


def _named(calls: Mapping[str, Call], resting: Iterable[Verdict | Material]) -> tuple[Call, ...]:
    """The calls that verdicts and material name, and those that these repaired or that were to repair them."""
    resting = list(resting)
    named = {one.call for one in resting if one.call in calls}
    named |= {v.shrinkage.call for v in resting if isinstance(v, Verdict) and v.shrinkage and v.shrinkage.call in calls}
    named |= {calls[name].repairs for name in named if name is not None}
    named |= {call.id for call in calls.values() if call.repairs is not None and call.repairs in named}
    return tuple(calls[name] for name in sorted(name for name in named if name is not None) if name in calls)


def group_digest(responses: Sequence[Response]) -> str:
    """Digest of the members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])
