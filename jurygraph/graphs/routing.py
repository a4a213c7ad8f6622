"""Routing: the next work of a group, as a pure function of the plan, the group, and the verdicts so far.

A wave of the survey becomes judgements for evaluators and derivations for derivers, by branch. Where staged screening
(`when`), a failed deriver or a group of one excludes a question for a response, a verdict is settled here without a
judgement. Every verdict, settled or answered, gets the identity of its question from `make_stamp`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, combinations, permutations, product
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from jurygraph import aggregation
from jurygraph.agents.roles import MaterialByName
from jurygraph.safety.gates import TextGateResult, find_stopping_gate
from jurygraph.schema import (
    Call,
    Condition,
    Criterion,
    Derivation,
    Failure,
    Lookup,
    Material,
    Question,
    RecordedVerdict,
    Response,
    Survey,
    TaskView,
    Verdict,
)
from jurygraph.schema.conversation import VisiblePart
from jurygraph.schema.plan import (
    Escalation,
    get_question_identity_fields,
)
from jurygraph.schema.task import query_to_text
from jurygraph.schema.verdict import (
    EMPTY_TURN_GATE,
    GATED_LAYERS,
    GROUP_OF_ONE_GATE_NAME,
    MISSING_FIELD_GATE,
    NO_TURN_GATE,
    NO_VARIANT_GATE,
    VerdictKey,
)

DATA_MATERIAL_NAME = "data"
"""Material of this name is used as the data of a response that has none, where an evaluator needs data."""
NOT_DERIVED_FAILURE = Failure(cause="infrastructure", kind="material", message="it was not derived")


@dataclass(frozen=True, slots=True)
class _ResponseUpToTurn(Sequence[Response]):
    """A response up to the turn that a question is about, alone in a sequence; it is made when it is read.

    Of all turns at once they would take the square of a conversation's length.
    """

    response: Response
    question: Question
    turn: int

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        question = self.question
        view = self.response.view(question.shown_part, self.turn, question.names_turn)
        return (view,)[index]


@dataclass(frozen=True, slots=True)
class DueJudgement:
    """A judgement to make: responses, their material, and the ids of submitted responses that it is about.

    `judge` is the name of the model that answers; None for the config's `model`, or for an evaluator without one.
    `turn` is the index of the message that it is about, the last one that is shown.
    """

    question: Question
    responses: tuple[Response, ...]
    material: tuple[MaterialByName, ...]
    about: tuple[str, ...]
    sample: int
    judge: str | None = None
    turn: int | None = None

    @property
    def shown_responses(self) -> Sequence[Response]:
        """Return the responses as the question shows them."""
        if self.turn is not None:
            return _ResponseUpToTurn(self.responses[0], self.question, self.turn)
        return tuple(response.view(self.question.shown_part) for response in self.responses)

    @property
    def shown_response_ids(self) -> tuple[str, ...]:
        """Return the ids of the responses shown; a turn is a part of the response that was submitted."""
        return self.about if self.turn is not None else tuple(r.id for r in self.responses)

    @property
    def keys(self) -> list[VerdictKey]:
        """Return the keys of its verdicts, one for each response that it is about."""
        return [
            VerdictKey(
                self.question.id, about, self.shown_response_ids, self.sample, self.judge, self.turn
            )
            for about in self.about
        ]


class _ResponseCombination(NamedTuple):
    """Responses shown together, the owners of their material, the ids that verdicts are about, and the turn shown."""

    shown_responses: tuple[Response, ...]
    owner_responses: tuple[Response, ...]
    about: tuple[str, ...]
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class DueDerivation:
    derivation: Derivation
    response: Response
    material: MaterialByName


_CONDITION_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": ge,
    ">": gt,
    "<=": le,
    "<": lt,
}


@dataclass(frozen=True, slots=True)
class ReusedResults:
    """Reusable results of a group from earlier scoring: verdicts, material by (name, response id), calls by id, and
    those of tools.

    Only verdicts on responses that were shown are reused: those settled by a gate or a condition are settled again,
    without a request; `settled` has their number by question. A verdict or material that depends on other material is
    reused only if that material is still the same. `stopped_as_empty` are verdicts of a recorded run that an empty
    message settled: an empty last one once stopped all that saw the conversation, and stops these again.
    """

    verdicts: Mapping[VerdictKey, RecordedVerdict]
    material: Mapping[tuple[str, str], Material]
    calls: Mapping[str, Call] = field(default_factory=dict)
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    settled: Mapping[str, int] = field(default_factory=dict)
    stopped_as_empty: Collection[VerdictKey] = ()


NO_REUSED_RESULTS = ReusedResults({}, {})


@dataclass(frozen=True, slots=True)
class WaveWork:
    """The work of a wave: judgements by branch, derivations, and the verdicts and material for which nothing
    is called: reused ones, and those that a gate, screening or missing material decides."""

    judgements: dict[str, list[DueJudgement]] = field(default_factory=dict)
    derivations: list[DueDerivation] = field(default_factory=list)
    settled_verdicts: list[RecordedVerdict] = field(default_factory=list)
    material: list[Material] = field(default_factory=list)

    @property
    def due_branch_names(self) -> list[str]:
        """Return the nodes that have work."""
        return (["derive"] if self.derivations else []) + sorted(self.judgements)


def sort_responses_by_content(responses: Iterable[Response]) -> tuple[Response, ...]:
    """Return the group ordered by content: digest of text and data, then id. Labels and agents are removed."""
    return tuple(
        sorted((r.without_metadata() for r in responses), key=lambda r: (r.content_digest, r.id))
    )


def next_work(
    survey: Survey,
    wave_number: int,
    responses: Sequence[Response],
    material: Sequence[Material],
    verdicts: Sequence[RecordedVerdict],
    reused_results: ReusedResults = NO_REUSED_RESULTS,
) -> tuple[WaveWork, int]:
    """Return the work of the first wave from `wave_number` on that has any, and the number of the wave after it.

    What earlier waves left undecided, for another judge to answer, comes first.
    """
    by_name: dict[str, dict[str, Material]] = defaultdict(dict)
    for item in material:
        by_name[item.response][item.name] = item
    work_collector = _WorkCollector(survey, responses, verdicts, reused_results, by_name)
    work_collector.add_escalations(wave_number)
    while wave_number < len(survey.waves) and not work_collector.work.due_branch_names:
        work_collector.add(wave_number)
        wave_number += 1
        work_collector.add_escalations(wave_number)
    return work_collector.work, wave_number


def mark_superseded(
    survey: Survey, verdicts: Sequence[RecordedVerdict]
) -> Sequence[RecordedVerdict]:
    """Return the verdicts; those of judges whose question another one got later are marked."""
    if not survey.escalating_questions:
        return verdicts
    last = {
        question.id: question.escalate.then
        for question in survey.escalating_questions
        if question.escalate
    }
    # the last judge replaces every sample of all first ones
    last_judge_units = {
        verdict.key.judged
        for verdict in verdicts
        if verdict.judge and verdict.judge == last.get(verdict.question)
    }
    marked_verdicts = []
    for verdict in verdicts:
        if verdict.key.judged in last_judge_units and verdict.judge != last[verdict.question]:
            verdict = verdict.model_copy(update={"superseded": True})
        marked_verdicts.append(verdict)
    return marked_verdicts


_GatedText = tuple[str, str, str | None, VisiblePart, int | None, bool]
"""What gates read: the id of a response, the query and the reference, the part that is shown up to a turn, and whether
its last message counts alone."""


@dataclass(slots=True)
class _WorkCollector:
    """Collects work; later waves see what earlier ones settled. `material` is by response id and name."""

    survey: Survey
    responses: Sequence[Response]
    verdicts: Sequence[RecordedVerdict]
    reused_results: ReusedResults
    material: dict[str, dict[str, Material]]
    work: WaveWork = field(default_factory=WaveWork)
    gated: dict[_GatedText, TextGateResult | None] = field(default_factory=dict)
    answered: dict[str, list[RecordedVerdict]] = field(default_factory=dict)
    """The verdicts of the waves before, by question, without superseded ones."""

    def add(self, wave_number: int) -> None:
        names = set(self.survey.waves[wave_number].materials)
        ids = set(self.survey.waves[wave_number].questions)
        self.answered = defaultdict(list)
        for verdict in mark_superseded(self.survey, (*self.verdicts, *self.work.settled_verdicts)):
            if not verdict.superseded:
                self.answered[verdict.question].append(verdict)
        for derivation in self.survey.derivations:
            if derivation.gives in names:
                self._settle_or_request_derivation(derivation)
        for question in self.survey.questions:
            if question.id in ids:
                self._route_question(question)

    def _settle_or_request_derivation(self, derivation: Derivation) -> None:
        for response in self.responses:
            failure = self._missing_material_failure(response, derivation.needs)
            settled_material = self.reused_results.material.get((derivation.gives, response.id))
            if derivation.gives == DATA_MATERIAL_NAME and response.data is not None:
                settled_material = Material(
                    name=DATA_MATERIAL_NAME, response=response.id, data=response.data
                )
            elif failure is not None:
                settled_material = Material(
                    name=derivation.gives, response=response.id, status="failed", failure=failure
                )
            elif settled_material is None or not self._is_material_unchanged(
                derivation.needs, [response.id]
            ):
                response_with_data = self._with_derived_data(response, response, derivation.needs)
                view = response_with_data.view("last_reply")
                material = self._select_material(response, derivation.needs)
                self.work.derivations.append(DueDerivation(derivation, view, material))
                continue
            self.work.material.append(settled_material)
            self.material[response.id][derivation.gives] = settled_material

    def _route_question(self, question: Question) -> None:
        stamp = make_stamp(question, self.survey.views[question.view])
        verdict_by_unit = {}
        for response in self.responses:
            for turn in _question_turns(question, response):
                verdict = self._exclusion_verdict(question, response, turn)
                verdict_by_unit[response.id, turn] = verdict
        unsettled_units = [unit for unit, verdict in verdict_by_unit.items() if verdict is None]
        if question.scope in ("pair", "group") and len(unsettled_units) == 1:
            others = filter(None, verdict_by_unit.values())
            verdict_by_unit[unsettled_units.pop()] = _verdict_without_peers(others)
        for (name, turn), verdict in verdict_by_unit.items():
            if verdict is not None:
                key = VerdictKey(question.id, name, (), 0, turn=turn)
                self.work.settled_verdicts.append(stamp(verdict, key))
        unsettled_ids = {name for name, _ in unsettled_units}
        unsettled_responses = [r for r in self.responses if r.id in unsettled_ids]
        unsettled_judgements = []
        for response_combination in self._list_combinations(question, unsettled_responses):
            unit = response_combination.about[0], response_combination.turn
            if verdict_by_unit[unit] is not None:
                continue
            unsettled_judgements += self._list_judgements(
                question, response_combination, question.first_judges
            )
        self._add_judgements(question, unsettled_judgements)

    def _list_judgements(
        self,
        question: Question,
        response_combination: _ResponseCombination,
        judges: Iterable[str | None],
    ) -> list[DueJudgement]:
        """Return the judgements of some judges about a combination, one for each sample."""
        shown_responses, owner_responses, about, turn = response_combination
        judgements = []
        for judge, sample in product(judges, range(question.samples)):
            responses = tuple(
                self._with_derived_data(response, owner, question.needs)
                for response, owner in zip(shown_responses, owner_responses, strict=True)
            )
            material = tuple(self._select_material(r, question.needs) for r in owner_responses)
            judgements.append(
                DueJudgement(question, responses, material, about, sample, judge, turn)
            )
        return judgements

    def _add_judgements(
        self, question: Question, unsettled_judgements: Sequence[DueJudgement]
    ) -> None:
        """Add the judgements of a question whose verdicts cannot be reused, and settle the others."""
        if self.reused_results.verdicts:
            stamp = make_stamp(question, self.survey.views[question.view])
            unsettled_judgements = [
                item for item in unsettled_judgements if not self._reuse_verdicts(item, stamp)
            ]
        if unsettled_judgements:
            self.work.judgements.setdefault(question.branch, []).extend(unsettled_judgements)

    def add_escalations(self, wave_number: int) -> None:
        """Add the judgements of the last judge of the questions before a wave, where the first ones are not enough."""
        if not self.survey.escalating_questions:
            return
        verdicts = {
            verdict.key: verdict for verdict in (*self.verdicts, *self.work.settled_verdicts)
        }
        earlier_waves = self.survey.waves[:wave_number]
        ids = set(chain.from_iterable(earlier.questions for earlier in earlier_waves))
        for question in self.survey.escalating_questions:
            if question.id in ids:
                self._escalate_question(question, verdicts)

    def _escalate_question(
        self, question: Question, verdicts: Mapping[VerdictKey, RecordedVerdict]
    ) -> None:
        escalation_rule = question.escalate
        assert escalation_rule is not None  # one of `Survey.escalating_questions`
        answered_response_ids: set[str] = set()
        for key in verdicts:
            if key.question == question.id and key.judge is not None:
                answered_response_ids.update((key.about, *key.responses))
        unsettled_responses = [
            response for response in self.responses if response.id in answered_response_ids
        ]
        unsettled_judgements = []
        for response_combination in self._list_combinations(question, unsettled_responses):
            first_judgements = self._list_judgements(
                question, response_combination, escalation_rule.first
            )
            keys = list(chain.from_iterable(judgement.keys for judgement in first_judgements))
            escalated_judgements = self._list_judgements(
                question, response_combination, [escalation_rule.then]
            )
            is_already_escalated = escalated_judgements[0].keys[0] in verdicts
            if is_already_escalated or not all(key in verdicts for key in keys):
                continue
            if should_escalate(escalation_rule, [verdicts[key] for key in keys]):
                unsettled_judgements += escalated_judgements
        self._add_judgements(question, unsettled_judgements)

    def _reuse_verdicts(self, judgement: DueJudgement, stamp: "VerdictStamp") -> bool:
        """Add a judgement's reused verdicts, with the question's present identity; return False if one is missing."""
        question = judgement.question
        keys = judgement.keys
        material_response_ids = judgement.about if question.is_about_variants else keys[0].responses
        reused_verdicts = self.reused_results.verdicts
        if not all(key in reused_verdicts for key in keys):
            return False
        if not self._is_material_unchanged(
            required_material_names(question), material_response_ids
        ):
            return False
        self.work.settled_verdicts.extend(stamp(reused_verdicts[key], key) for key in keys)
        return True

    def _is_material_unchanged(self, names: Iterable[str], responses: Sequence[str]) -> bool:
        """Return whether the material of these names about these responses (ids) equals the reused material."""
        reused_material = self.reused_results.material
        for name in names:
            for response in responses:
                if self.material[response][name] != reused_material.get((name, response)):
                    return False
        return True

    def _list_combinations(
        self, question: Question, unsettled_responses: Sequence[Response]
    ) -> Iterator[_ResponseCombination]:
        """Yield what is shown together for a question."""
        group = tuple(unsettled_responses)
        if question.is_about_variants:
            for response in group:
                for variant in self.material[response.id][question.material].variants:
                    yield _ResponseCombination((variant.response,), (response,), (response.id,))
        elif question.scope in ("response", "turn"):
            for response in group:
                for turn in _question_turns(question, response):
                    yield _ResponseCombination((response,), (response,), (response.id,), turn)
        elif question.scope == "pair":
            list_pairs = combinations if question.is_about_unordered_pairs else permutations
            for pair in list_pairs(group, 2):
                yield _ResponseCombination(pair, pair, (pair[0].id,))
        elif group:
            yield _ResponseCombination(group, group, tuple(response.id for response in group))

    def _exclusion_verdict(
        self, question: Question, response: Response, turn: int | None
    ) -> Verdict | None:
        """Return None if the question applies to this response, else the verdict that replaces its judgement."""
        if question.missing is not None:
            return _not_applicable(MISSING_FIELD_GATE, f"the task has no {question.missing}")
        if question.scope == "turn" and turn is None:
            reason = "the assistant says nothing in it, so that it has no turn to ask about"
            return _not_applicable(NO_TURN_GATE, reason)
        gate_verdict = self._gate_verdict(question, response, turn)
        if gate_verdict is not None:
            return gate_verdict
        failure = self._missing_material_failure(response, required_material_names(question))
        if failure is not None:
            status = "abstained" if failure.kind == "no-model" else "failed"
            return Verdict(status=status, failure=failure, reason=failure.message)
        if question.is_about_variants:
            material = self.material[response.id][question.material]
            if not material.variants:
                reason = f"material {question.material!r} holds no variant to ask about"
                return _not_applicable(NO_VARIANT_GATE, material.note or reason)
        if question.when is None:
            return None
        return self._screening_verdict(question.when, response, turn)

    def _gate_verdict(
        self, question: Question, response: Response, turn: int | None
    ) -> RecordedVerdict | None:
        """Return the verdict of a gate that stops the response: no merit and all faults are found in it, or neither in
        an empty turn among others.

        It comes before screening and material, so that a response cannot avoid such a question by lacking something.
        It reads what the evaluator would see, up to the turn: a hostile message stops its turn and the later ones,
        which show it, and not the earlier ones.
        """
        if question.layer not in GATED_LAYERS or not self.survey.gates:
            return None
        view = self.survey.views[question.view]
        key = VerdictKey(question.id, response.id, (), 0, turn=turn)
        was_stopped = key in self.reused_results.stopped_as_empty
        find_gate = partial(self._find_stopping_gate, view, response)
        result = find_gate(question.shown_part, turn, turn is not None or was_stopped)
        if result is None:
            return None
        is_empty_turn = result.gate == "empty-response" and turn is not None and not was_stopped
        # Who never says or does anything is stopped in every turn.
        if is_empty_turn and find_gate("without_reasoning", None, False) != result:
            return RecordedVerdict(
                score=0.0, met=False, gated_by=EMPTY_TURN_GATE, reason=result.reason
            )
        is_penalty = _is_penalty_criterion(view)
        return RecordedVerdict(
            score=float(is_penalty), met=is_penalty, gated_by=result.gate, reason=result.reason
        )

    def _find_stopping_gate(
        self,
        view: TaskView,
        response: Response,
        sees: VisiblePart,
        turn: int | None,
        last_message_counts_alone: bool,
    ) -> TextGateResult | None:
        query = query_to_text(view.query)
        key = response.id, query, view.reference, sees, turn, last_message_counts_alone
        if key not in self.gated:
            self.gated[key] = find_stopping_gate(
                response.view(sees, turn).text,
                self.survey.gates,
                query=query,
                reference=view.reference,
                last_message_counts_alone=last_message_counts_alone,
            )
        return self.gated[key]

    def _screening_verdict(
        self, when: Condition, response: Response, turn: int | None
    ) -> RecordedVerdict | None:
        """Return None if the question is to be judged, else the verdict that replaces its judgement.

        For a turn, verdicts on other turns do not count.
        """
        verdicts = [
            verdict
            for verdict in self._verdicts_on_question(when.question, response)
            if turn is None or verdict.turn in (None, turn)
        ]
        applicable_verdicts = [
            verdict for verdict in verdicts if verdict.status != "not_applicable"
        ]
        if verdicts and not applicable_verdicts:
            was_screening_skipped = any(verdict.gated_by is not None for verdict in verdicts)
            state = "was itself not asked" if was_screening_skipped else "is itself not applicable"
            return _not_applicable(when.question, f"{when.question} {state}")
        values = [
            verdict.score if when.on == "score" else verdict.native
            for verdict in applicable_verdicts
            if verdict.status == "ok" and not verdict.is_worst_case
        ]
        numbers = [float(value) for value in values if isinstance(value, int | float)]
        if not numbers or len(numbers) < len(values):
            return _unjudged_screening_verdict(when, applicable_verdicts)
        reduced_score = _reduce_scores(numbers, when)
        if _CONDITION_OPERATORS[when.op](reduced_score, when.threshold):
            return None
        reason = (
            f"{when.question} is {reduced_score:g}, and {when.op} {when.threshold:g} is asked for"
        )
        return _not_applicable(when.question, reason)

    def _verdicts_on_question(self, question: str, response: Response) -> Iterable[RecordedVerdict]:
        """Return the verdicts on a question about a response, mirrored for the second response of an unordered pair."""
        is_mirrored = any(
            candidate.id == question and candidate.is_about_unordered_pairs
            for candidate in self.survey.questions
        )
        for verdict in self.answered.get(question, ()):
            if verdict.about == response.id:
                yield verdict
            elif is_mirrored and response.id in verdict.responses:
                score = None if verdict.score is None else 1.0 - verdict.score
                yield verdict.model_copy(update={"score": score, "native": None})

    def _missing_material_failure(self, response: Response, needs: Iterable[str]) -> Failure | None:
        for name in needs:
            material = self.material[response.id].get(name)
            failure = NOT_DERIVED_FAILURE if material is None else material.failure
            if failure is not None:
                kind = "no-model" if failure.kind == "no-model" else "material"
                message = f"material {name!r} is missing: {failure.message}"
                return Failure(cause=failure.cause, kind=kind, message=message)
        return None

    def _with_derived_data(
        self, shown_response: Response, owner: Response, needs: Collection[str]
    ) -> Response:
        """Return the shown response with the data derived from the submitted one, where the question needs it."""
        if DATA_MATERIAL_NAME not in needs or shown_response.data is not None:
            return shown_response
        data = self.material[owner.id][DATA_MATERIAL_NAME].data
        return shown_response.model_copy(update={"data": deepcopy(data)})

    def _select_material(self, response: Response, needs: Iterable[str]) -> MaterialByName:
        return {name: self.material[response.id][name] for name in needs}


def _question_turns(question: Question, response: Response) -> Sequence[int | None]:
    """Return the turns of a response that a question is about; None stands for the whole response."""
    turns = response.assistant_turn_indices if question.scope == "turn" else ()
    return turns or (None,)


def required_material_names(question: Question) -> tuple[str, ...]:
    return (*question.needs, question.material) if question.is_about_variants else question.needs


VerdictStamp = Callable[[Verdict, VerdictKey], RecordedVerdict]
_EMPTY_VERDICT = RecordedVerdict.model_construct()


def make_stamp(question: Question, view: TaskView) -> VerdictStamp:
    """Return a function that turns a verdict into a recorded one, with the key that it gets in its group.

    It adds the question's identity, which replaces that of a verdict reused from another run. For a penalty, the worst
    case is that all of it is found.
    """
    identity = get_question_identity_fields(question, view.audience, view.member)

    def stamp(verdict: Verdict, key: VerdictKey) -> RecordedVerdict:
        fields = {**key._asdict(), "superseded": False}
        if verdict.is_worst_case and _is_penalty_criterion(view):
            fields |= {"score": 1.0, "met": True}
        # without validation: the verdict was validated
        return _EMPTY_VERDICT.model_copy(update={**vars(verdict), **identity, **fields})

    return stamp


def should_escalate(escalation_rule: Escalation, verdicts: Sequence[RecordedVerdict]) -> bool:
    """Return whether the first judges' verdicts on the same leave a question for the last one."""
    for verdict in verdicts:
        if verdict.status in ("failed", "abstained") or verdict.is_worst_case:
            return True
    if escalation_rule.when == "unsure":
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        return any(abs(score - 0.5) <= escalation_rule.band for score in scores)
    votes = defaultdict(set)
    for verdict in verdicts:
        votes[verdict.about].add(verdict.met if verdict.is_binary_verdict else verdict.score)
    return any(len(found) > 1 for found in votes.values())


