"""A run's verdicts again, from the responses and calls that it holds: whether evaluators still say the same.

No model is asked, nor need any be there: prompts are rendered anew, and the replies that the run holds to them are
read anew.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jurygraph.errors import TraceMismatch
from jurygraph.jury import AT_ONCE, Jury
from jurygraph.models.gateway import Gateway, Limits
from jurygraph.models.limiter import Limiter
from jurygraph.runs.calls import Calls
from jurygraph.runs.chain import Record, named
from jurygraph.runs.identity import Absent, Identity
from jurygraph.runs.reading import Scored, was_erased
from jurygraph.runs.run import Run
from jurygraph.schema import Trace, Verdict

Report = Callable[[int], None]
Key = tuple[str, str, tuple[str, ...], int]

_COMPARED = (
    *(
        "responses",
        "sample",
        "evaluator",
        "version",
        "layer",
        "subject",
        "score",
        "status",
        "met",
        "native",
        "scale",
        "confidence",
        "reason",
    ),
    *("evidence", "failure", "gated_by"),
)


class Deep(NamedTuple):
    """How many verdicts came out the same and quotations stood in their place, and what was not asked again, and why.

    `own_trouble` failed for a reason of ours or at a time limit, which need not come again.
    """

    asked_again: int = 0
    quotations: int = 0
    of_models: int = 0
    own_trouble: int = 0
    erased: int = 0


def verify_deep(run: Run, report: Report) -> Deep:
    """Judge every stored response anew and compare, verdict by verdict; `report` is told how many responses are done.

    Raises `TraceMismatch` naming the first verdict or quotation that is another, and `ConfigError` or `InputError`
    where the evaluators are not those of the run.
    """
    total = Deep()
    with _jury(run.source) as jury:
        for group in run.source.ledger.records("group", up_to=run.extent):
            scored = run.source.group(group)
            found = _group(run.source, jury, group, scored)
            total = Deep(*(one + more for one, more in zip(total, found, strict=True)))
            report(len(scored))
    return total


_NOBODY = Identity(provider="none", model="none")
"""Of whom a run tells that holds no call: none of its verdicts rests on one."""


def _jury(run: Run) -> Jury:
    """The jury of a run, with nobody behind the name of its model: the run alone answers."""
    config = run.config
    if config.model == "none":
        return Jury(config)
    absent = Absent(run.header.model or Identity.recorded(run.ledger) or _NOBODY)
    limits = Limits(max_tokens=config.calls.max_tokens)
    return Jury(config, gateway=Gateway(absent, Limiter(AT_ONCE), limits, sink=Calls(run.ledger)))


def _group(run: Run, jury: Jury, group: Record, scored: list[Scored]) -> Deep:
    task = run.task(group.key)
    responses = [one.response for one in scored if one.response is not None]
    if task is None or len(responses) < len(scored):
        return Deep(erased=sum(1 for one in scored for _ in _keyed(one.trace)))
    quotations = sum(
        _quotations(run, one.trace, response.text) for one, response in zip(scored, responses, strict=True)
    )
    traces = jury.score(task, responses, run.plan_of(task.id))
    if traces[0].group != scored[0].trace.group:
        raise TraceMismatch(f"{run.ledger.path}, {named(group)}: its responses are not those that were judged")
    again = {key: verdict for trace in traces for key, verdict in _keyed(trace)}
    of_models = own_trouble = erased = same = 0
    for one in scored:
        for key, verdict in _keyed(one.trace):
            question, about, _, _ = key
            found = again.get(key) or again.get((question, about, (), 0))
            if found is None:
                raise TraceMismatch(f"{_verdict(run, one.trace, verdict)}: is not asked like that")
            if was_erased(verdict):
                erased += 1
            elif _says_nothing(jury, verdict, found) or _rests_elsewhere(run.source, one.trace, verdict, found):
                of_models += 1
            elif _excused(verdict) or _excused(found):
                own_trouble += 1
            else:
                _same(run, one.trace, verdict, found)
                same += 1
    return Deep(same, quotations, of_models, own_trouble, erased)


def _keyed(trace: Trace) -> Iterator[tuple[Key, Verdict]]:
    """A trace's own verdicts, by what was asked."""
    for verdict in trace.verdicts:
        if verdict.about == trace.response_id:
            yield (verdict.question, verdict.about, verdict.responses, verdict.sample), verdict


def _says_nothing(jury: Jury, there: Verdict, here: Verdict) -> bool:
    """Whether no reply of a model led to it, where one was to be asked."""
    return there.call is None and jury.evaluators[here.evaluator].asks_model


def _rests_elsewhere(run: Run, trace: Trace, there: Verdict, here: Verdict) -> bool:
    """Whether its call was erased, or is in the run that this one was branched from.

    Raises `TraceMismatch` where the run should hold it and does not.
    """
    if there.call is None or _excused(there) or here.failure is None or here.failure.kind != "unrecorded":
        return False
    erased = run.ledger.find("call", there.call) is not None and Calls(run.ledger).find(there.call) is None
    if run.header.branch is None and not erased:
        raise TraceMismatch(f"{_verdict(run, trace, there)}: rests on a call that the run does not hold")
    return True


def _excused(verdict: Verdict) -> bool:
    failure = verdict.failure
    return (
        failure is not None
        and (failure.cause == "infrastructure" or failure.kind == "time-limit")
        and (verdict.status == "failed")
    )


def _same(run: Run, trace: Trace, there: Verdict, here: Verdict) -> None:
    for name in _COMPARED:
        if getattr(there, name) != getattr(here, name):
            wrong = f"{name} is {getattr(there, name)!r} in the run and {getattr(here, name)!r} when asked again"
            raise TraceMismatch(f"{_verdict(run, trace, there)}: {wrong}")


def _quotations(run: Run, trace: Trace, text: str) -> int:
    """How many quotations from the response stand where the verdicts say."""
    stated = [(v, e) for v in trace.verdicts for e in v.evidence if v.about == trace.response_id]
    stated = [
        (v, e)
        for v, e in stated
        if not was_erased(v) and e.verified and e.source == "response" and v.responses == (v.about,)
    ]
    for verdict, evidence in stated:
        if text[evidence.start : evidence.end] != evidence.quote:
            place = f"characters {evidence.start} to {evidence.end}"
            raise TraceMismatch(f"{_verdict(run, trace, verdict)}: its quotation does not stand at {place}")
    return len(stated)


def _verdict(run: Run, trace: Trace, verdict: Verdict) -> str:
    return f"{run.ledger.path}, trace {trace.response_id!r}, verdict {verdict.question!r}"
