"""A run's material and verdicts again, from the responses and calls that it holds: whether they still say the same.

No model is asked, nor need any be there: prompts are rendered anew, and the replies that the run holds to them are
read anew. Material whose reply lies elsewhere is taken as it is stored, and what rests on it is judged from that.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from importlib.metadata import version
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from jurygraph.errors import TraceMismatch
from jurygraph.graphs.routing import Recalled
from jurygraph.judges.pairwise.quoting import OPPONENT
from jurygraph.jury import AT_ONCE, Jury
from jurygraph.models.gateway import Gateway, Limits
from jurygraph.models.limiter import Limiter
from jurygraph.runs.calls import Calls
from jurygraph.runs.progress import Report
from jurygraph.runs.reading import Scored, was_erased
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import Record, named
from jurygraph.runs.store.identity import Absent, Identity
from jurygraph.safety.redaction import fits_redacted
from jurygraph.schema import Evidence, Material, Trace, Verdict
from jurygraph.schema.safety import STOPS

Key = tuple[str, str, tuple[str, ...], int]
Quoted = tuple[str, Evidence, str | None]
"""What quotes, its quotation, and the id of the response in which that has to stand, if in any."""

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
    *("evidence", "failure", "gated_by", "examples", "shrinkage"),
)
_DERIVED = ("status", "data", "variants", "evidence", "failure", "note")


class Deep(NamedTuple):
    """How many verdicts came out the same and quotations stood in their place, and what was not asked again, and why.

    Quotations are those of verdicts and of material.

    `own_trouble` failed for a reason of ours or at a time limit, which need not come again.
    """

    asked_again: int = 0
    quotations: int = 0
    of_models: int = 0
    own_trouble: int = 0
    erased: int = 0


def verify_deep(run: Run, report: Report) -> Deep:
    """Derive material of every stored response and judge it anew, and compare; `report` is told how many are done.

    Raises `TraceMismatch` naming the first verdict, material or quotation that is another, and `ConfigError` or
    `InputError` where the evaluators are not those of the run.
    """
    return asyncio.run(_asked_again(run, report))


async def _asked_again(run: Run, report: Report) -> Deep:
    total = Deep()
    async with aclosing(_jury(run.source)) as jury:
        for group in run.source.ledger.records("group", up_to=run.extent):
            scored = run.source.group(group)
            found = await _group(run.source, jury, group, scored)
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


async def _group(run: Run, jury: Jury, group: Record, scored: list[Scored]) -> Deep:
    task = run.task(group.key)
    responses = [one.response for one in scored if one.response is not None]
    if task is None or len(responses) < len(scored):
        return Deep(erased=sum(1 for one in scored for _ in _keyed(one.trace)))
    stored = [one.trace for one in scored]
    quotations = _quotations(run, stored, {response.id: response.text for response in responses})
    plan = run.plan_of(task.id)
    own = {q.id for q in plan.survey.questions if q.layer == "model" and not jury.evaluators[q.evaluator].asks_model}
    known = Recalled(_given_by(own, stored), _held_elsewhere(run, stored))
    traces = await jury.ascore(task, responses, plan, known)
    if traces[0].group != stored[0].group:
        raise TraceMismatch(f"{run.ledger.path}, {named(group)}: its responses are not those that were judged")
    _same_material(run, stored, traces)
    return _verdicts(run, jury, stored, traces, own)._replace(quotations=quotations)


def _given_by(own: Collection[str], stored: Sequence[Trace]) -> dict[Key, Verdict]:
    """The verdicts on questions that evaluators ask of a model of their own, such as an embedder: it is not asked
    again. What a gate said instead is said anew."""
    keyed = [one for trace in stored for one in _keyed(trace)]
    return {key: verdict for key, verdict in keyed if key[0] in own and verdict.gated_by is None}


def _held_elsewhere(run: Run, stored: Sequence[Trace]) -> dict[tuple[str, str], Material]:
    """The material that rests on calls which are in the run that this one was branched from, or were erased.

    Raises `TraceMismatch` where the run should hold the call and does not.
    """
    calls = Calls(run.ledger)
    known: dict[tuple[str, str], Material] = {}
    for trace in stored:
        for material in trace.material:
            if material.call is not None and calls.find(material.call) is None:
                _check_elsewhere(run, _material(run, trace, material.name), material.call)
                known[material.name, trace.response_id] = material
    return known


def _same_material(run: Run, stored: Sequence[Trace], again: Sequence[Trace]) -> None:
    """Compare what was derived with what is derived now, name by name."""
    for there, here in zip(stored, again, strict=True):
        derived = {material.name: material for material in here.material}
        if not {material.name for material in there.material} == derived.keys():
            raise TraceMismatch(f"{_trace(run, there)}: its material is not what is derived of it")
        for material in there.material:
            found = derived[material.name]
            if not (_excused(material) or _excused(found)):
                _same(_material(run, there, material.name), _DERIVED, material, found)


def _verdicts(run: Run, jury: Jury, stored: Sequence[Trace], traces: Sequence[Trace], own: Collection[str]) -> Deep:
    """Compare the verdicts of a group with those that are given now, one by one."""
    again = {key: verdict for trace in traces for key, verdict in _keyed(trace)}
    of_models = own_trouble = erased = same = 0
    for trace in stored:
        for key, verdict in _keyed(trace):
            question, about, _, _ = key
            found = again.get(key) or again.get((question, about, (), 0))
            if found is None:
                raise TraceMismatch(f"{_verdict(run, trace, verdict)}: is not asked like that")
            if was_erased(verdict):
                erased += 1
            elif _says_nothing(run, jury, verdict, found) or _rests_elsewhere(run, trace, verdict, found):
                of_models += 1
            elif _excused(verdict) or _excused(found):
                own_trouble += 1
            else:
                _same(_verdict(run, trace, verdict), _COMPARED, verdict, found)
                recalled = question in own and verdict.gated_by is None
                of_models, same = of_models + recalled, same + (not recalled)
    return Deep(same, of_models=of_models, own_trouble=own_trouble, erased=erased)


def _keyed(trace: Trace) -> Iterator[tuple[Key, Verdict]]:
    """A trace's own verdicts, by what was asked."""
    for verdict in trace.verdicts:
        if verdict.about == trace.response_id:
            yield (verdict.question, verdict.about, verdict.responses, verdict.sample), verdict


