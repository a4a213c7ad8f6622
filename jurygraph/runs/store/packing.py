"""Pack plans, traces and their parts into records, and unpack them.

The body of a record contains ids, numbers and names; written text is in the texts of the record. A body leaves out what
follows from the plan or the rest of the body, so that nothing is stored twice.
"""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from jurygraph.schema import (
    Counts,
    Decision,
    Evidence,
    FrozenModel,
    Material,
    Plan,
    RecordedVerdict,
    Response,
    Reward,
    Rubric,
    SurveyWithoutTexts,
    Task,
    TaskView,
    Trace,
)
from jurygraph.schema.frozen_model import JsonFields, JsonMapping, to_compact_json
from jurygraph.schema.task import Profiles
from jurygraph.schema.verdict import MET_THRESHOLD

if TYPE_CHECKING:
    from jurygraph.decision.decide import RewardRow

ERASED_PLACEHOLDER = "erased"
"""Value in place of an erased text or its digest."""

_COMMON_TASK_FIELDS = (
    "id",
    "query",
    "reference",
    "facts",
    "metadata",
    "reference_messages",
    "reference_actions",
    "tools",
    "context",
)
RecordBody = dict[str, Any]
StoredBody = Mapping[str, Any]
"""The body of a record, or a part of it, as it is read."""
RecordTexts = Mapping[int, bytes]
"""The texts of a record, by their places in it; those that were erased are missing."""


def pack_task(task: Task, plan: Plan) -> bytes:
    """Return all text of a task: the task, its profiles and its annotated rubric, and those fields of the views of its
    plan that differ from it."""
    content = {
        "task": task.model_dump(mode="json"),
        "views": [_view_specific_fields(view, task) for view in plan.survey.views.values()],
        "plan": plan.digest,
    }
    for name in _PLANNING_RESULT_MODELS:
        result = getattr(plan, name)
        if result is not None:
            content[name] = result.model_dump(mode="json")
    if plan.files:
        content["files"] = plan.files
    return to_compact_json(content)


def _view_specific_fields(view: TaskView, task: Task) -> RecordBody:
    """Return the fields of a view that its task has not, or has with another value."""
    return {
        name: value
        for name, value in view.json_object.items()
        if name not in _COMMON_TASK_FIELDS or getattr(view, name) != getattr(task, name)
    }


def inapplicable_question_indices(body: StoredBody) -> frozenset[int]:
    """Return the questions that did not apply to the response of a trace, by their places in the survey."""
    verdicts = body["verdicts"]
    return frozenset(
        verdict["question"] for verdict in verdicts if verdict.get("status") == "not_applicable"
    )


_PLANNING_RESULT_MODELS: Mapping[str, type[FrozenModel]] = {"profiles": Profiles, "rubric": Rubric}
"""Fields of a plan that belong neither to its survey nor to its decision; its files are the last."""


def read_planning_results(content: StoredBody) -> JsonFields:
    """Return the profiles and the rubric with its graph, as far as the stored content of a task contains them."""
    return {
        name: model.model_validate(content[name])
        for name, model in _PLANNING_RESULT_MODELS.items()
        if name in content
    }


def read_views(content: StoredBody) -> list[TaskView]:
    """Return the views of a plan, in order, from the stored content of its task."""
    common = {
        name: content["task"][name] for name in _COMMON_TASK_FIELDS if name in content["task"]
    }
    return [TaskView.model_validate({**common, **view}) for view in content["views"]]


def pack_reward(row: "RewardRow") -> RecordBody:
    """Return the body of a reward; a contribution is the decision's weight times the value."""
    value = row.value
    terms = row.terms
    counts = row.counts
    body: RecordBody = {
        "value": value,
        "counts": (counts.judged, counts.abstained, counts.failed, counts.not_applicable),
        "terms": terms,
    }
    # Most rewards have the usual values, which `unpack_reward` adds.
    if row.status != "ok":
        body["status"] = row.status
    if row.coverage != 1.0:
        body["coverage"] = row.coverage
    if not _are_numbers_identical((row.partial,), (value,)):
        body["partial"] = row.partial
    if row.range is None or not _are_numbers_identical(row.range, (value, value)):
        body["range"] = row.range
    if not _are_numbers_identical(row.components, terms):
        body["components"] = row.components
    for name in _REWARD_FIELD_DEFAULTS:
        content = getattr(row, name)
        if content:
            body[name] = content
    return body


