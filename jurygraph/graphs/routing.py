"""What to ask next: a pure function of the plan, the group, and what has been answered so far.

A wave of the survey becomes slots for evaluators and jobs for derivers, by branch. Where staged screening (`when`), a
failed deriver or a group of one rules a question out for a response, a verdict is settled here without asking.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

from jurygraph import aggregation
from jurygraph.agents.roles import Materials
from jurygraph.safety.gates import Gated, gated
from jurygraph.schema import (
    Audience,
    Call,
    Criterion,
    Derivation,
    Failure,
    Material,
    Question,
    Response,
    Status,
    Survey,
    TaskView,
    Verdict,
    When,
)
from jurygraph.schema.safety import NO_VARIANT
from jurygraph.schema.task import words_of

GROUP_OF_ONE = "group-of-one"
SUBMITTED = "submitted"
DATA = "data"
"""Material of this name stands as a response's own data, for those who need it; one that has data keeps it."""
NOT_DERIVED = Failure(cause="infrastructure", kind="material", message="it was not derived")
GATED_LAYERS = ("model", "residual")
"""Layers whose questions are answered by a gate that stops a response."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One ask: the responses shown, the material beside each, and the submitted ones that the verdicts are about."""

    question: Question
    responses: tuple[Response, ...]
    material: tuple[Materials, ...]
    about: tuple[str, ...]
    sample: int


@dataclass(frozen=True, slots=True)
class Job:
    """One derivation for one response."""

    derivation: Derivation
    response: Response
    material: Materials


Shown = tuple[str, str, tuple[str, ...], int]
"""Where a verdict stands: question id, the id of whom it is about, ids of the responses as shown, and sample."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is known of a group already and not asked again: verdicts, material by (name, response id), calls by id.

    Only verdicts on what was shown are recalled: what was settled without asking is settled anew. A verdict, or
    material, that rests on other material is recalled only where that is what is recalled of it.
    """

    verdicts: Mapping[Shown, Verdict]
    material: Mapping[tuple[str, str], Material]
    calls: Mapping[str, Call] = field(default_factory=dict)


NOTHING = Recalled({}, {})