def _not_applicable(gate: str, reason: str) -> RecordedVerdict:
    """Return the verdict on a question that is not asked of a response, by what keeps it from that."""
    return RecordedVerdict(status="not_applicable", gated_by=gate, reason=reason)


def _is_penalty_criterion(view: TaskView) -> bool:
    return isinstance(view.about, Criterion) and view.about.weight < 0


def _verdict_without_peers(others: Iterable[Verdict]) -> Verdict:
    """Return the verdict for the only response left, which has none to be compared with: an infrastructure failure if
    other responses could not be judged."""
    if any(other.status not in ("not_applicable", "ok") for other in others):
        return Verdict.fail(
            "group", "there is nothing left to compare with: the others could not be asked about"
        )
    return _not_applicable(GROUP_OF_ONE_GATE_NAME, "there is nothing to compare with")


def _unjudged_screening_verdict(when: Condition, verdicts: Sequence[Verdict]) -> RecordedVerdict:
    """Return an unjudged verdict with the cause of the unjudged screening question, so that this is not hidden."""
    failure = next((v.failure for v in verdicts if v.failure is not None), None)
    reason = f"{when.question}, which it depends on, was not judged"
    status = "abstained"
    if any(v.status == "failed" for v in verdicts) or not verdicts:
        cause = "infrastructure" if failure is None else failure.cause
        failure = Failure(cause=cause, kind="gate", message=reason)
        status = "failed"
    return RecordedVerdict(status=status, failure=failure, gated_by=when.question, reason=reason)


def _reduce_scores(values: Sequence[float], when: Condition) -> float:
    sorted_values = sorted(values)
    count = len(values)
    if when.reduce == "mean":
        return float(aggregation.total(sorted_values)) / count
    if when.reduce == "median":
        return (sorted_values[(count - 1) // 2] + sorted_values[count // 2]) / 2.0
    return min(values) if when.reduce == "min" else max(values)
