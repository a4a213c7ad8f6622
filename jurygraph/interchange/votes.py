"""The judges' verdicts as RATINGS, which `jurygraph consensus` reads."""

from collections.abc import Iterator, Sequence

from jurygraph.errors import InputError
from jurygraph.runs.export_table import verdicts_about_response
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict
from jurygraph.schema.rating import Vote


def export_votes(run: Run) -> Iterator[bytes]:
    """Yield the judges' verdicts as JSON lines of votes, as `jurygraph consensus` reads them.

    An item is a question about a response, or about a turn of it, and its label the score: 1 or 0 where a judge says
    that something is met or not. A judge that abstained has no label. Comparisons are left out, and verdicts that
    failed, that lack the quotation which they need, or that no judge gave. Raises `InputError` if none is left.
    """
    has_votes = False
    unnamed_answers = []
    for trace in run.traces():
        for verdict in verdicts_about_response(trace, superseded=True):
            is_single_response_verdict = verdict.responses == (trace.response_id,)
            is_vote_verdict = verdict.status in ("ok", "abstained") and not verdict.is_worst_case
            if not is_single_response_verdict or not is_vote_verdict:
                continue
            if verdict.judge is None:
                if verdict.calls:
                    unnamed_answers.append(verdict)
                continue
            item = f"{verdict.question} {trace.response_id}"
            if verdict.turn is not None:
                item += f" turn {verdict.turn}"
            vote = Vote(
                item=item,
                agent=trace.agent,
                annotator=verdict.judge,
                label=float(bool(verdict.met)) if verdict.is_binary_verdict else verdict.score,
                group=trace.task_id,
            )
            line = vote.model_dump_json(exclude_none=verdict.status == "ok")
            yield line.encode() + b"\n"
            has_votes = True
    if not has_votes:
        raise InputError(
            f"{run.folder}: has no votes, since {_describe_missing_votes(unnamed_answers)}"
        )


def _describe_missing_votes(unnamed_answers: Sequence[RecordedVerdict]) -> str:
    """Return why a run has no votes, and the remedy; `unnamed_answers` are of a model, without a judge's name."""
    if not unnamed_answers:
        return "no judge answered a question about one response"
    number = f"its {len(unnamed_answers)} answers"
    if all(verdict.reviewer is not None for verdict in unnamed_answers):
        return (
            f"{number} predict single reviewers, by a `model` that is no judge with a name; `--to verdicts` writes "
            "them, with their `reviewer`"
        )
    return (
        f"{number} are of a `model` that is no judge with a name; `--to verdicts` writes them, and votes take several "
        "`models`, named as `judges` of an evaluator"
    )
