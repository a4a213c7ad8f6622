"""Nouns as records and back. A record's body holds ids, numbers and names; what somebody wrote stands in its texts.

What a body leaves out is what the plan or the rest of it says anyway, so that nothing is stored twice.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from jurygraph.schema import (
    Audience,
    Counts,
    Decision,
    Derivation,
    Evidence,
    Material,
    Noun,
    Plan,
    Question,
    Response,
    ResponseGate,
    Reward,
    Rubric,
    Survey,
    Task,
    TaskView,
    Trace,
    Verdict,
    Wave,
    digest_of,
)
from jurygraph.schema.profile import Profiles

if TYPE_CHECKING:
    from jurygraph.graphs.rewarding import Row

ERASED = "erased"
"""Stands where a text or its digest was."""

_UNSTATED: Verdict = Verdict.model_construct()
_COMMON = ("id", "query", "reference", "facts", "metadata")
Body = dict[str, Any]
_NONE_SHARED: Mapping[tuple[str, ...], int] = MappingProxyType({})


@dataclass(frozen=True)
class Shape:
    """A survey without its texts: views are known by their places, so that many tasks can share one shape."""

    members: Sequence[tuple[Audience, str | None]]
    derivations: Sequence[Derivation]
    questions: Sequence[Question]
    waves: Sequence[Wave]
    gates: Sequence[ResponseGate] = ()

    @classmethod
    def of(cls, survey: Survey) -> "Shape":
        """The shape of a survey."""
        place = {digest: str(i) for i, digest in enumerate(survey.views)}
        return cls(
            members=[(view.audience, view.member) for view in survey.views.values()],
            derivations=[d.model_copy(update={"view": place[d.view]}) for d in survey.derivations],
            questions=[q.model_copy(update={"view": place[q.view]}) for q in survey.questions],
            waves=survey.waves,
            gates=survey.gates,
        )

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Shape":
        """A shape as it was stored."""
        return cls(
            members=[(audience, member) for audience, member in body["members"]],
            derivations=[Derivation.model_validate(d) for d in body["derivations"]],
            questions=[Question.model_validate(q) for q in body["questions"]],
            waves=[Wave.model_validate(w) for w in body["waves"]],
            gates=body.get("gates", ()),
        )

    @cached_property
    def body(self) -> Body:
        """As it is stored."""
        return {
            "members": [list(member) for member in self.members],
            "derivations": [d.model_dump() for d in self.derivations],
            "questions": [q.model_dump() for q in self.questions],
            "waves": [w.model_dump() for w in self.waves],
            **({"gates": list(self.gates)} if self.gates else {}),
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the body."""
        return digest_of(self.body)

    @cached_property
    def expected(self) -> Mapping[str, tuple[int, Mapping[str, Any]]]:
        """By question: its place, and the fields that its verdicts have unless they say otherwise."""
        return {question.id: (place, self._stamped(question)) for place, question in enumerate(self.questions)}

    def _stamped(self, question: Question) -> Mapping[str, Any]:
        from jurygraph.graphs.routing import identity_of

        audience, member = self.members[int(question.view)]
        return {**vars(_UNSTATED), **identity_of(question, audience, member)}

    @cached_property
    def mirrored(self) -> bool:
        """Whether a verdict can belong to two traces."""
        return any(q.scope == "pair" and q.pairs == "unordered" for q in self.questions)

    def survey(self, views: Sequence[TaskView]) -> Survey:
        """The survey again, with its views."""
        digests = [view.digest for view in views]
        return Survey(
            views=dict(zip(digests, views, strict=True)),
            derivations=tuple(d.model_copy(update={"view": digests[int(d.view)]}) for d in self.derivations),
            questions=tuple(q.model_copy(update={"view": digests[int(q.view)]}) for q in self.questions),
            waves=tuple(self.waves),
            gates=tuple(self.gates),
        )


def task_text(task: Task, plan: Plan) -> bytes:
    """Everything that is written in a task, what its profiles were read as and its rubric annotated, and the views of
    its plan as far as they differ from it."""
    content = task.model_dump(mode="json")
    views = [
        {k: v for k, v in view.model_dump(mode="json").items() if k not in _COMMON or v != content[k]}
        for view in plan.survey.views.values()
    ]
    read = {name: one.model_dump(mode="json") for name in _READ if (one := getattr(plan, name)) is not None}
    return _text({"task": content, "views": views, "plan": plan.digest, **read})


_READ: Mapping[str, type[Noun]] = {"profiles": Profiles, "rubric": Rubric}
"""What of a plan is neither its survey nor its decision."""


