"""Verify material and verdicts by computing them again from the responses and calls that a run holds.

No model is called or needed: prompts are rendered again, and the replies to them in the run are parsed again. Material
whose reply is stored elsewhere is used as stored, and verdicts that depend on it are computed from that.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from importlib.metadata import version
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from jurygraph.errors import TraceMismatch
from jurygraph.graphs.routing import KnownResults
from jurygraph.judges.pairwise.comparison_judge import OPPONENT
from jurygraph.jury import MAX_CONCURRENT_GROUPS, Jury
from jurygraph.models.gateway import Gateway, RequestLimits
from jurygraph.models.limiter import Limiter
from jurygraph.runs.calls import CallStore
from jurygraph.runs.progress import ProgressCallback
from jurygraph.runs.run import Run, ScoredResponse, is_erased
from jurygraph.runs.store.chain import Record, record_label
from jurygraph.runs.store.identity import ModelIdentity, OfflineBackend
from jurygraph.safety.redaction import is_possible_source
from jurygraph.schema import Evidence, Material, RecordedVerdict, Trace
from jurygraph.schema.safety import WORST_CASE_GATES

VerdictKey = tuple[str, str, tuple[str, ...], int]
LabelledQuotation = tuple[str, Evidence, str | None]
"""The label of a verdict or material, its quotation, and the id of the response that must contain it, if any."""

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


class DeepVerification(NamedTuple):
    """The numbers of verdicts with the same result, of checked quotations, and of skipped verdicts by reason.

    `quotations` are those of verdicts and material. Skipped are the verdicts `needing_model`, which would need a model,
    `infrastructure_failures`, which failed for an infrastructure reason or at a time limit, so that they may not fail
    again, and `erased`.
    """

    recomputed: int = 0
    quotations: int = 0
    needing_model: int = 0
    infrastructure_failures: int = 0
    erased: int = 0


def verify_deep(run: Run, report: ProgressCallback) -> DeepVerification:
    """Derive material for every stored response, judge it again, and compare the results with the stored ones.

    `report` receives the number of newly checked responses. Raises `TraceMismatch` with the first verdict, material or
    quotation that differs, and `ConfigError` or `InputError` where the evaluators are not those of the run.
    """
    return asyncio.run(_verify_groups(run, report))


async def _verify_groups(run: Run, report: ProgressCallback) -> DeepVerification:
    total = DeepVerification()
    async with aclosing(_offline_jury(run.source)) as jury:
        for group in run.source.ledger.records("group", up_to=run.last_base_record):
            scored = run.source.group(group)
            counts = await _verify_group(run.source, jury, group, scored)
            total = DeepVerification(*(count + added for count, added in zip(total, counts, strict=True)))
            report(len(scored))
    return total


_NO_MODEL = ModelIdentity(provider="none", model="none")
"""The model identity for a run without calls, none of whose verdicts depends on a model."""


def _offline_jury(run: Run) -> Jury:
    """Return the jury of a run with a backend that never answers: all replies come from the run."""
    config = run.config
    if config.model == "none":
        return Jury(config)
    absent = OfflineBackend(run.header.model or ModelIdentity.from_ledger(run.ledger) or _NO_MODEL)
    limits = RequestLimits(max_tokens=config.calls.max_tokens)
    return Jury(config, gateway=Gateway(absent, Limiter(MAX_CONCURRENT_GROUPS), limits))


async def _verify_group(run: Run, jury: Jury, group: Record, scored: list[ScoredResponse]) -> DeepVerification:
    task = run.task(group.key)
    responses = [item.response for item in scored if item.response is not None]
    if task is None or len(responses) < len(scored):
        return DeepVerification(erased=sum(1 for item in scored for _ in _own_verdicts(item.trace)))
    stored = [item.trace for item in scored]
    quotations = _check_quotations(run, stored, {response.id: response.text for response in responses})
    plan = run.plan_of(task.id)
    own_model_questions = {
        q.id for q in plan.survey.questions if q.layer == "model" and not jury.evaluators[q.evaluator].uses_model
    }
    recalled = KnownResults(_recalled_verdicts(own_model_questions, stored), _external_material(run, stored))
    traces = await jury.ascore(task, responses, plan, recalled, CallStore(run.ledger))
    if traces[0].group != stored[0].group:
        raise TraceMismatch(f"{run.ledger.path}, {record_label(group)}: its responses are not those that were judged")
    _compare_material(run, stored, traces)
    return _compare_verdicts(run, jury, stored, traces, own_model_questions)._replace(quotations=quotations)


def _recalled_verdicts(questions: Collection[str], stored: Sequence[Trace]) -> dict[VerdictKey, RecordedVerdict]:
    """Return the verdicts on questions of evaluators with their own model, such as an embedder, which are not repeated.

    Verdicts by a gate are left out, because gates are applied again.
    """
    keyed = [item for trace in stored for item in _own_verdicts(trace)]
    return {key: verdict for key, verdict in keyed if key[0] in questions and verdict.gated_by is None}


def _external_material(run: Run, stored: Sequence[Trace]) -> dict[tuple[str, str], Material]:
    """Return the material whose calls were erased, or are in the run that this one was branched from.

    Raises `TraceMismatch` where the run should hold the call and does not.
    """
    calls = CallStore(run.ledger)
    known: dict[tuple[str, str], Material] = {}
    for trace in stored:
        for material in trace.material:
            if material.call is not None and calls.find(material.call) is None:
                _check_external(run, _material_label(run, trace, material.name), material.call)
                known[material.name, trace.response_id] = material
    return known


def _compare_material(run: Run, stored: Sequence[Trace], recomputed: Sequence[Trace]) -> None:
    """Compare stored material with material that was derived again, name by name."""
    for stored_trace, new_trace in zip(stored, recomputed, strict=True):
        derived = {material.name: material for material in new_trace.material}
        if not {material.name for material in stored_trace.material} == derived.keys():
            raise TraceMismatch(f"{_trace_label(run, stored_trace)}: its material differs from what is derived now")
        for material in stored_trace.material:
            new_material = derived[material.name]
            if not (_is_excused(material) or _is_excused(new_material)):
                _require_same(_material_label(run, stored_trace, material.name), _DERIVED, material, new_material)


def _compare_verdicts(
    run: Run, jury: Jury, stored: Sequence[Trace], traces: Sequence[Trace], own_model_questions: Collection[str]
) -> DeepVerification:
    """Compare the stored verdicts of a group with those that were computed again, one by one."""
    recomputed = {key: verdict for trace in traces for key, verdict in _own_verdicts(trace)}
    of_models = own_trouble = erased = same = 0
    for trace in stored:
        for key, verdict in _own_verdicts(trace):
            question, about, _, _ = key
            new_verdict = recomputed.get(key) or recomputed.get((question, about, (), 0))
            if new_verdict is None:
                raise TraceMismatch(f"{_verdict_label(run, trace, verdict)}: the question has changed")
            if is_erased(verdict):
                erased += 1
            elif _has_no_call_to_compare(run, jury, verdict, new_verdict) or _has_external_call(
                run, trace, verdict, new_verdict
            ):
                of_models += 1
            elif _is_excused(verdict) or _is_excused(new_verdict):
                own_trouble += 1
            else:
                _require_same(_verdict_label(run, trace, verdict), _COMPARED, verdict, new_verdict)
                is_recalled = question in own_model_questions and verdict.gated_by is None
                of_models, same = of_models + is_recalled, same + (not is_recalled)
    return DeepVerification(same, needing_model=of_models, infrastructure_failures=own_trouble, erased=erased)


def _own_verdicts(trace: Trace) -> Iterator[tuple[VerdictKey, RecordedVerdict]]:
    """Yield a trace's own verdicts, keyed by question, judged response, shown responses and sample."""
    for verdict in trace.verdicts:
        if verdict.about == trace.response_id:
            yield (verdict.question, verdict.about, verdict.responses, verdict.sample), verdict


