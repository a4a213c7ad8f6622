"""One trace in full, as lines."""

from jurygraph.cli.sides import opponent, score_for
from jurygraph.cli.text import number, table, visible
from jurygraph.schema import Evidence, Reward, Trace, Verdict


def trace_lines(trace: Trace) -> list[str]:
    """Every term, verdict and note of a trace."""
    head = [f"response  {visible(trace.response_id)}", f"task      {visible(trace.task_id)}"]
    if trace.agent is not None:
        head.append(f"agent     {visible(trace.agent)}")
    verdicts = [line for verdict in trace.verdicts for line in _verdict_lines(trace.response_id, verdict)]
    foot = [f"plan      {trace.plan_digest}", f"digest    {trace.digest}", f"previous  {trace.previous or '-'}"]
    return [*head, *_reward_lines(trace.reward), "", "verdicts", *verdicts, "", *foot]


def _reward_lines(reward: Reward) -> list[str]:
    counts = reward.counts
    lines = [f"reward    {number(reward.value)}  ({reward.status}, coverage {number(reward.coverage)})"]
    if reward.value is None:
        lines.append(f"partial   {number(reward.partial)}  (what was judged, alone)")
    if reward.range is not None:
        lines.append(f"range     {number(reward.range[0])} to {number(reward.range[1])}")
    lines.append(
        f"asked     {counts.asked} = {counts.judged} judged + {counts.abstained} abstained"
        f" + {counts.failed} failed + {counts.not_applicable} not applicable"
    )
    lines += [f"note      {visible(note)}" for note in reward.notes]
    rows = [[t.name, number(t.weight), number(t.value), number(t.contribution)] for t in reward.terms]
    lines += ["", *table(["term", "weight", "value", "contribution"], rows)]
    lines += [f"{visible(a.name)}: {number(a.before)} -> {number(a.after)}" for a in reward.adjustments]
    for name, parts in reward.parts.items():
        shown = ", ".join(f"{part} {number(value)}" for part, value in parts.items())
        lines.append(f"{visible(name)} is made of {visible(shown)}")
    return lines


def _verdict_lines(response_id: str, verdict: Verdict) -> list[str]:
    answer = number(score_for(response_id, verdict)) if verdict.status == "ok" else verdict.status
    other = opponent(response_id, verdict)
    question = visible(verdict.question) + (f" against {visible(other)}" if other else "")
    lines = [f"  {question}  {answer}  ({visible(verdict.evaluator)} {visible(verdict.version)})"]
    if verdict.reason:
        lines.append(f"      {visible(verdict.reason, 300)}")
    if verdict.failure is not None:
        lines.append(f"      {verdict.failure.cause} failure: {visible(verdict.failure.kind)}")
    if verdict.gated_by is not None:
        lines.append(f"      gated by {visible(verdict.gated_by)}")
    return lines + [f"      {_evidence(evidence)}" for evidence in verdict.evidence]


def _evidence(evidence: Evidence) -> str:
    place = "" if evidence.start is None else f" at {evidence.start}-{evidence.end}"
    found = "" if evidence.verified else ", not found there"
    return f'"{visible(evidence.quote, 200)}"  ({visible(evidence.source)}{place}{found})'
