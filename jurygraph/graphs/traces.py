"""The traces of a group, from what was found about it."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

from jurygraph.decision.decide import RewardRow
from jurygraph.graphs.active_groups import ActiveGroup
from jurygraph.schema import Material, RecordedVerdict, Response, Trace, digest_of
from jurygraph.schema.trace import (
    group_verdicts_by_response,
    permitted_purpose,
    question_score_statistics,
)


def build_traces(active_group: ActiveGroup, rewards: Sequence[RewardRow]) -> list[Trace]:
    """Return one trace for each response of a group, in the order in which they were submitted.

    The rewards are in the order of its `responses`. Raises ConfigError where the judge would evaluate what was trained
    on its own rewards, and that is refused.
    """
    group = active_group.group
    context = active_group.context
    plan = group.plan
    questions = plan.survey.questions
    calls = {**group.reused_results.calls, **context.sent_calls}
    lookups = {**group.reused_results.lookups, **context.lookups}
    unsuperseded_verdicts = [verdict for verdict in active_group.verdicts if not verdict.superseded]
    scores = ((verdict.question, verdict.score) for verdict in unsuperseded_verdicts)
    statistics = question_score_statistics(questions, scores)
    sorted_verdicts = sorted(active_group.verdicts, key=lambda verdict: verdict.key.sort_key)
    ids = [response.id for response in group.responses]
    verdicts_by_response = group_verdicts_by_response(questions, ids, sorted_verdicts)
    material_by_response = defaultdict(list)
    for item in active_group.material:
        material_by_response[item.response].append(item)
    row_by_response = dict(zip(ids, rewards, strict=True))
    digest = group_digest(group.responses)
    traces = []
    for response in group.submitted_responses:
        verdicts = tuple(verdicts_by_response[response.id])
        material = tuple(sorted(material_by_response[response.id], key=lambda item: item.name))
        results: tuple[RecordedVerdict | Material, ...] = (*verdicts, *material)
        call_ids = {use.id for use in chain.from_iterable(result.calls for result in results)}
        lookup_ids = set(chain.from_iterable(result.lookups for result in results))
        referenced_calls = tuple(calls[name] for name in sorted(call_ids & calls.keys()))
        served = [call.served for call in referenced_calls if call.served]
        traces.append(
            Trace(
                task_id=plan.task_id,
                response_id=response.id,
                agent=response.agent,
                group=digest,
                labels=response.labels,
                plan_digest=plan.digest,
                reward=row_by_response[response.id].to_reward(plan.decision),
                verdicts=verdicts,
                calls=referenced_calls,
                lookups=tuple(lookups[name] for name in sorted(lookup_ids)),
                material=material,
                statistics=statistics,
                purpose=permitted_purpose(context.config.purpose, context.judges, served),
                plan=plan,
            )
        )
    return traces


def group_digest(responses: Sequence[Response]) -> str:
    """Return the digest of the group's members: their ids and contents, in canonical order."""
    return digest_of([[r.id, r.content_digest] for r in responses])
