"""Build the traces of a group from its verdicts and rewards."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jurygraph.schema import Call, Material, Plan, Question, RecordedVerdict, Response, Reward, Trace, digest_of
from jurygraph.schema.trace import group_verdicts_by_response


def group_statistics(questions: Sequence[Question], scored: Iterable[tuple[str, float | None]]) -> dict[str, Any]:
    """Return, for every question, the number of judged verdicts and the mean, lowest and highest score in the group.

    `scored` gives the question id and the score of every verdict of the group; the score is None where there is none.
    A question with equal lowest and highest scores does not separate the responses of this group.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for question, score in scored:
        if score is not None:
            scores[question].append(score)
    described: dict[str, Any] = {q.id: {"judged": 0, "mean": None, "low": None, "high": None} for q in questions}
    for name, values in scores.items():
        values.sort()
        total = 0.0
        for value in values:  # as `aggregation.total` adds, which is slower for a few numbers
            total += value
        described[name] = {"judged": len(values), "mean": total / len(values), "low": values[0], "high": values[-1]}
    return {"questions": described}


def build_traces(
    plan: Plan,
    responses: Sequence[Response],
    verdicts: Sequence[RecordedVerdict],
    material: Sequence[Material],
    statistics: dict[str, Any],
    rewards: Sequence[Reward],
    calls: Mapping[str, Call],
) -> tuple[Trace, ...]:
    """Return one trace for each response, in canonical order; the caller adds agents and labels again.

    `calls` are the calls, by id, that the group's verdicts and material may refer to.
    """
    by_response = group_verdicts_by_response(plan.survey.questions, [r.id for r in responses], verdicts)
    material_of: dict[str, list[Material]] = defaultdict(list)
    for item in material:
        material_of[item.response].append(item)
    group = group_digest(responses)
    plan_digest = plan.digest
    return tuple(
        Trace(
            task_id=plan.task_id,
            response_id=response.id,
            group=group,
            plan_digest=plan_digest,
            reward=reward,
            verdicts=tuple(by_response[response.id]),
            calls=_referenced_calls(calls, (*by_response[response.id], *material_of[response.id])),
            material=tuple(sorted(material_of[response.id], key=lambda item: item.name)),
            statistics=statistics,
            plan=plan,
        )
        for response, reward in zip(responses, rewards, strict=True)
    )


def _referenced_calls(calls: Mapping[str, Call], users: Iterable[RecordedVerdict | Material]) -> tuple[Call, ...]:
    """Return the calls that were made for verdicts and material, sorted by id."""
    referenced = {use.id for user in users for use in user.calls}
    return tuple(calls[name] for name in sorted(referenced & calls.keys()))


def group_digest(responses: Sequence[Response]) -> str:
    """Return the digest of the group's members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])
