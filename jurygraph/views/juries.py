"""The votes of several judges in a run: how many had no majority, and who was outvoted."""

from collections import Counter

from jurygraph.decision.turns import fold_juries, has_judgement
from jurygraph.messages import format_count, join_names
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import compare_judges_by_question
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema import RecordedVerdict

_MAX_RESPONSES_COUNTED = 10_000


def describe_jury_votes(run: Run) -> str:
    """Return how many majorities of judges failed, and how often each judge was outvoted; without such votes, how often
    judges differ, as `score` says it; empty of one judge.

    It takes up to 1 ms a response, and is empty for runs of more than 10,000 of them.
    """
    if run.ledger.count_records("trace") > _MAX_RESPONSES_COUNTED:
        return ""
    vote_count = 0
    compared = []
    worst_case_flags = []
    outvoted: Counter[str | None] = Counter()
    for group in read_stored_groups(run) if run.config.judges else ():
        for trace in group.traces:
            compared += compare_judges_by_question(trace.body["verdicts"])
        survey = run.source.survey_without_texts(group.survey)
        verdicts = [verdict for verdict in group.verdicts(survey) if not verdict.superseded]
        decision = run.decision(group.decision)
        for use, answers, folded, is_worst_case in fold_juries(
            survey.questions, verdicts, decision
        ):
            if use.inputs[0].reduce != "majority":
                continue
            votes = list(filter(has_judgement, answers))
            vote_count += 1
            if has_judgement(folded):
                agreeing = {vote.judge for vote in votes if _answer(vote) == _answer(folded)}
                # a judge may have several samples
                outvoted.update({vote.judge: 1 for vote in votes if vote.judge not in agreeing})
            elif votes:
                worst_case_flags.append(is_worst_case)
    if not vote_count:
        if not compared:
            return ""
        different_count = sum(answers_differ for _, answers_differ in compared)
        return f"The judges answered {different_count} of {format_count(len(compared), 'question')} differently"
    names = [f"{judge} on {count}" for judge, count in outvoted.most_common()]
    outvoted_text = f"; outvoted: {join_names(names)}" if names else ""
    return (
        f"Judges voted on {format_count(vote_count, 'question')}: {len(worst_case_flags)} had no majority "
        f"({sum(worst_case_flags)} count as the worst case){outvoted_text}"
    )


def _answer(verdict: RecordedVerdict) -> object:
    return verdict.met if verdict.is_binary_verdict else verdict.score
