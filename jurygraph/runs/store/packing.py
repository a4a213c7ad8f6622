"""Pack plans, traces and their parts into records, and unpack them.

The body of a record contains ids, numbers and names; written text is in the texts of the record. A body leaves out what
follows from the plan or the rest of the body, so that nothing is stored twice.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from jurygraph.schema import (
    Counts,
    Decision,
    FrozenModel,
    Material,
    Plan,
    RecordedVerdict,
    Response,
    Reward,
    Rubric,
    SurveyOutline,
    Task,
    TaskView,
    Trace,
)
from jurygraph.schema.frozen_model import compact_json
from jurygraph.schema.task import Profiles

if TYPE_CHECKING:
    from jurygraph.decision.decide import RewardRow

ERASED = "erased"
"""Value in place of an erased text or its digest."""

_COMMON = (
    *("id", "query", "reference", "facts", "metadata"),
    *("reference_messages", "reference_actions", "tools", "context"),
)
Body = dict[str, Any]


def task_text(task: Task, plan: Plan) -> bytes:
    """Return all text of a task: the task, its profiles and its annotated rubric, and those fields of the views of its
    plan that differ from it."""
    views = [
        {
            k: value
            for k, value in view.constant.items()
            if k not in _COMMON or getattr(view, k) != getattr(task, k)
        }
        for view in plan.survey.views.values()
    ]
    results = {
        name: result.model_dump(mode="json")
        for name in _PLANNING_RESULTS
        if (result := getattr(plan, name)) is not None
    }
    return compact_json(
        {"task": task.model_dump(mode="json"), "views": views, "plan": plan.digest, **results}
    )


def skipped_questions(body: Mapping[str, Any]) -> frozenset[int]:
    """Return the questions that did not apply to the response of a trace, by their places in the survey."""
    verdicts = body["verdicts"]
    return frozenset(
        verdict["question"] for verdict in verdicts if verdict.get("status") == "not_applicable"
    )


def is_text_of(task: Task, text: bytes) -> bool:
    """Return whether a text made by `task_text` is that of this task, to the last digit of its numbers."""
    return text.startswith(b'{"task":' + compact_json(task.model_dump(mode="json")) + b',"views":')


_PLANNING_RESULTS: Mapping[str, type[FrozenModel]] = {"profiles": Profiles, "rubric": Rubric}
"""Fields of a plan that belong neither to its survey nor to its decision."""


def read_planning_results(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profiles and the rubric with its graph, as far as the stored content of a task contains them."""
    return {
        name: model.model_validate(content[name])
        for name, model in _PLANNING_RESULTS.items()
        if name in content
    }


def read_views(content: Mapping[str, Any]) -> list[TaskView]:
    """Return the views of a plan, in order, from the stored content of its task."""
    common = {name: content["task"][name] for name in _COMMON if name in content["task"]}
    return [TaskView.model_validate({**common, **view}) for view in content["views"]]


def pack_reward(row: "RewardRow") -> Body:
    """Return the body of a reward; a contribution is the decision's weight times the value."""
    value = row.value
    terms = row.terms
    counts = row.counts
    body: Body = {
        "value": value,
        "counts": (counts.judged, counts.abstained, counts.failed, counts.not_applicable),
        "terms": terms,
    }
    is_stored = {
        "status": row.status != "ok",
        "coverage": row.coverage != 1.0,
        "partial": not _are_identical((row.partial,), (value,)),
        "range": row.range is None or not _are_identical(row.range, (value, value)),
        "components": not _are_identical(row.components, terms),
        **{name: bool(getattr(row, name)) for name in _EMPTY},
    }
    return body | {name: getattr(row, name) for name, needed in is_stored.items() if needed}


def unpack_reward(body: Mapping[str, Any], decision: Decision) -> Reward:
    from jurygraph.decision.decide import RewardRow

    value = body["value"]
    terms = body["terms"]
    defaults = {
        "status": "ok",
        "partial": value,
        "coverage": 1.0,
        "range": (value, value),
        "components": terms,
    }
    counts = Counts(
        **dict(
            zip(("judged", "abstained", "failed", "not_applicable"), body["counts"], strict=True)
        )
    )
    return RewardRow(**{**_EMPTY, **defaults, **body, "counts": counts}).to_reward(decision)