def _says_nothing(run: Run, jury: Jury, there: Verdict, here: Verdict) -> bool:
    """Whether no reply of a model led to it, where one was to be asked.

    What a gate said is compared, but for a run that another version wrote: the gates learn, and have no versions.
    """
    stopped = there.gated_by in STOPS or here.gated_by in STOPS
    compared = stopped and run.header.jurygraph == version("jurygraph")
    return there.call is None and not compared and jury.evaluators[here.evaluator].asks_model


def _rests_elsewhere(run: Run, trace: Trace, there: Verdict, here: Verdict) -> bool:
    """Whether its call was erased, or is in the run that this one was branched from.

    Raises `TraceMismatch` where the run should hold it and does not.
    """
    if there.call is None or _excused(there) or here.failure is None or here.failure.kind != "unrecorded":
        return False
    _check_elsewhere(run, _verdict(run, trace, there), there.call)
    return True


def _check_elsewhere(run: Run, what: str, call: str) -> None:
    erased = run.ledger.find("call", call) is not None and Calls(run.ledger).find(call) is None
    if run.header.branch is None and not erased:
        raise TraceMismatch(f"{what}: rests on a call that the run does not hold")


def _excused(one: Verdict | Material) -> bool:
    failure = one.failure
    return (
        failure is not None
        and (failure.cause == "infrastructure" or failure.kind == "time-limit")
        and (one.status == "failed")
    )