def unpack_reward(body: StoredBody, decision: Decision) -> Reward:
    from jurygraph.decision.decide import RewardRow

    value = body["value"]
    defaults = {
        "status": "ok",
        "partial": value,
        "coverage": 1.0,
        "range": (value, value),
        "components": body["terms"],
    }
    counts = dict(zip(_VERDICT_COUNT_NAMES, body["counts"], strict=True))
    fields = {**_REWARD_FIELD_DEFAULTS, **defaults, **body, "counts": Counts(**counts)}
    return RewardRow(**fields).to_reward(decision)


def count_by_component(reward: StoredBody, diagnostic: str) -> dict[str, int]:
    """Return a count among the diagnostics of each component of a stored reward, such as `discarded`, if any."""
    counts = {}
    for name, figures in reward.get("diagnostics", {}).items():
        number = figures.get(diagnostic)
        if number:
            counts[name] = int(number)
    return counts


_VERDICT_COUNT_NAMES = ("judged", "abstained", "failed", "not_applicable")
"""The order in which a reward stores its counts of verdicts."""
_REWARD_FIELD_DEFAULTS: JsonMapping = {
    "parts": {},
    "diagnostics": {},
    "adjustments": (),
    "gate_values": {},
    "notes": (),
}
"""Fields of a reward that are only stored if they are not empty."""


def _are_numbers_identical(left: Sequence[float | None], right: Sequence[float | None]) -> bool:
    """Return whether all numbers are equal to the last bit: 0.0 is not -0.0."""
    return left == right and (0.0 not in left or repr(left) == repr(right))


class Texts(list[bytes]):
    """The texts of a record that is being packed."""

    def place(self, text: bytes) -> int:
        """Append a text and return its place."""
        self.append(text)
        return len(self) - 1


ResponseIds = tuple[str, ...]
"""Ids of the responses that a verdict is about, in the order in which they were shown."""


def number_shared_id_lists(traces: Iterable[Trace]) -> dict[ResponseIds, int]:
    """Return the lists of more than two responses that the verdicts of a group name, each with its number.

    A group stores each list once, and its verdicts store the number: otherwise they would take quadratic space.
    """
    numbers: dict[ResponseIds, int] = {}
    for trace in traces:
        for verdict in trace.verdicts:
            if len(verdict.responses) > 2:
                numbers.setdefault(verdict.responses, len(numbers))
    return numbers


def read_shared_id_lists(group: StoredBody) -> list[ResponseIds]:
    """Return the lists in the body of a group; their numbers are their indices."""
    return _SHARED_ID_LISTS_ADAPTER.validate_python(group.get("shown", []))


_SHARED_ID_LISTS_ADAPTER = TypeAdapter(list[ResponseIds])


def shown_response_ids(
    verdict: StoredBody, shared_id_lists: Sequence[ResponseIds]
) -> Sequence[str]:
    """Return the responses that a stored verdict names; empty if it is only about the response of its trace."""
    stored: int | Sequence[str] = verdict.get("responses", ())
    return shared_id_lists[stored] if isinstance(stored, int) else stored


def pack_trace(
    trace: Trace,
    response: Response,
    survey: SurveyWithoutTexts,
    reward: RecordBody,
    distance: int,
    shared_id_lists: Mapping[ResponseIds, int],
) -> tuple[RecordBody, Texts]:
    """Return a trace and its response as body and texts; the first text is that of the response.

    `distance` is that from the record of its group, which stores the `shared_id_lists`.
    """
    texts = Texts([_content_text(response)])
    body: RecordBody = {"group": distance, "reward": reward, "response": 0}
    if response.messages is not None:
        body["rendering"] = response.rendering
    if trace.agent is not None:
        body["agent"] = trace.agent
    if trace.labels or response.metadata or response.data is not None or response.workspace:
        about: RecordBody = {"labels": trace.labels, "data": response.data}
        if response.metadata:
            about["metadata"] = response.metadata
        if response.workspace:
            about["workspace"] = response.workspace
        body["about"] = texts.place(to_compact_json(about))
    verdicts = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
    body["verdicts"] = [
        _pack_verdict(verdict, trace.response_id, survey, texts, shared_id_lists)
        for verdict in verdicts
    ]
    if trace.material:
        body["material"] = [_pack_material(material, texts) for material in trace.material]
    if trace.calls:
        body["calls"] = [call.model_dump() for call in trace.calls]
    if trace.lookups:
        body["lookups"] = [lookup.model_dump() for lookup in trace.lookups]
    return body, texts