def read_beside(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the profiles of a task were read as, and its rubric with its graph, from what is written in it."""
    return {name: noun.model_validate(content[name]) for name, noun in _READ.items() if name in content}


def read_views(content: Mapping[str, Any]) -> list[TaskView]:
    """The views of a plan, in their order, from what is written in its task."""
    common = {name: content["task"][name] for name in _COMMON}
    return [TaskView.model_validate({**common, **view}) for view in content["views"]]


def pack_reward(row: "Row") -> Body:
    """A reward as it is stored; a contribution is the decision's weight times the value."""
    value, terms, counts = row.value, row.terms, row.counts
    body: Body = {
        "value": value,
        "counts": (counts.judged, counts.abstained, counts.failed, counts.not_applicable),
        "terms": terms,
    }
    if row.status != "ok":
        body["status"] = row.status
    if row.coverage != 1.0:
        body["coverage"] = row.coverage
    if not _same((row.partial,), (value,)):
        body["partial"] = row.partial
    if row.range is None or not _same(row.range, (value, value)):
        body["range"] = row.range
    if not _same(row.components, terms):
        body["components"] = row.components
    for name in ("parts", "figures", "adjustments", "notes"):
        if getattr(row, name):
            body[name] = getattr(row, name)
    return body


def unpack_reward(body: Mapping[str, Any], decision: Decision) -> Reward:
    """The reward again."""
    from jurygraph.graphs.rewarding import Row

    value, terms = body["value"], body["terms"]
    judged, abstained, failed, not_applicable = body["counts"]
    return Row(
        value=value,
        status=body.get("status", "ok"),
        partial=body.get("partial", value),
        coverage=body.get("coverage", 1.0),
        range=body.get("range", (value, value)),
        components=body.get("components", terms),
        terms=terms,
        counts=Counts(judged=judged, abstained=abstained, failed=failed, not_applicable=not_applicable),
        parts=body.get("parts", {}),
        figures=body.get("figures", {}),
        adjustments=body.get("adjustments", ()),
        notes=body.get("notes", ()),
    ).reward(decision)


def _same(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Equal to the last bit: 0.0 is not -0.0."""
    return one == other and (0.0 not in one or repr(one) == repr(other))


class Texts(list[bytes]):
    """The texts of a record as they are collected."""

    def place(self, text: bytes) -> int:
        """Add a text; its place."""
        self.append(text)
        return len(self) - 1


Shown = tuple[str, ...]
"""The ids of the responses that a verdict is about, in the order in which they were shown."""
_FEW = 2


def shared_lists(traces: Iterable[Trace]) -> dict[Shown, int]:
    """Return the lists of more than two responses that verdicts of a group name, each with its number.

    A group stores each of them once, and its verdicts store the number: written out in every verdict, they would take
    room that grows with the square of the group.
    """
    shown = (verdict.responses for trace in traces for verdict in trace.verdicts if len(verdict.responses) > _FEW)
    return {responses: number for number, responses in enumerate(dict.fromkeys(shown))}


def read_shared_lists(group: Mapping[str, Any]) -> list[Shown]:
    """Return the lists that the body of a group stores, by their numbers."""
    return _SHARED.validate_python(group.get("shown", []))


_SHARED = TypeAdapter(list[Shown])


def shown_in(verdict: Mapping[str, Any], shared: Sequence[Shown]) -> Sequence[str]:
    """Return the responses that a stored verdict names; none where it is about the response of its trace alone."""
    stored: int | Sequence[str] = verdict.get("responses", ())
    return shared[stored] if isinstance(stored, int) else stored


def pack_trace(
    trace: Trace, response: Response, shape: Shape, reward: Body, place: int, shared: Mapping[Shown, int] = _NONE_SHARED
) -> tuple[Body, Texts]:
    """A trace and its response as body and texts; the text of the response comes first.

    `place` counts from the record of its group, which stores the `shared` lists of responses.
    """
    texts = Texts([response.text.encode()])
    body: Body = {"group": place, "reward": reward, "response": 0}
    if trace.agent is not None:
        body["agent"] = trace.agent
    if trace.labels or response.data is not None:
        body["about"] = texts.place(_text({"labels": trace.labels, "data": response.data}))
    own = [verdict for verdict in trace.verdicts if verdict.about == trace.response_id]
    body["verdicts"] = [_pack_verdict(verdict, trace.response_id, shape, texts, shared) for verdict in own]
    if trace.material:
        body["material"] = [_pack_material(one, texts) for one in trace.material]
    if trace.calls:
        body["calls"] = [call.model_dump() for call in trace.calls]
    return body, texts


def _pack_verdict(verdict: Verdict, response_id: str, shape: Shape, texts: Texts, shared: Mapping[Shown, int]) -> Body:
    place, expected = shape.expected[verdict.question]
    usual = {**expected, "about": response_id, "responses": (response_id,)}
    fields = vars(verdict)
    body: Body = {"question": place}
    body |= {name: fields[name] for name in usual if name not in _APART and fields[name] != usual[name]}
    if verdict.responses in shared:
        body["responses"] = shared[verdict.responses]
    if verdict.examples:
        body["examples"] = [one.model_dump() for one in verdict.examples]
    if verdict.shrinkage is not None:
        body["shrinkage"] = verdict.shrinkage.model_dump()
    if verdict.failure is not None:
        body["failure"] = [verdict.failure.cause, verdict.failure.kind]
    if verdict.evidence:
        body["evidence"] = [_pack_evidence(e) for e in verdict.evidence]
    written = _written(verdict)
    if "native" in written:
        del body["native"]
    if written:
        body["text"] = texts.place(_text(written))
    return body


def _pack_evidence(evidence: Evidence) -> list[Any]:
    place = [evidence.start, evidence.end, evidence.source, evidence.verified]
    return place if evidence.of is None else [*place, evidence.of]


_APART = {"reason", "evidence", "failure", "examples", "shrinkage"}
"""Fields that are packed in a way of their own."""


def _written(verdict: Verdict) -> Body:
    """What somebody wrote in a verdict."""
    written: Body = {"reason": verdict.reason} if verdict.reason else {}
    if verdict.failure is not None and verdict.failure.message:
        written["message"] = verdict.failure.message
    if verdict.evidence:
        written["quotes"] = [e.quote for e in verdict.evidence]
    if isinstance(verdict.native, str):
        written["native"] = verdict.native
    return written


def _pack_material(material: Material, texts: Texts) -> Body:
    return {"name": material.name, "status": material.status, "text": texts.place(material.model_dump_json().encode())}


def unpack_verdict(
    body: Mapping[str, Any], response_id: str, shape: Shape, texts: Mapping[int, bytes], shared: Sequence[Shown] = ()
) -> Verdict:
    """The verdict again; what was erased is empty or says so. `shared` are the lists of responses of its group."""
    expected = shape.expected[shape.questions[body["question"]].id][1]
    fields = {**expected, "about": response_id, "responses": (response_id,)}
    fields |= {name: value for name, value in body.items() if name not in ("question", "text")}
    written = _read_written(body, texts)
    fields |= {name: written[name] for name in ("reason", "native") if name in written}
    if "failure" in body:
        cause, kind = body["failure"]
        fields["failure"] = {"cause": cause, "kind": kind, "message": written.get("message", "")}
    if "evidence" in body:
        fields["evidence"] = list(_unpack_evidence(body["evidence"], written))
    if not isinstance(fields["responses"], int):
        return Verdict.model_validate(fields)
    shown = shared[fields["responses"]]  # one list for all verdicts, where validation would copy it for each
    return Verdict.model_validate({**fields, "responses": ()}).model_copy(update={"responses": shown})


def unpack_message(body: Mapping[str, Any], texts: Mapping[int, bytes]) -> str:
    """Return what the failure of a stored verdict says, as `unpack_verdict` has it."""
    message: str = _read_written(body, texts).get("message", "")
    return message


def _read_written(body: Mapping[str, Any], texts: Mapping[int, bytes]) -> Body:
    """Return what somebody wrote in a stored verdict, as `_written` packed it, or that it was erased."""
    if "text" not in body:
        return {}
    if body["text"] not in texts:
        return {"reason": ERASED, "message": ERASED}
    written: Body = json.loads(texts[body["text"]])
    return written


def _unpack_evidence(stored: Sequence[Any], written: Mapping[str, Any]) -> Iterator[Body]:
    quotes = written.get("quotes", [ERASED] * len(stored))
    for quote, (start, end, source, verified, *of) in zip(quotes, stored, strict=True):
        yield {"quote": quote, "start": start, "end": end, "source": source, "verified": verified} | (
            {"of": of[0]} if of else {}
        )


def unpack_material(body: Mapping[str, Any], response_id: str, texts: Mapping[int, bytes]) -> Material:
    """The material again; what was erased is known by its name, and is there no more."""
    if body["text"] in texts:
        return Material.model_validate_json(texts[body["text"]])
    failure = {"cause": "infrastructure", "kind": ERASED, "message": "it was erased"}
    return Material.model_validate(
        {"name": body["name"], "response": response_id, "status": "failed", "failure": failure}
    )


def unpack_about(body: Mapping[str, Any], texts: Mapping[int, bytes]) -> Body:
    """The labels and data of a trace's response."""
    text = texts.get(body["about"]) if "about" in body else None
    found: Body = {"labels": {}, "data": None} if text is None else json.loads(text)
    return found


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