def _has_no_call_to_compare(run: Run, jury: Jury, stored: RecordedVerdict, recomputed: RecordedVerdict) -> bool:
    """Return whether a verdict of an evaluator with a model has no call, so that there is nothing to compare.

    Verdicts by a response gate are compared only in runs of the same jurygraph version: gates change between versions
    and have no version of their own.
    """
    is_gated = stored.gated_by in WORST_CASE_GATES or recomputed.gated_by in WORST_CASE_GATES
    is_compared = is_gated and run.header.jurygraph == version("jurygraph")
    return stored.call is None and not is_compared and jury.evaluators[recomputed.evaluator].uses_model


def _has_external_call(run: Run, trace: Trace, stored: RecordedVerdict, recomputed: RecordedVerdict) -> bool:
    """Return whether the call of a verdict was erased, or is in the run that this one was branched from.

    Raises `TraceMismatch` where the run should hold the call and does not.
    """
    if (
        stored.call is None
        or _is_excused(stored)
        or recomputed.failure is None
        or recomputed.failure.kind != "unrecorded"
    ):
        return False
    _check_external(run, _verdict_label(run, trace, stored), stored.call)
    return True


def _check_external(run: Run, label: str, call: str) -> None:
    is_erased = run.ledger.find("call", call) is not None and CallStore(run.ledger).find(call) is None
    if run.header.branch is None and not is_erased:
        raise TraceMismatch(f"{label}: depends on a call that the run does not contain")