def _pack_material(material: Material, texts: Texts) -> RecordBody:
    index = texts.place(material.model_dump_json().encode())
    return {"name": material.name, "status": material.status, "text": index}


def _content_text(response: Response) -> bytes:
    """Return the text of a response, or its messages as JSON."""
    if response.messages is None:
        return response.text.encode()
    return to_compact_json([message.model_dump(mode="json") for message in response.messages])


def unpack_stored_response(
    body: StoredBody, response_id: str, texts: RecordTexts
) -> Response | None:
    """Return the response of a trace; None if its text was erased."""
    content = texts.get(body["response"])
    if content is None:
        return None
    fields: RecordBody = {
        "id": response_id,
        "agent": body.get("agent"),
        **unpack_response_metadata(body, texts),
    }
    if "rendering" in body:
        return Response(messages=json.loads(content), **fields)
    return Response(text=content.decode(), **fields)


def unpack_response_text(body: StoredBody, texts: RecordTexts) -> str | None:
    """Return the text of a trace's response alone; None if it was erased."""
    content = texts.get(body["response"])
    if content is None:
        return None
    return Response(messages=json.loads(content)).text if "rendering" in body else content.decode()


_VERDICT_LIST_FIELDS = ("examples", "calls", "steps")
_PACKED_VERDICT_FIELDS = frozenset({"reason", "evidence", "failure", "swap", *_VERDICT_LIST_FIELDS})
"""Fields of a verdict that are stored in another form."""
_VERDICT_FIELD_DEFAULTS: JsonMapping = {
    name: default
    for name, default in vars(RecordedVerdict.model_construct()).items()
    if name not in _PACKED_VERDICT_FIELDS
}
"""The defaults of the fields of a verdict that are stored as they are."""


def _pack_verdict(
    verdict: RecordedVerdict,
    response_id: str,
    survey: SurveyWithoutTexts,
    texts: Texts,
    shared_id_lists: Mapping[ResponseIds, int],
) -> RecordBody:
    index, identity = survey.identity_fields_by_question[verdict.question]
    usual = {
        **_VERDICT_FIELD_DEFAULTS,
        **identity,
        "about": response_id,
        "responses": (response_id,),
    }
    fields = vars(verdict)
    body: RecordBody = {"question": index}
    body |= {name: fields[name] for name, value in usual.items() if fields[name] != value}
    if verdict.responses in shared_id_lists:
        body["responses"] = shared_id_lists[verdict.responses]
    for name in _VERDICT_LIST_FIELDS:
        if fields[name]:
            body[name] = [item.model_dump() for item in fields[name]]
    if verdict.swap is not None:
        body["swap"] = verdict.swap.model_dump()
    if verdict.failure is not None:
        body["failure"] = [verdict.failure.cause, verdict.failure.kind]
    if verdict.evidence:
        body["evidence"] = [_pack_evidence(evidence) for evidence in verdict.evidence]
    text = _pack_verdict_text(verdict)
    if "native" in text:
        del body["native"]
    if text:
        body["text"] = texts.place(to_compact_json(text))
    return body


def _pack_evidence(evidence: Evidence) -> list[Any]:
    """Return the fields of `_EVIDENCE_FIELDS` after the quotation, without those at the end that are None."""
    fields = [getattr(evidence, name) for name in _EVIDENCE_FIELDS[1:]]
    while fields[-1] is None:
        fields.pop()
    return fields


_EVIDENCE_FIELDS = ("quote", "start", "end", "source", "verified", "of", "message")


def _pack_verdict_text(verdict: RecordedVerdict) -> RecordBody:
    text: RecordBody = {"reason": verdict.reason} if verdict.reason else {}
    if verdict.failure is not None and verdict.failure.message:
        text["message"] = verdict.failure.message
    if verdict.evidence:
        text["quotes"] = [e.quote for e in verdict.evidence]
    if isinstance(verdict.native, str):
        text["native"] = verdict.native
    return text


