"""The votes of several judges in a run: how many had no majority, and who was outvoted."""

from collections import Counter

from jurygraph.decision.turns import (
    fold_jury,
    has_judgement,
    is_about_whole_response,
    is_jury_question,
    read_uses,
)
from jurygraph.messages import join_names
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import StoredGroup, read_stored_groups
from jurygraph.schema import RecordedVerdict

_MajorityAndVotes = tuple[RecordedVerdict, list[RecordedVerdict]]


def describe_jury_votes(run: Run) -> str:
    """Return how many majorities of judges failed, and how often each judge was outvoted; empty without such votes."""
    vote_count = 0
    undecided_count = 0
    outvoted: Counter[str | None] = Counter()
    for group in read_stored_groups(run) if run.config.judges else ():
        for folded, votes in _list_majorities(run, group):
            vote_count += 1
            if has_judgement(folded):
                outvoted.update(v.judge for v in votes if _answer(v) != _answer(folded))
            else:
                undecided_count += folded.status == "abstained"
    if not vote_count:
        return ""
    names = [f"{judge} on {count}" for judge, count in outvoted.most_common()]
    return (
        f"Judges voted on {vote_count} questions: {undecided_count} had no majority, and counted as the worst case; "
        f"outvoted: {join_names(names) or 'nobody'}"
    )


def _list_majorities(run: Run, group: StoredGroup) -> list[_MajorityAndVotes]:
    """Return what most judges say on each response and question of a group, with the votes that were cast."""
    survey = run.source.survey_without_texts(group.survey)
    decision = run.decision(group.decision)
    uses = read_uses(decision)
    verdicts = [verdict for verdict in group.verdicts(survey) if not verdict.superseded]
    majorities = []
    for question in survey.questions:
        is_voted_on = is_about_whole_response(question) and is_jury_question(question, uses)
        if is_voted_on and uses[question.id].inputs[0].reduce == "majority":
            asked = [verdict for verdict in verdicts if verdict.question == question.id]
            for folded, _ in fold_jury(question, asked, decision, uses[question.id], ()):
                votes = [v for v in asked if v.about == folded.about and has_judgement(v)]
                majorities.append((folded, votes))
    return majorities


def _answer(verdict: RecordedVerdict) -> object:
    return verdict.met if verdict.is_binary_verdict else verdict.score