def _same(what: str, fields: Sequence[str], there: Verdict | Material, here: Verdict | Material) -> None:
    for name in fields:
        if getattr(there, name) != getattr(here, name) and not _alike_but_for_secrets(name, there, here):
            wrong = f"{name} is {getattr(there, name)!r} in the run and {getattr(here, name)!r} when asked again"
            raise TraceMismatch(f"{what}: {wrong}")


def _alike_but_for_secrets(name: str, there: Verdict | Material, here: Verdict | Material) -> bool:
    """Whether a field differs only in what was redacted when the run was made, or is now.

    Which secrets are known depends on the environment: who verifies a run need not have those of who made it.
    """
    one, other = (to_jsonable_python(getattr(two, name)) for two in (there, here))
    return _alike(one, other) or _alike(other, one)


def _alike(redacted: JsonValue, whole: JsonValue) -> bool:
    if isinstance(redacted, str) and isinstance(whole, str):
        return redacted == whole or fits_redacted(redacted, whole)
    if isinstance(redacted, dict) and isinstance(whole, dict):
        pairs = zip(redacted.items(), whole.items(), strict=False)
        same = (_alike(one, two) and _alike(first, second) for (one, first), (two, second) in pairs)
        return len(redacted) == len(whole) and all(same)
    if isinstance(redacted, list) and isinstance(whole, list):
        return len(redacted) == len(whole) and all(map(_alike, redacted, whole))
    return redacted == whole


def _quotations(run: Run, traces: Sequence[Trace], texts: Mapping[str, str]) -> int:
    """How many quotations from the responses of a group stand where the verdicts and the material say.

    `texts` are those of the responses, by their ids.
    """
    found = [
        (what, evidence, texts[quoted])
        for trace in traces
        for what, evidence, quoted in (*_quoted_by_verdicts(run, trace), *_quoted_by_material(run, trace))
        if evidence.verified and quoted is not None
    ]
    for what, evidence, text in found:
        _check_stands(what, evidence, text)
    return len(found)


def _quoted_by_verdicts(run: Run, trace: Trace) -> Iterator[Quoted]:
    for _, verdict in _keyed(trace):
        if not was_erased(verdict):
            for evidence in verdict.evidence:
                yield _verdict(run, trace, verdict), evidence, _quoted_response(verdict, evidence)


def _quoted_by_material(run: Run, trace: Trace) -> Iterator[Quoted]:
    for material in trace.material:
        for evidence in material.evidence:
            own = trace.response_id if evidence.source == "response" else None
            yield _material(run, trace, material.name), evidence, own


def _quoted_response(verdict: Verdict, evidence: Evidence) -> str | None:
    """The submitted response in which a verdict's quotation has to stand; None where it is from elsewhere.

    What a verdict on a variant quotes stands in that. Only quotations of source `response` are looked for when a
    verdict is given, so one from the opponent has a place only if its judge states one.
    """
    if verdict.about not in verdict.responses:
        return None
    if evidence.source == "response":
        return verdict.about
    others = [name for name in verdict.responses if name != verdict.about]
    placed = evidence.source == OPPONENT and evidence.start is not None
    return others[0] if placed and len(others) == 1 else None


def _check_stands(what: str, evidence: Evidence, text: str) -> None:
    if text[evidence.start : evidence.end] != evidence.quote:
        place = f"characters {evidence.start} to {evidence.end}"
        raise TraceMismatch(f"{what}: its quotation does not stand at {place}")


def _trace(run: Run, trace: Trace) -> str:
    return f"{run.ledger.path}, trace {trace.response_id!r}"


def _verdict(run: Run, trace: Trace, verdict: Verdict) -> str:
    return f"{_trace(run, trace)}, verdict {verdict.question!r}"


def _material(run: Run, trace: Trace, name: str) -> str:
    return f"{_trace(run, trace)}, material {name!r}"
