"""The judges' verdicts as RATINGS, which `jurygraph consensus` reads."""

from collections.abc import Iterator

from jurygraph.errors import InputError
from jurygraph.runs.export_table import verdicts_about_response
from jurygraph.runs.run import Run
from jurygraph.schema.rating import Vote


def export_votes(run: Run) -> Iterator[bytes]:
    """Yield the judges' verdicts as JSON lines of votes, as `jurygraph consensus` reads them.

    An item is a question about a response, or about a turn of it, and its label the score: 1 or 0 where a judge says
    that something is met or not. A `model` without a name among judges is called as its evaluator. A judge that
    abstained has no label. Comparisons are left out, and verdicts that failed, that lack the quotation which they need,
    or that no judge gave. Raises `InputError` if none is left.
    """
    has_votes = False
    for trace in run.traces():
        for verdict in verdicts_about_response(trace, superseded=True):
            is_single_response_verdict = verdict.responses == (trace.response_id,)
            is_vote_verdict = verdict.status in ("ok", "abstained") and not verdict.is_worst_case
            if not is_single_response_verdict or not is_vote_verdict:
                continue
            if verdict.judge is None and (verdict.reviewer is not None or not verdict.calls):
                continue
            item = f"{verdict.question} {trace.response_id}"
            if verdict.turn is not None:
                item += f" turn {verdict.turn}"
            vote = Vote(
                item=item,
                agent=trace.agent,
                annotator=verdict.judge or verdict.evaluator,
                label=float(bool(verdict.met)) if verdict.is_binary_verdict else verdict.score,
                group=trace.task_id,
            )
            line = vote.model_dump_json(exclude_none=verdict.status == "ok")
            yield line.encode() + b"\n"
            has_votes = True
    if not has_votes:
        raise InputError(
            f"{run.folder}: has no votes, since no judge answered a question about one response; "
            "`--to verdicts` writes what a `model` without a name predicts for each `reviewer`, and "
            "`jurygraph consensus RATINGS --run RUN --ratings-out F` what any evaluator says of people's items"
        )