def unpack_verdict(
    body: StoredBody,
    response_id: str,
    survey: SurveyWithoutTexts,
    texts: RecordTexts,
    shared_id_lists: Sequence[ResponseIds],
) -> RecordedVerdict:
    """Return a verdict from its body; erased text is empty or replaced by `ERASED_PLACEHOLDER`.

    `shared_id_lists` are the lists of responses of its group.
    """
    _, identity = survey.identity_fields_by_question[survey.questions[body["question"]].id]
    # validation adds the other defaults
    fields = {**identity, "about": response_id, "responses": (response_id,)}
    fields |= {name: value for name, value in body.items() if name not in ("question", "text")}
    text = _read_verdict_text(body, texts)
    fields |= {name: text[name] for name in ("reason", "native") if name in text}
    if "failure" in body:
        cause, kind = body["failure"]
        fields["failure"] = {"cause": cause, "kind": kind, "message": text.get("message", "")}
    if "evidence" in body:
        quotes = text.get("quotes", [ERASED_PLACEHOLDER] * len(body["evidence"]))
        fields["evidence"] = [
            # not strict: most have no `of` and no `message`
            dict(zip(_EVIDENCE_FIELDS, (quote, *packed), strict=False))
            for quote, packed in zip(quotes, body["evidence"], strict=True)
        ]
    if not isinstance(fields["responses"], int):
        return RecordedVerdict.model_validate(fields)
    # one list for all verdicts, since validation would copy it for each
    responses = shared_id_lists[fields["responses"]]
    verdict = RecordedVerdict.model_validate({**fields, "responses": ()})
    return verdict.model_copy(update={"responses": responses})


def compare_judges_by_question(verdicts: Iterable[RecordBody]) -> list[tuple[float, bool]]:
    """Return the difference between the highest and the lowest judge on each question that several judges scored, and
    whether their answers differ.

    The score of a judge is the mean of its samples; met or not is one answer, whatever its probability. Verdicts that
    another judge's superseded are compared, too, and those that no quotation bears out are not.
    """
    scores: dict[Hashable, dict[str, list[float]]] = {}
    decided = set()
    for verdict in verdicts:
        is_answer = "gated_by" not in verdict and "unsupported" not in verdict
        if "judge" in verdict and is_answer and verdict.get("score") is not None:
            names = ("question", "about", "responses", "turn")
            judged = tuple(str(verdict.get(name)) for name in names)
            scores.setdefault(judged, {}).setdefault(verdict["judge"], []).append(verdict["score"])
            if verdict.get("met") is not None:
                decided.add(judged)
    comparisons = []
    for key, scores_by_judge in scores.items():
        if len(scores_by_judge) > 1:
            means = [fsum(samples) / len(samples) for samples in scores_by_judge.values()]
            answers = [mean >= MET_THRESHOLD for mean in means] if key in decided else means
            comparisons.append((max(means) - min(means), len(set(answers)) > 1))
    return comparisons


def unpack_verdict_reason(body: StoredBody, texts: RecordTexts) -> str:
    """Return the reason of a stored verdict, as `unpack_verdict` does."""
    reason: str = _read_verdict_text(body, texts).get("reason", "")
    return reason


def unpack_failure_message(body: StoredBody, texts: RecordTexts) -> str:
    """Return the message of a stored verdict's failure, as `unpack_verdict` does."""
    message: str = _read_verdict_text(body, texts).get("message", "")
    return message


def _read_verdict_text(body: StoredBody, texts: RecordTexts) -> RecordBody:
    """Return the text of a stored verdict, as packed by `_pack_verdict_text`; `ERASED_PLACEHOLDER` if it was erased."""
    if "text" not in body:
        return {}
    if body["text"] not in texts:
        return {"reason": ERASED_PLACEHOLDER, "message": ERASED_PLACEHOLDER}
    content: RecordBody = json.loads(texts[body["text"]])
    return content


def unpack_material(body: StoredBody, response_id: str, texts: RecordTexts) -> Material:
    """Return material from its body; erased material has only its name and a failure."""
    if body["text"] in texts:
        return Material.model_validate_json(texts[body["text"]])
    failure = {"cause": "infrastructure", "kind": ERASED_PLACEHOLDER, "message": "it was erased"}
    return Material.model_validate(
        {"name": body["name"], "response": response_id, "status": "failed", "failure": failure}
    )


def unpack_response_metadata(body: StoredBody, texts: RecordTexts) -> RecordBody:
    """Return the labels, data and metadata of a trace's response."""
    text = texts.get(body["about"]) if "about" in body else None
    about: RecordBody = {"labels": {}, "data": None, "metadata": {}}
    return about if text is None else {**about, **json.loads(text)}
