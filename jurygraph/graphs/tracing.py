"""Build the traces of a group from its verdicts and rewards."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jurygraph.graphs.state import PlannedGroup, RunContext
from jurygraph.schema import Call, Material, Question, RecordedVerdict, Response, Reward, Trace, digest_of
from jurygraph.schema.config import permitted_purpose
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


class GroupFindings(NamedTuple):
    """The findings about a group: verdicts and material in any order, and the rewards in canonical order."""

    verdicts: Sequence[RecordedVerdict]
    material: Sequence[Material]
    rewards: Sequence[Reward]


def build_traces(group: PlannedGroup, found: GroupFindings, context: RunContext) -> list[Trace]:
    """Return one trace for each response, in the order in which they were submitted.

    Raises ConfigError where the judge would evaluate what was trained on its own rewards, and that is refused.
    """
    plan = group.plan
    questions = plan.survey.questions
    calls = {**group.reused_results.calls, **context.calls}
    counting = ((one.question, one.score) for one in found.verdicts if not one.superseded)
    statistics = group_statistics(questions, counting)
    by_response = group_verdicts_by_response(questions, [r.id for r in group.responses], found.verdicts)
    material_of: dict[str, list[Material]] = defaultdict(list)
    for item in found.material:
        material_of[item.response].append(item)
    reward_of = {response.id: reward for response, reward in zip(group.responses, found.rewards, strict=True)}
    of_group = group_digest(group.responses)
    traces = []
    for response in group.submitted:
        verdicts = tuple(by_response[response.id])
        material = tuple(sorted(material_of[response.id], key=lambda item: item.name))
        referenced = _referenced_calls(calls, (*verdicts, *material))
        served = [call.served for call in referenced if call.served]
        made = Trace(
            task_id=plan.task_id,
            response_id=response.id,
            agent=response.agent,
            group=of_group,
            labels=response.labels,
            plan_digest=plan.digest,
            reward=reward_of[response.id],
            verdicts=verdicts,
            calls=referenced,
            material=material,
            statistics=statistics,
            purpose=permitted_purpose(context.config.purpose, context.judges, served),
            plan=plan,
        )
        traces.append(made)
    return traces


def _referenced_calls(calls: Mapping[str, Call], users: Iterable[RecordedVerdict | Material]) -> tuple[Call, ...]:
    """Return the calls that were made for verdicts and material, sorted by id."""
    referenced = {use.id for user in users for use in user.calls}
    return tuple(calls[name] for name in sorted(referenced & calls.keys()))


def group_digest(responses: Sequence[Response]) -> str:
    """Return the digest of the group's members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])