def count_discarded(reward: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of verdicts that each component of a stored reward discarded for low confidence, if any."""
    diagnostics = reward.get("diagnostics", {}).items()
    return {
        name: int(number) for name, figures in diagnostics if (number := figures.get("discarded"))
    }


_EMPTY: Mapping[str, Any] = {
    "parts": {},
    "diagnostics": {},
    "adjustments": (),
    "gate_values": {},
    "notes": (),
}
"""Fields of a reward that are only stored if they are not empty."""


def _are_identical(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Return whether all numbers are equal to the last bit: 0.0 is not -0.0."""
    return one == other and (0.0 not in one or repr(one) == repr(other))


class Texts(list[bytes]):
    """The texts of a record that is being packed."""

    def place(self, text: bytes) -> int:
        """Append a text and return its place."""
        self.append(text)
        return len(self) - 1


ResponseIds = tuple[str, ...]
"""Ids of the responses that a verdict is about, in the order in which they were shown."""


def number_shared_lists(traces: Iterable[Trace]) -> dict[ResponseIds, int]:
    """Return the lists of more than two responses that the verdicts of a group name, each with its number.

    A group stores each list once, and its verdicts store the number: otherwise they would take quadratic space.
    """
    shown = (
        verdict.responses
        for trace in traces
        for verdict in trace.verdicts
        if len(verdict.responses) > 2
    )
    return {responses: number for number, responses in enumerate(dict.fromkeys(shown))}


def read_shared_lists(group: Mapping[str, Any]) -> list[ResponseIds]:
    """Return the lists in the body of a group; their numbers are their indices."""
    return _SHARED.validate_python(group.get("shown", []))


_SHARED = TypeAdapter(list[ResponseIds])


def responses_shown(
    verdict: Mapping[str, Any], shared_lists: Sequence[ResponseIds]
) -> Sequence[str]:
    """Return the responses that a stored verdict names; empty if it is only about the response of its trace."""
    stored: int | Sequence[str] = verdict.get("responses", ())
    return shared_lists[stored] if isinstance(stored, int) else stored


def pack_trace(
    trace: Trace,
    response: Response,
    outline: SurveyOutline,
    reward: Body,
    place: int,
    shared_lists: Mapping[ResponseIds, int],
) -> tuple[Body, Texts]:
    """Return a trace and its response as body and texts; the first text is that of the response.

    `place` is the distance from the record of its group, which stores the `shared_lists`.
    """
    texts = Texts([_content_text(response)])
    body: Body = {"group": place, "reward": reward, "response": 0}
    if response.messages is not None:
        body["rendering"] = response.rendering
    if trace.agent is not None:
        body["agent"] = trace.agent
    if trace.labels or response.metadata or response.data is not None:
        metadata = {"metadata": response.metadata} if response.metadata else {}
        body["about"] = texts.place(
            compact_json({"labels": trace.labels, "data": response.data, **metadata})
        )
    verdicts = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
    body["verdicts"] = [
        _pack_verdict(verdict, trace.response_id, outline, texts, shared_lists)
        for verdict in verdicts
    ]
    if trace.material:
        body["material"] = [
            {"name": m.name, "status": m.status, "text": texts.place(m.model_dump_json().encode())}
            for m in trace.material
        ]
    if trace.calls:
        body["calls"] = [call.model_dump() for call in trace.calls]
    return body, texts


def _content_text(response: Response) -> bytes:
    """Return the text of a response, or its messages as JSON."""
    if response.messages is None:
        return response.text.encode()
    return compact_json([message.model_dump(mode="json") for message in response.messages])


def unpack_response(
    body: Mapping[str, Any], response_id: str, texts: Mapping[int, bytes]
) -> Response | None:
    """Return the response of a trace; None if its text was erased."""
    content = texts.get(body["response"])
    if content is None:
        return None
    fields: Body = {"id": response_id, "agent": body.get("agent"), **unpack_about(body, texts)}
    if "rendering" in body:
        return Response(messages=json.loads(content), **fields)
    return Response(text=content.decode(), **fields)


_VERDICT_DEFAULTS: Mapping[str, Any] = vars(RecordedVerdict.model_construct())


def _pack_verdict(
    verdict: RecordedVerdict,
    response_id: str,
    outline: SurveyOutline,
    texts: Texts,
    shared_lists: Mapping[ResponseIds, int],
) -> Body:
    place, identity = outline.verdict_identities[verdict.question]
    defaults = {**_VERDICT_DEFAULTS, **identity, "about": response_id, "responses": (response_id,)}
    fields = vars(verdict)
    body: Body = {"question": place}
    lists = ("examples", "calls", "steps")
    packed = {"reason", "evidence", "failure", "swap", *lists}  # below, each in its own way
    body |= {
        name: fields[name]
        for name in defaults
        if name not in packed and fields[name] != defaults[name]
    }
    if verdict.responses in shared_lists:
        body["responses"] = shared_lists[verdict.responses]
    body |= {name: [item.model_dump() for item in fields[name]] for name in lists if fields[name]}
    if verdict.swap is not None:
        body["swap"] = verdict.swap.model_dump()
    if verdict.failure is not None:
        body["failure"] = [verdict.failure.cause, verdict.failure.kind]
    if verdict.evidence:
        body["evidence"] = [
            [e.start, e.end, e.source, e.verified, *_drop_empty_end(e.of, e.message)]
            for e in verdict.evidence
        ]
    text = _written_text(verdict)
    if "native" in text:
        del body["native"]
    if text:
        body["text"] = texts.place(compact_json(text))
    return body


def _drop_empty_end(of: str | None, message: int | None) -> list[str | int | None]:
    if message is not None:
        return [of, message]
    return [] if of is None else [of]


def _written_text(verdict: RecordedVerdict) -> Body:
    text: Body = {"reason": verdict.reason} if verdict.reason else {}
    if verdict.failure is not None and verdict.failure.message:
        text["message"] = verdict.failure.message
    if verdict.evidence:
        text["quotes"] = [e.quote for e in verdict.evidence]
    if isinstance(verdict.native, str):
        text["native"] = verdict.native
    return text


def unpack_verdict(
    body: Mapping[str, Any],
    response_id: str,
    outline: SurveyOutline,
    texts: Mapping[int, bytes],
    shared_lists: Sequence[ResponseIds],
) -> RecordedVerdict:
    """Return a verdict from its body; erased text is empty or replaced by `ERASED`.

    `shared_lists` are the lists of responses of its group.
    """
    _, identity = outline.verdict_identities[outline.questions[body["question"]].id]
    fields = {
        **identity,
        "about": response_id,
        "responses": (response_id,),
    }  # validation adds the other defaults
    fields |= {name: value for name, value in body.items() if name not in ("question", "text")}
    text = _read_text(body, texts)
    fields |= {name: text[name] for name in ("reason", "native") if name in text}
    if "failure" in body:
        cause, kind = body["failure"]
        fields["failure"] = {"cause": cause, "kind": kind, "message": text.get("message", "")}
    if "evidence" in body:
        quotes = text.get("quotes", [ERASED] * len(body["evidence"]))
        names = ("quote", "start", "end", "source", "verified", "of", "message")
        fields["evidence"] = [
            dict(zip(names, (quote, *place), strict=False))  # most have no `of` and no `message`
            for quote, place in zip(quotes, body["evidence"], strict=True)
        ]
    if not isinstance(fields["responses"], int):
        return RecordedVerdict.model_validate(fields)
    shown = shared_lists[
        fields["responses"]
    ]  # one list for all verdicts, since validation would copy it for each
    return RecordedVerdict.model_validate({**fields, "responses": ()}).model_copy(
        update={"responses": shown}
    )


def unpack_message(body: Mapping[str, Any], texts: Mapping[int, bytes]) -> str:
    """Return the message of a stored verdict's failure, as `unpack_verdict` does."""
    message: str = _read_text(body, texts).get("message", "")
    return message


def _read_text(body: Mapping[str, Any], texts: Mapping[int, bytes]) -> Body:
    """Return the text of a stored verdict, as packed by `_written_text`; `ERASED` if it was erased."""
    if "text" not in body:
        return {}
    if body["text"] not in texts:
        return {"reason": ERASED, "message": ERASED}
    content: Body = json.loads(texts[body["text"]])
    return content


def unpack_material(
    body: Mapping[str, Any], response_id: str, texts: Mapping[int, bytes]
) -> Material:
    """Return material from its body; erased material has only its name and a failure."""
    if body["text"] in texts:
        return Material.model_validate_json(texts[body["text"]])
    failure = {"cause": "infrastructure", "kind": ERASED, "message": "it was erased"}
    return Material.model_validate(
        {"name": body["name"], "response": response_id, "status": "failed", "failure": failure}
    )


def unpack_about(body: Mapping[str, Any], texts: Mapping[int, bytes]) -> Body:
    """Return the labels, data and metadata of a trace's response."""
    text = texts.get(body["about"]) if "about" in body else None
    return {
        "labels": {},
        "data": None,
        "metadata": {},
        **({} if text is None else json.loads(text)),
    }
