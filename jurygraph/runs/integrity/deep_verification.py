"""Verify material and verdicts by computing them again from the responses and calls that a run holds.

No model is called or needed: prompts are rendered again, and the replies to them are parsed again: those of the run,
and of the runs from which it was branched. Material whose reply is in none of them is used as stored, and verdicts that
depend on it are computed from that.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, zip_longest
from typing import NamedTuple

from pydantic_core import to_jsonable_python

from jurygraph.agents.roles import Configurable, shorten_quotes
from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.graphs.lookups import MISSING_WORKSPACE_FAILURE_KIND
from jurygraph.graphs.routing import ReusedResults
from jurygraph.jury import DEFAULT_CONCURRENT_GROUPS, Jury, find_changed_version
from jurygraph.messages import format_count, quote
from jurygraph.models.backend import Backend, EndpointCapabilities
from jurygraph.models.gateway import Gateway, Gateways
from jurygraph.models.limits import RequestLimiter
from jurygraph.models.request import (
    REPAIR_CALL_PURPOSE,
    Fault,
    PlannedLookup,
    Reply,
    Request,
    StoredLookup,
)
from jurygraph.runs.calls import find_call_texts
from jurygraph.runs.export_table import verdicts_about_response
from jurygraph.runs.run import Run, ScoredResponse, has_erased_text
from jurygraph.runs.store.header import ModelIdentity
from jurygraph.runs.store.ledger import LedgerRecord, record_label
from jurygraph.runs.writable_run import CallStore
from jurygraph.safety.evidence import to_searchable_text
from jurygraph.safety.redaction import matches_redacted_text
from jurygraph.schema import Evidence, Material, Plan, RecordedVerdict, ToolSpec, Trace
from jurygraph.schema.frozen_model import to_compact_json
from jurygraph.schema.lookup import TOOL_SOURCE_PREFIX
from jurygraph.schema.verdict import (
    EMPTY_TURN_GATE,
    NO_VARIANT_GATE,
    RESPONSE_GATES,
    VerdictKey,
    has_transient_failure,
)

_COMPARED_VERDICT_FIELDS = (
    "responses sample evaluator version layer subject score status met native scale confidence reason evidence failure "
    "gated_by examples swap unsupported call calls lookups"
).split()
_COMPARED_MATERIAL_FIELDS = "status data variants evidence failure note call calls lookups".split()
_JudgedItem = RecordedVerdict | Material
_MAX_QUESTIONS_LISTED = 3
"""Questions that are named whose tool has another result now."""


class DeepVerificationCounts(NamedTuple):
    """The numbers of verdicts with the same result, of checked quotations, and of skipped verdicts by reason.

    `quotations` are those of verdicts and material. Skipped are verdicts that would need a model, because they are of
    an evaluator's own or their replies are in a run that this one was branched from and that is missing; those with
    transient failures (of infrastructure, or at a time limit); those that saw a response that was erased; and others
    `depending_on_erased` ones: of questions that compare responses, or wait for such a question, in a group with one.
    `tool_results` are those of tools that promise no equal ones.
    """

    recomputed: int = 0
    quotations: int = 0
    needing_model: int = 0
    transient_failures: int = 0
    erased: int = 0
    tool_results: int = 0
    depending_on_erased: int = 0


def verify_deep(run: Run, report: ProgressCallback) -> DeepVerificationCounts:
    """Derive material for every stored response, judge it again, and compare the results with the stored ones.

    `report` receives the number of newly checked responses. Raises `TraceMismatch` with the first verdict, material or
    quotation that differs, or with a change in a run that this one was branched from, and `ConfigError` or `InputError`
    where the evaluators are not those of the run, or files that a judge looked at are not there.
    """
    return asyncio.run(_verify_groups(run, report))


class _MissingFilesError(InputError):
    """Files that a judge looked at are not there."""


async def _verify_groups(run: Run, report: ProgressCallback) -> DeepVerificationCounts:
    total: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        offline_calls = OfflineCalls()
        offline_jury = _build_offline_jury(run.source, offline_calls)
        jury = await stack.enter_async_context(aclosing(offline_jury))
        origin_runs = [stack.enter_context(origin) for origin in _open_origin_runs(run.source)]
        verifier = _DeepVerifier(run.source, jury, origin_runs, offline_calls)
        errors: list[_MissingFilesError] = []
        for group in run.group_records():
            scored = run.source.group(group)
            try:
                total.update(await verifier.verify_group(group, scored))
            except _MissingFilesError as error:  # those of other groups may have changed
                errors.append(error)
            report(len(scored))
        verifier.refuse_changed_tool_results(*errors[:1])
    return DeepVerificationCounts(**total)


def _open_origin_runs(run: Run) -> Iterator[Run]:
    """Open the runs from which a run was branched, the nearest first, up to one that is missing.

    Raises `TraceMismatch` where one has other records than those that were reused, or changed texts of calls.
    """
    while (origin_run := run.open_origin()) is not None:
        yield origin_run
        origin = run.header.branch
        assert origin is not None, "it was opened"
        link = ""
        for record in origin_run.ledger.verified_records(1, origin_run.ledger.count):
            link = record.link.hex() if record.seq == origin.records else link
        if link != origin.head:
            raise TraceMismatch(
                f"{origin_run.ledger.path}, record {origin.records}: "
                f"is not the one from which {run.folder} was branched"
            )
        for call in origin_run.ledger.records("call"):
            origin_run.ledger.texts_of_record(
                call
            )  # raises for a changed reply, before a judge meets it
        run = origin_run


def _build_offline_jury(run: Run, offline_calls: "OfflineCalls") -> Jury:
    """Return the jury of a run, with an offline backend in the place of each model: all replies come from the run."""
    gateways = {}
    for judge in run.config.judges:
        identity = run.header.model_identity_of(judge)
        if identity is None:
            raise TraceMismatch(
                f"{run.ledger.path}, record 1: does not identify the model; it has been changed"
            )
        calls = run.config.call_settings_of(judge)
        gateways[judge] = Gateway(
            OfflineBackend(identity, offline_calls),
            RequestLimiter(DEFAULT_CONCURRENT_GROUPS),
            calls.model_copy(update={"deadline": None}),
        )
    return Jury(run.config, gateway=Gateways(gateways))


@dataclass
class OfflineCalls:
    """The calls of a group that is verified, as its offline backends read and check them.

    `repairs` are the requests that repaired replies, by their digests and by those of what they repaired. `changed` are
    calls of tools with another result now, as they were and are, and `forged` has what is wrong with those that were
    not recorded so.
    """

    repairs: dict[str, Request] = field(default_factory=dict)
    changed: dict[str, tuple[StoredLookup, StoredLookup]] = field(default_factory=dict)
    forged: dict[str, str] = field(default_factory=dict)


class OfflineBackend(Backend):
    """An offline backend: requests have the identity of the model that it replaces, and no request gets a reply.

    Recorded calls of tools that promise the same result are made again.
    """

    can_run_tools = False

    def __init__(self, identity: ModelIdentity, offline_calls: OfflineCalls) -> None:
        self._offline_calls = offline_calls
        self.provider = identity.provider
        self.endpoint = identity.endpoint
        self.model = identity.model
        self.own_parameters = identity.own_parameters
        top = identity.top_logprobs
        self.capabilities = EndpointCapabilities(
            identity.form, logprobs=top is not None, top_logprobs=top or 0, tools=identity.tools
        )

    async def complete(self, request: Request, timeout: float) -> Reply:
        """Raise `Fault` of kind `unrecorded`."""
        raise Fault("unrecorded", "the run contains no reply to this request, and none is sent")

    def find_repair(self, request: Request, repair: Request) -> Request:
        repairs = self._offline_calls.repairs
        return repairs.get(repair.digest) or repairs.get(request.digest, repair)

    async def check_lookup(
        self, stored_lookup: StoredLookup, planned_lookup: PlannedLookup
    ) -> None:
        lookup = stored_lookup.lookup
        if problem := find_lookup_mismatch(stored_lookup, planned_lookup):
            self._offline_calls.forged[lookup.id] = problem
        if not lookup.can_be_repeated:
            return
        # a result that was shown is compared as it is: earlier versions gated no passages and no messages of tools
        new_lookup = await planned_lookup.make(lookup.outcome == "withheld")
        if (new_lookup.lookup.outcome, new_lookup.lookup.result) != (lookup.outcome, lookup.result):
            self._offline_calls.changed[lookup.id] = stored_lookup, new_lookup


_PLANNED_LOOKUP_FIELDS = ("call", "tool", "version", "deterministic")
"""Fields of a call of a tool that follow from the reply that led to it."""


def find_lookup_mismatch(stored_lookup: StoredLookup, planned_lookup: PlannedLookup) -> str | None:
    """Return what of a stored call is not what was recorded then; None if it may all be."""
    for name in _PLANNED_LOOKUP_FIELDS:
        if getattr(stored_lookup.lookup, name) != getattr(planned_lookup.lookup, name):
            return f"its {name} is not that of the call that the reply led to"
    if not _may_be_same_text(stored_lookup.arguments, planned_lookup.arguments):
        return "its arguments are not those of the reply that led to it"
    if sha256(stored_lookup.result.encode()).hexdigest() != stored_lookup.lookup.result:
        return "its result does not have the digest that was recorded"
    return None


def _may_be_same_text(stored: str, recomputed: str) -> bool:
    """Return whether texts differ only in secrets, some of which were redacted then and are not now, or the reverse."""
    return (
        stored == recomputed
        or matches_redacted_text(stored, recomputed)
        or matches_redacted_text(recomputed, stored)
    )


class _DeepVerifier:
    """Judges the groups of a run again; counts are those of `DeepVerificationCounts`, by name."""

    def __init__(
        self, run: Run, jury: Jury, origin_runs: Sequence[Run], offline_calls: OfflineCalls
    ) -> None:
        self._run = run
        self._jury = jury
        self._offline_calls = offline_calls
        self._ledgers = [source.ledger for source in (run, *origin_runs)]
        self._calls = CallStore(*self._ledgers)
        self._is_run_missing = [run, *origin_runs][-1].header.branch is not None
        self._problems: dict[bool, str] = {}
        self._affected_responses: set[tuple[str, str]] = set()
        self._affected_questions: dict[str, None] = {}
        self._erased_ids: set[str] = set()
        self._lost_questions: set[str] = set()
        """The erased responses of the group that is verified, and the questions that cannot be asked without them."""
        self._unanswered: frozenset[str] = frozenset()
        """The calls without a reply of the group that is verified; `verify_group` sets them before it needs any."""

    async def verify_group(
        self, group: LedgerRecord, scored: list[ScoredResponse]
    ) -> Mapping[str, int]:
        run = self._run
        verdicts = _verdicts_about_responses([item.trace for item in scored])
        task = run.task(group.key)
        stored_traces = [item.trace for item in scored if item.response is not None]
        responses = [item.response for item in scored if item.response is not None]
        if task is None or not responses:
            return {"erased": len(verdicts)}
        self._calls.last_record = group.seq
        quotations = 0
        for trace, response in zip(stored_traces, responses, strict=True):
            quotations += self._check_quotations(trace, response.text)
        plan = run.plan_of(task.id)
        if problem := find_changed_version(plan, self._jury.context):
            raise InputError(
                f"{run.folder}: was made with {problem}; "
                "put the code and the files that the run was made with back, or verify without --deep"
            )
        self._require_same_tools(plan)
        plan = plan.model_copy(update={"files": {}})  # what changed there shows in results of tools
        evaluators = self._jury.evaluators
        own_model = {
            question.id
            for question in plan.survey.questions
            if question.layer == "model" and not evaluators[question.evaluator].uses_model
        }
        plan = self._without_lost_questions(plan, scored)
        recorded_answers = {
            verdict.key: verdict
            for verdict in verdicts
            if _is_taken_from_record(verdict, own_model)
        }
        calls = {call.id: call for trace in stored_traces for call in trace.calls}
        self._calls.expected_calls = calls
        self._unanswered = frozenset(name for name in calls if calls[name].fault is not None)
        unverifiable_material = self._unverifiable_material(stored_traces)
        self._calls.hidden = self._unanswered
        self._read_repairs(stored_traces)
        stopped_as_empty = {v.key for v in verdicts if v.gated_by == "empty-response"}
        results = ReusedResults(
            recorded_answers, unverifiable_material, stopped_as_empty=stopped_as_empty
        )
        traces = await self._jury.ascore(task, responses, plan, results, self._calls)
        if not self._erased_ids and traces[0].group != stored_traces[0].group:
            problem = "its responses are not those that were judged"
            raise TraceMismatch(f"{run.ledger.path}, {record_label(group)}: {problem}")
        if self._note_changed_tool_results(stored_traces):
            return {}
        for stored_trace, recomputed_trace in zip(stored_traces, traces, strict=True):
            self._compare_lookups(stored_trace, recomputed_trace)
            self._compare_material(stored_trace, recomputed_trace)
        recomputed_verdicts = {
            verdict.key: verdict for verdict in _verdicts_about_responses(traces)
        }
        # Verdicts that a branch took from another run, which has their calls.
        reused_verdicts = {
            verdict.key: verdict for verdict in verdicts if self._comes_from_origin_run(verdict)
        }
        if reused_verdicts and any(map(_failed_for_missing_record, recomputed_verdicts.values())):
            # A call of the branch is about the questions that were left: it is repeated with the others as they were.
            results = replace(results, verdicts={**recorded_answers, **reused_verdicts})
            rejudged_traces = await self._jury.ascore(task, responses, plan, results, self._calls)
            for verdict in _verdicts_about_responses(rejudged_traces):
                if verdict.key not in reused_verdicts:
                    recomputed_verdicts[verdict.key] = verdict
        counts = Counter(
            self._compare_verdict(verdict, recomputed_verdicts, own_model) for verdict in verdicts
        )
        lookups = chain.from_iterable(trace.lookups for trace in stored_traces)
        recorded_count = sum(not lookup.deterministic for lookup in lookups)
        return {**counts, "quotations": quotations, "tool_results": recorded_count}

    def _without_lost_questions(self, plan: Plan, scored: Sequence[ScoredResponse]) -> Plan:
        """Return the plan of a group, which asks no comparisons if a response was erased, nor what waits for one."""
        self._erased_ids = {item.trace.response_id for item in scored if item.response is None}
        self._lost_questions = set()
        if not self._erased_ids:
            return plan
        survey = plan.survey
        for question in survey.questions * len(survey.waves):  # a condition is on an earlier wave
            if question.scope in ("pair", "group") or (
                question.when and question.when.question in self._lost_questions
            ):
                self._lost_questions.add(question.id)
        questions = [
            question.model_copy(update={"missing": "response"})
            if question.id in self._lost_questions
            else question
            for question in survey.questions
        ]
        survey = survey.model_copy(update={"questions": tuple(questions)})
        return plan.model_copy(update={"survey": survey})

    def _comes_from_origin_run(self, verdict: RecordedVerdict) -> bool:
        return any(self._run.ledger.find("call", use.id) is None for use in verdict.calls)

    def _read_repairs(self, stored_traces: Sequence[Trace]) -> None:
        """Read the requests that repaired replies: each ends with the reply, and what was wrong in words of then."""
        self._offline_calls.repairs.clear()
        items = chain.from_iterable(map(_verdicts_and_material, stored_traces))
        for use in chain.from_iterable(item.calls for item in items):
            call = self._calls.expected_calls.get(use.id)
            if use.purpose != REPAIR_CALL_PURPOSE or call is None:
                continue
            text, _ = find_call_texts(self._run, "call", call)
            if text.startswith("{"):  # else it was erased, or is in a run that is missing
                repair = Request.model_validate_json(text)
                request = repair.model_copy(update={"messages": repair.messages[:-2]})
                self._offline_calls.repairs |= {request.digest: repair, repair.digest: repair}

    def _unverifiable_material(
        self, stored_traces: Sequence[Trace]
    ) -> dict[tuple[str, str], Material]:
        """Return the material whose calls were erased, or are in a missing run."""
        unverifiable_material = {}
        for trace in stored_traces:
            for material in trace.material:
                if any(self._calls.find(use.id) is None for use in material.calls):
                    label = self._trace_label(trace.response_id, material)
                    self._require_calls(label, material)
                    unverifiable_material[material.name, trace.response_id] = material
        return unverifiable_material

    def _compare_material(self, stored_trace: Trace, recomputed_trace: Trace) -> None:
        derived_material = {material.name: material for material in recomputed_trace.material}
        if {material.name for material in stored_trace.material} != derived_material.keys():
            label = self._trace_label(stored_trace.response_id)
            raise TraceMismatch(f"{label}: its material differs from what is derived now")
        for material in stored_trace.material:
            recomputed_material = derived_material[material.name]
            label = self._trace_label(stored_trace.response_id, material)
            _compare_fields(label, _COMPARED_MATERIAL_FIELDS, material, recomputed_material)

    def _compare_verdict(
        self,
        stored_verdict: RecordedVerdict,
        recomputed_verdicts: Mapping[VerdictKey, RecordedVerdict],
        own_model: Collection[str],
    ) -> str:
        """Compare a stored verdict with the one that was computed again; return the count that it adds to."""
        if has_erased_text(stored_verdict) or not self._erased_ids.isdisjoint(
            (stored_verdict.about, *stored_verdict.responses)
        ):
            return "erased"
        if stored_verdict.question in self._lost_questions:
            return "depending_on_erased"
        label = self._trace_label(stored_verdict.about, stored_verdict)
        unanswered_key = VerdictKey(
            stored_verdict.question, stored_verdict.about, (), 0, turn=stored_verdict.turn
        )
        recomputed_verdict = recomputed_verdicts.get(stored_verdict.key) or recomputed_verdicts.get(
            unanswered_key
        )
        if recomputed_verdict is None:
            raise TraceMismatch(f"{label}: the question has changed")
        is_gated = not {stored_verdict.gated_by, recomputed_verdict.gated_by}.isdisjoint(
            (EMPTY_TURN_GATE, NO_VARIANT_GATE, *RESPONSE_GATES)
        )
        if (
            not stored_verdict.calls
            and not is_gated
            and self._jury.evaluators[recomputed_verdict.evaluator].uses_model
        ):
            return "needing_model"
        if (
            stored_verdict.calls
            and _failed_for_missing_record(recomputed_verdict)
            and not _is_transient_failure(stored_verdict)
        ):
            self._require_calls(label, stored_verdict)
            new_calls = set(recomputed_verdict.calls).difference(stored_verdict.calls)
            # Without one it is the first request that is not there, such as that of another version of a prompt.
            if recomputed_verdict.lookups and new_calls:
                raise TraceMismatch(
                    f"{label}: what was looked up leads to a request that is not in the run"
                )
            return "needing_model"
        if not _compare_fields(label, _COMPARED_VERDICT_FIELDS, stored_verdict, recomputed_verdict):
            return "transient_failures"
        return "needing_model" if _is_taken_from_record(stored_verdict, own_model) else "recomputed"

    def _require_calls(self, label: str, item: _JudgedItem) -> None:
        """Raise `TraceMismatch` where a call is in no run, unless a run is missing that could have it.

        A call whose texts were erased is not missing.
        """
        if self._is_run_missing:
            return
        for use in item.calls:
            is_recorded = any(ledger.find("call", use.id) for ledger in self._ledgers)
            if use.id not in self._unanswered and not is_recorded:
                raise TraceMismatch(f"{label}: depends on a call that the run does not contain")

    def _check_quotations(self, trace: Trace, text: str) -> int:
        """Check the places of all quotations from a response or a tool's result, and return their number.

        A verdict on a variant quotes the variant. Raises `TraceMismatch` for a quotation that is not at its place.
        """
        quotations = 0
        for item in _verdicts_and_material(trace):
            for evidence in item.evidence:
                source = self._find_source_text(evidence, item, text)
                if not evidence.verified or source is None:
                    continue
                if source[evidence.start : evidence.end] != evidence.quote:
                    label = self._trace_label(trace.response_id, item)
                    raise TraceMismatch(
                        f"{label}: its quotation is not at characters {evidence.start} to "
                        f"{evidence.end}"
                    )
                quotations += 1
        return quotations

    def _find_source_text(self, evidence: Evidence, item: _JudgedItem, text: str) -> str | None:
        """Return the text that a quotation is from: the response, or the stored result of a tool; None for others."""
        if evidence.source == "response":
            return text
        number = evidence.source.removeprefix(TOOL_SOURCE_PREFIX)
        if number == evidence.source:
            return None
        stored_lookup = self._calls.find_lookup(item.lookups[int(number) - 1])
        return None if stored_lookup is None else stored_lookup.result

    def _require_same_tools(self, plan: Plan) -> None:
        """Raise `TraceMismatch` for a question whose tools are not those that the judge would have now."""
        jury = self._jury
        owners_and_tool_specs: Iterator[tuple[Configurable, Sequence[ToolSpec]]] = chain(
            ((jury.evaluators[item.evaluator], item.tools) for item in plan.survey.questions),
            ((jury.derivers[item.deriver], item.tools) for item in plan.survey.derivations),
        )
        for owner, specs in owners_and_tool_specs:
            current_tool_specs = () if owner.toolset is None else owner.toolset.specs
            versions = {spec.name: f"of version {spec.version}" for spec in current_tool_specs}
            for spec in specs:
                if spec not in current_tool_specs:
                    raise TraceMismatch(
                        f"{self._run.ledger.path}: tool {spec.name!r} of {owner.name!r} is of "
                        f"version {spec.version} in the run, now {versions.get(spec.name, 'not there')}"
                    )

    def refuse_changed_tool_results(self, *errors: InputError) -> None:
        """Raise `TraceMismatch` for tools that have other results now, with how many responses rest on them.

        Without any, the first error is raised; else it is named, too.

        Several verdicts may rest on one call: one that has lost its quotation says more than one that quoted nothing.
        """
        if not self._problems:
            for error in errors:
                raise error
            return
        problem = self._problems.get(True) or self._problems[False]
        affected = self._affected_responses
        tasks = {task_id for task_id, _ in affected}
        responses = format_count(len(affected), "response")
        share = f"{responses} of {format_count(len(tasks), 'task')}"
        questions = list(self._affected_questions)
        if len(questions) > 1:
            names = ", ".join([*questions[:_MAX_QUESTIONS_LISTED], "…"][: len(questions)])
            share += f", in {len(questions)} questions: {names}"
        raise TraceMismatch("; and ".join([f"{problem}; it is so for {share}", *map(str, errors)]))

    def _note_changed_tool_results(self, stored_traces: Sequence[Trace]) -> bool:
        """Return whether a tool has another result now than for this group; quotations may no longer hold.

        Raises `TraceMismatch` for a result that was changed in the run.
        """
        changed_lookups = self._offline_calls.changed
        mismatched_lookups = self._offline_calls.forged
        has_changed = False
        for trace in stored_traces:
            for item in _verdicts_and_material(trace):
                label = self._trace_label(trace.response_id, item)
                for number, lookup in enumerate(item.lookups, start=1):
                    source = f"{TOOL_SOURCE_PREFIX}{number}"
                    if lookup in mismatched_lookups:
                        raise TraceMismatch(
                            f"{label}: {source} was changed: {mismatched_lookups[lookup]}"
                        )
                    if lookup in changed_lookups:
                        has_changed = True
                        self._affected_responses.add((trace.task_id, trace.response_id))
                        self._affected_questions[_item_name(item)] = None
                        problem, has_loss = _describe_lookup_change(
                            label, source, item, *changed_lookups[lookup]
                        )
                        self._problems.setdefault(has_loss, problem)
        changed_lookups.clear()  # their texts, of a whole run, would fill the memory
        return has_changed

    def _compare_lookups(self, stored_trace: Trace, recomputed_trace: Trace) -> None:
        """Raise `TraceMismatch` where a trace says of a call of a tool what its record does not."""
        recorded_lookups = {lookup.id: lookup for lookup in recomputed_trace.lookups}
        for lookup in stored_trace.lookups:
            record = recorded_lookups.get(lookup.id, lookup)
            if record != lookup.model_copy(update={"duration": record.duration}):
                raise TraceMismatch(
                    f"{self._trace_label(stored_trace.response_id)}: "
                    f"a call of {lookup.tool} is not the one in its record"
                )

    def _trace_label(self, response: str, item: _JudgedItem | None = None) -> str:
        label = f"{self._run.ledger.path}, trace {response!r}"
        if item is None:
            return label
        kind = "verdict" if isinstance(item, RecordedVerdict) else "material"
        return f"{label}, {kind} {_item_name(item)!r}"


def _describe_lookup_change(
    label: str,
    source: str,
    item: _JudgedItem,
    old_lookup: StoredLookup,
    new_lookup: StoredLookup,
) -> tuple[str, bool]:
    """Return what is to be said of a changed result, and whether a quotation from it no longer holds."""
    if new_lookup.lookup.outcome in ("time-limit", "not-called", "error"):
        raise InputError(
            f"{label}: tool {new_lookup.lookup.tool} cannot be called again: "
            f"{new_lookup.result}; see that it works as it did, and verify again"
        )
    text = to_searchable_text(new_lookup.result)
    quotes = [found.quote for found in item.evidence if found.source == source]
    lost_quotations = [quote for quote in quotes if text.find_support(quote) is None]
    lines = zip_longest(old_lookup.result.split("\n"), new_lookup.result.split("\n"), fillvalue="")
    old, new = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
    sentence_ending = "the verdict was made with the old one, and quotes nothing of it"
    if quotes:
        sentence_ending = f"its quotations still hold ({shorten_quotes(quotes)})"
    if lost_quotations:
        sentence_ending = f"its quotation no longer holds: {shorten_quotes(lost_quotations)}"
    problem = (
        f"tool {new_lookup.lookup.tool} gives another result now ({source}, {new_lookup.arguments})"
    )
    return f"{label}: {problem}; {sentence_ending}; then {quote(old)}, now {quote(new)}", bool(
        lost_quotations
    )


def _verdicts_about_responses(traces: Sequence[Trace]) -> list[RecordedVerdict]:
    """Return the verdicts about the response of their trace; one about a pair is in two traces, and comes once."""
    return list(
        chain.from_iterable(verdicts_about_response(trace, superseded=True) for trace in traces)
    )


def _verdicts_and_material(trace: Trace) -> Iterator[_JudgedItem]:
    """Yield the verdicts that saw the response, and the material."""
    for verdict in verdicts_about_response(trace, superseded=True):
        if verdict.about in verdict.responses and not has_erased_text(verdict):
            yield verdict
    yield from trace.material


def _item_name(item: _JudgedItem) -> str:
    return item.question if isinstance(item, RecordedVerdict) else item.name


def _is_taken_from_record(verdict: RecordedVerdict, own_model: Collection[str]) -> bool:
    """Return whether a verdict is not repeated: one of an evaluator with its own model, such as an embedder.

    Verdicts by a gate are repeated, because gates are applied again.
    """
    return verdict.question in own_model and verdict.gated_by is None


def _failed_for_missing_record(verdict: RecordedVerdict) -> bool:
    return verdict.failure is not None and verdict.failure.kind == "unrecorded"


def _is_transient_failure(item: _JudgedItem) -> bool:
    return item.status == "failed" and has_transient_failure(item)


def _compare_fields(
    label: str, fields: Sequence[str], stored_item: _JudgedItem, recomputed_item: _JudgedItem
) -> bool:
    """Compare the fields of two items; return False, without that, where one of them failed transiently.

    Raises `TraceMismatch` for a field that differs, and `_MissingFilesError` if the files that a judge looked at are
    not there now: nothing can be said without them.
    """
    failure = recomputed_item.failure
    if (
        failure is not None
        and failure.kind == MISSING_WORKSPACE_FAILURE_KIND
        and stored_item.failure is None
    ):
        raise _MissingFilesError(f"{label}: {failure.message}")
    if _is_transient_failure(stored_item) or _is_transient_failure(recomputed_item):
        return False
    if failure and stored_item.failure and failure.kind == stored_item.failure.kind:
        # another version may word it otherwise
        fields = [name for name in fields if name not in ("failure", "reason")]
    for name in fields:
        old = getattr(stored_item, name)
        new = getattr(recomputed_item, name)
        # concurrent calls have no fixed order
        if old == new or (name == "calls" and set(old) == set(new)):
            continue
        stored_json = to_compact_json(to_jsonable_python(old)).decode()
        recomputed_json = to_compact_json(to_jsonable_python(new)).decode()
        if not _may_be_same_text(stored_json, recomputed_json):
            raise TraceMismatch(
                f"{label}: {name} is {old!r} in the run and {new!r} when recomputed"
            )
    return True