@dataclass(frozen=True, slots=True)
class Work:
    """A wave's work: slots by branch, jobs, and the verdicts and material that were settled without asking."""

    slots: dict[str, list[Slot]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    settled: list[Verdict] = field(default_factory=list)
    material: list[Material] = field(default_factory=list)

    @property
    def branches(self) -> list[str]:
        """The nodes that have something to do."""
        return (["derive"] if self.jobs else []) + sorted(self.slots)


def canonical_order(responses: Iterable[Response]) -> tuple[Response, ...]:
    """The group in the order of its content: digest of text and data, then id. Labels and agents are taken off."""
    return tuple(sorted((r.shown() for r in responses), key=lambda r: (r.content_digest, r.id)))


def next_work(
    survey: Survey,
    wave: int,
    responses: Sequence[Response],
    material: Sequence[Material],
    verdicts: Sequence[Verdict],
    recalled: Recalled = NOTHING,
) -> tuple[Work, int]:
    """The work of the first wave from `wave` on that has any, and the number of the wave after it."""
    routed = _Routed(survey, responses, material, verdicts, recalled)
    while wave < len(survey.waves) and not routed.work.branches:
        routed.add(wave)
        wave += 1
    return routed.work, wave


class _Routed:
    """Work as it is collected; what is settled in one wave is seen by the next."""

    def __init__(
        self,
        survey: Survey,
        responses: Sequence[Response],
        material: Sequence[Material],
        verdicts: Sequence[Verdict],
        recalled: Recalled,
    ) -> None:
        self.survey = survey
        self.responses = responses
        self.recalled = recalled
        self.work = Work()
        self.material: dict[str, dict[str, Material]] = defaultdict(dict)
        for one in material:
            self.material[one.response][one.name] = one
        self.verdicts = verdicts
        self.gated: dict[tuple[str, str, str | None], Gated | None] = {}
        self.mirrored = {q.id for q in survey.questions if q.scope == "pair" and q.pairs == "unordered"}

    def add(self, wave: int) -> None:
        """Add one wave's work."""
        names, ids = set(self.survey.waves[wave].materials), set(self.survey.waves[wave].questions)
        for derivation in self.survey.derivations:
            if derivation.gives in names:
                self._derive(derivation)
        for question in self.survey.questions:
            if question.id in ids:
                self._ask(question)

    def _derive(self, derivation: Derivation) -> None:
        for response in self.responses:
            failure = self._missing(response, derivation.needs)
            known = self.recalled.material.get((derivation.gives, response.id))
            if derivation.gives == DATA and response.data is not None:
                known = Material(name=DATA, response=response.id, data=response.data)
            elif failure is not None:
                known = Material(name=derivation.gives, response=response.id, status="failed", failure=failure)
            elif known is None or not self._unchanged(derivation.needs, [response.id]):
                shown = self._with_data(response, response, derivation.needs)
                self.work.jobs.append(Job(derivation, shown, self._needed(response, derivation.needs)))
                continue
            self.work.material.append(known)
            self.material[response.id][derivation.gives] = known

    def _ask(self, question: Question) -> None:
        stamp = stamps(question, self.survey.views[question.view])
        outcomes = {r.id: self._ruled_out(question, r) for r in self.responses}
        askable = [r for r in self.responses if outcomes[r.id] is None]
        if question.scope != "response" and len(askable) == 1:
            outcomes[askable[0].id] = _alone([outcome for outcome in outcomes.values() if outcome is not None])
            askable = []
        self.work.settled.extend(
            stamp(outcome, name, (), 0) for name, outcome in outcomes.items() if outcome is not None
        )
        slots = [
            Slot(
                question,
                tuple(self._with_data(r, owner, question.needs) for r, owner in zip(shown, owners, strict=True)),
                tuple(self._needed(r, question.needs) for r in owners),
                about,
                sample,
            )
            for shown, owners, about in self._shown(question, askable)
            for sample in range(question.samples)
        ]
        left = [slot for slot in slots if not self._recall(slot, stamp)]
        if left:
            self.work.slots.setdefault(question.branch, []).extend(left)

    def _recall(self, slot: Slot, stamp: "Stamp") -> bool:
        """Whether all verdicts of the slot are known; they are then settled, under the present identity."""
        question, shown = slot.question, tuple(r.id for r in slot.responses)
        places = [(question.id, about, shown, slot.sample) for about in slot.about]
        owners = shown if question.of == SUBMITTED else slot.about
        if not all(place in self.recalled.verdicts for place in places) or not self._unchanged(
            rests_on(question), owners
        ):
            return False
        self.work.settled.extend(
            stamp(self.recalled.verdicts[place], about, shown, slot.sample)
            for place, about in zip(places, slot.about, strict=True)
        )
        return True

    def _unchanged(self, names: Iterable[str], responses: Sequence[str]) -> bool:
        """Whether the material of these names about these responses (ids) is what is recalled of it."""
        return all(
            self.material[response][name] == self.recalled.material.get((name, response))
            for name in names
            for response in responses
        )

    def _shown(
        self, question: Question, askable: Sequence[Response]
    ) -> Iterable[tuple[tuple[Response, ...], tuple[Response, ...], tuple[str, ...]]]:
        """What is shown together, whose material stands beside it, and whom the verdicts are about."""
        if question.of != SUBMITTED:
            return [
                ((variant.response,), (r,), (r.id,))
                for r in askable
                for variant in self.material[r.id][question.of].variants
            ]
        if question.scope == "response":
            return [((r,), (r,), (r.id,)) for r in askable]
        if question.scope == "pair":
            pairs = permutations(askable, 2) if question.pairs == "ordered" else combinations(askable, 2)
            return [(pair, pair, (pair[0].id,)) for pair in pairs]
        group = tuple(askable)
        return [(group, group, tuple(r.id for r in group))] if group else []

    def _ruled_out(self, question: Question, response: Response) -> Verdict | None:
        """None if the question can be asked about this response, else the verdict that takes its place."""
        stopped = self._stopped(question, response)
        if stopped is not None:
            return stopped
        failure = self._missing(response, rests_on(question))
        if failure is not None:
            status: Status = "abstained" if failure.kind == "no-model" else "failed"
            return Verdict(status=status, failure=failure, reason=failure.message)
        if question.of != SUBMITTED and not self.material[response.id][question.of].variants:
            return self._without_variants(question, response)
        return None if question.when is None else self._screened(question.when, response)

    def _stopped(self, question: Question, response: Response) -> Verdict | None:
        """The verdict of a gate that stops the response: nothing good is found in it, and everything bad.

        It comes before screening and material: nothing that a response lacks is to leave such a question out.
        """
        if question.layer not in GATED_LAYERS or not self.survey.gates:
            return None
        view = self.survey.views[question.view]
        query = words_of(view.query)
        place = response.id, query, view.reference
        if place not in self.gated:
            self.gated[place] = gated(response.text, self.survey.gates, query=query, reference=view.reference)
        gate = self.gated[place]
        if gate is None:
            return None
        return _worst(view, gate.gate, gate.reason)

    def _screened(self, when: When, response: Response) -> Verdict | None:
        """None if the question is to be asked, else the verdict that takes its place."""
        asked = list(self._verdicts_on(when.question, response))
        judged = [v for v in asked if v.status == "ok"]
        if any(v.status == "not_applicable" for v in asked):
            return _gated(when, f"{when.question} was itself not asked")
        if not judged:
            return _undecided(when, asked)
        values = [_measure(v, when) for v in judged]
        if any(value is None for value in values):
            return _undecided(when, asked)
        value = _reduce([v for v in values if v is not None], when)
        if _passes(value, when):
            return None
        return _gated(when, f"{when.question} is {value:g}, and {when.op} {when.threshold:g} is asked for")

    def _verdicts_on(self, question: str, response: Response) -> Iterable[Verdict]:
        """The verdicts on a question about a response; one on an unordered pair is seen from the side of each."""
        for verdict in (*self.verdicts, *self.work.settled):
            if verdict.question == question:
                if verdict.about == response.id:
                    yield verdict
                elif question in self.mirrored and response.id in verdict.responses:
                    score = None if verdict.score is None else 1.0 - verdict.score
                    yield verdict.model_copy(update={"score": score, "native": None})

    def _without_variants(self, question: Question, response: Response) -> Verdict:
        """The verdict where a response gave nothing to ask about: it gains nothing by that."""
        told = self.material[response.id][question.of].note or f"material {question.of!r} holds no variant to ask about"
        return _worst(self.survey.views[question.view], NO_VARIANT, told)

    def _missing(self, response: Response, needs: Iterable[str]) -> Failure | None:
        for name in needs:
            one = self.material[response.id].get(name)
            failure = NOT_DERIVED if one is None else one.failure
            if failure is not None:
                kind = "no-model" if failure.kind == "no-model" else "material"
                message = f"material {name!r} is missing: {failure.message}"
                return Failure(cause=failure.cause, kind=kind, message=message)
        return None

    def _with_data(self, shown: Response, owner: Response, needs: Collection[str]) -> Response:
        """What is shown, with the data that was derived of the submitted response where that is needed."""
        if DATA not in needs or shown.data is not None:
            return shown
        data = self.material[owner.id][DATA].data
        return shown.model_copy(update={"data": deepcopy(data)})

    def _needed(self, response: Response, needs: Iterable[str]) -> Materials:
        return {name: self.material[response.id][name] for name in needs}


def rests_on(question: Question) -> tuple[str, ...]:
    """The names of the material that a question rests on."""
    return question.needs if question.of == SUBMITTED else (*question.needs, question.of)


def identity_of(question: Question, audience: Audience, member: str | None) -> dict[str, Any]:
    """Who was asked what, as every verdict on a question says it."""
    return {
        "question": question.id,
        "evaluator": question.evaluator,
        "version": question.version,
        "layer": question.layer,
        "subject": question.subject,
        "stakeholder": member if audience == "stakeholder" else None,
        "reviewer": member if audience == "reviewer" else None,
    }


Stamp = Callable[[Verdict, str, tuple[str, ...], int], Verdict]


def stamps(question: Question, view: TaskView) -> Stamp:
    """A function that puts the question's identity on a verdict: `(verdict, about, responses as shown, sample)`."""
    identity = identity_of(question, view.audience, view.member)

    def stamp(verdict: Verdict, about: str, responses: tuple[str, ...], sample: int) -> Verdict:
        return verdict.model_copy(update={**identity, "about": about, "responses": responses, "sample": sample})

    return stamp


def _worst(view: TaskView, gate: str, reason: str) -> Verdict:
    """What takes the place of a judgement that the response itself stopped: all that is bad in it, and nothing good."""
    bad = isinstance(view.about, Criterion) and view.about.weight < 0
    return Verdict(score=float(bad), met=bad, gated_by=gate, reason=reason)


def _alone(others: Sequence[Verdict]) -> Verdict:
    """The only response left has nothing to be compared with. Where others went missing, that is our trouble."""
    missing = next((other for other in others if other.status not in ("not_applicable", "ok")), None)
    if missing is None:
        return Verdict(status="not_applicable", gated_by=GROUP_OF_ONE, reason="there is nothing to compare with")
    return Verdict.failed("group", "there is nothing left to compare with: the others could not be asked about")


def _gated(when: When, reason: str) -> Verdict:
    return Verdict(status="not_applicable", gated_by=when.question, reason=reason)


def _undecided(when: When, asked: Sequence[Verdict]) -> Verdict:
    """A question whose gate was not judged is not judged either, for the gate's own cause: never left out unseen."""
    failed = [v.failure for v in asked if v.failure is not None]
    reason = f"{when.question}, which it depends on, was not judged"
    if any(v.status == "failed" for v in asked) or not asked:
        cause = failed[0].cause if failed else "infrastructure"
        failure = Failure(cause=cause, kind="gate", message=reason)
        return Verdict(status="failed", gated_by=when.question, failure=failure, reason=reason)
    return Verdict(status="abstained", gated_by=when.question, failure=failed[0] if failed else None, reason=reason)


def _measure(verdict: Verdict, when: When) -> float | None:
    value = verdict.score if when.on == "score" else verdict.native
    return None if value is None or isinstance(value, str) else float(value)


def _reduce(values: Sequence[float], when: When) -> float:
    if when.reduce == "mean":
        return float(aggregation.total(sorted(values))) / len(values)
    if when.reduce == "median":
        ordered = sorted(values)
        return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0
    return min(values) if when.reduce == "min" else max(values)


_PASSES: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda value, threshold: value >= threshold,
    ">": lambda value, threshold: value > threshold,
    "<=": lambda value, threshold: value <= threshold,
    "<": lambda value, threshold: value < threshold,
}


def _passes(value: float, when: When) -> bool:
    return _PASSES[when.op](value, when.threshold)