def _is_excused(item: RecordedVerdict | Material) -> bool:
    failure = item.failure
    return (
        failure is not None
        and (failure.cause == "infrastructure" or failure.kind == "time-limit")
        and (item.status == "failed")
    )


def _require_same(
    label: str, fields: Sequence[str], stored: RecordedVerdict | Material, recomputed: RecordedVerdict | Material
) -> None:
    for name in fields:
        if getattr(stored, name) != getattr(recomputed, name) and not _is_alike_except_secrets(
            name, stored, recomputed
        ):
            problem = (
                f"{name} is {getattr(stored, name)!r} in the run and {getattr(recomputed, name)!r} when recomputed"
            )
            raise TraceMismatch(f"{label}: {problem}")


def _is_alike_except_secrets(
    name: str, stored: RecordedVerdict | Material, recomputed: RecordedVerdict | Material
) -> bool:
    """Return whether a field differs only in secrets that were redacted when the run was made, or are redacted now.

    The known secrets depend on the environment, which may differ between scoring and verifying a run.
    """
    stored_value, new_value = (to_jsonable_python(getattr(item, name)) for item in (stored, recomputed))
    return _is_alike(stored_value, new_value) or _is_alike(new_value, stored_value)


def _is_alike(redacted: JsonValue, whole: JsonValue) -> bool:
    if isinstance(redacted, str) and isinstance(whole, str):
        return redacted == whole or is_possible_source(redacted, whole)
    if isinstance(redacted, dict) and isinstance(whole, dict):
        pairs = zip(redacted.items(), whole.items(), strict=False)
        comparisons = (
            _is_alike(redacted_key, whole_key) and _is_alike(redacted_value, whole_value)
            for (redacted_key, redacted_value), (whole_key, whole_value) in pairs
        )
        return len(redacted) == len(whole) and all(comparisons)
    if isinstance(redacted, list) and isinstance(whole, list):
        return len(redacted) == len(whole) and all(map(_is_alike, redacted, whole))
    return redacted == whole


def _check_quotations(run: Run, traces: Sequence[Trace], texts: Mapping[str, str]) -> int:
    """Check the places of all quotations from the responses of a group, and return their number.

    `texts` are the texts of the responses by id. Raises `TraceMismatch` for a quotation that is not at its place.
    """
    quotations = [
        (label, evidence, texts[quoted])
        for trace in traces
        for label, evidence, quoted in (*_verdict_quotations(run, trace), *_material_quotations(run, trace))
        if evidence.verified and quoted is not None
    ]
    for label, evidence, text in quotations:
        _check_place(label, evidence, text)
    return len(quotations)


def _verdict_quotations(run: Run, trace: Trace) -> Iterator[LabelledQuotation]:
    for _, verdict in _own_verdicts(trace):
        if not is_erased(verdict):
            for evidence in verdict.evidence:
                yield _verdict_label(run, trace, verdict), evidence, _quoted_response(verdict, evidence)


def _material_quotations(run: Run, trace: Trace) -> Iterator[LabelledQuotation]:
    for material in trace.material:
        for evidence in material.evidence:
            quoted = trace.response_id if evidence.source == "response" else None
            yield _material_label(run, trace, material.name), evidence, quoted


def _quoted_response(verdict: RecordedVerdict, evidence: Evidence) -> str | None:
    """Return the id of the submitted response that must contain a verdict's quotation; None for another source.

    A verdict on a variant quotes the variant. Only quotations with source `response` are located when a verdict is
    made, so a quotation from the opponent has a place only if its judge gave one.
    """
    if verdict.about not in verdict.responses:
        return None
    if evidence.source == "response":
        return verdict.about
    others = [name for name in verdict.responses if name != verdict.about]
    has_place = evidence.source == OPPONENT and evidence.start is not None
    return others[0] if has_place and len(others) == 1 else None


def _check_place(label: str, evidence: Evidence, text: str) -> None:
    if text[evidence.start : evidence.end] != evidence.quote:
        place = f"characters {evidence.start} to {evidence.end}"
        raise TraceMismatch(f"{label}: its quotation is not at {place}")


def _trace_label(run: Run, trace: Trace) -> str:
    return f"{run.ledger.path}, trace {trace.response_id!r}"


def _verdict_label(run: Run, trace: Trace, verdict: RecordedVerdict) -> str:
    return f"{_trace_label(run, trace)}, verdict {verdict.question!r}"


def _material_label(run: Run, trace: Trace, name: str) -> str:
    return f"{_trace_label(run, trace)}, material {name!r}"
