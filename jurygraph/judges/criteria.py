"""Judges of single items: rubric criteria (GEAR's local event scores p_i), preferences (DecompR's û_i), a checklist.

An item is met or not, with a probability; has a value on a scale; or has parts that are each met or not, for partial
credit (GEAR, D.2). `null` in place of the decision says that the judge cannot tell: then there is no measurement.
Preferences are a stakeholder's needs and wishes that no check decides, judged in isolation. The checklist is the same
for every stakeholder: quality beyond all of these. Subclasses of `JudgeEvaluator` ask about items of their own.
"""

import json
import math
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    create_model,
    field_validator,
    model_validator,
)

from jurygraph.agents.functions import declares_version, source_version
from jurygraph.agents.roles import (
    CANNOT_TELL_REASON,
    BatchEvaluator,
    ClaimWithQuotes,
    EvaluatorInput,
    Finding,
    JudgedValue,
    QuotedSourceKind,
    QuoteTexts,
    ReasonText,
    request_finding_verdicts,
    require_client,
    share_client,
    shared_prompt_variables,
)
from jurygraph.concurrency import gather_all, split_into_batches
from jurygraph.display import ShortRepr
from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import Problem
from jurygraph.models.judge_client import JudgeClient, probability_of_true
from jurygraph.models.request import Reply
from jurygraph.prompts import Prompt, load_prompt
from jurygraph.schema import (
    Audience,
    Criterion,
    FrozenModel,
    Layer,
    Question,
    Stakeholder,
    TaskView,
    Verdict,
)
from jurygraph.schema.frozen_model import (
    Id,
    ParamsModel,
    PositiveNumber,
    ReadOnlyFields,
    StrictBool,
    UnitInterval,
    require_argument_type,
)
from jurygraph.schema.task import require_different_criteria
from jurygraph.schema.verdict import MET_THRESHOLD

T = TypeVar("T")

MAX_ITEMS_PER_CALL = 4
"""The largest number of items judged in one call (GEAR, D.1). More would save tokens but blur the single judgements."""
ReplyVerbosity = Literal["full", "compact"]
NonEmptySentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?")
_WEIGHTS_HINT = "give a tuple with a number above 0 for each part"


REASON_AND_QUOTES_FIELDS: Any = {"reason": (ReasonText, ...), "quotes": (QuoteTexts, ...)}
"""The first fields of an answer that is not compact."""


# The next models have no docstrings because these would be part of the JSON schema that a model is given. Class names
# are visible too, in messages about missing fields.
class BinaryAnswer(FrozenModel):
    # on one item that is met or not; _add_reason adds the reason and quotations
    met: StrictBool | None
    probability: UnitInterval | None

    @model_validator(mode="after")
    def _require_probability(self) -> Self:
        """Require a number with a decision; with a null, by which the judge cannot tell, it says nothing.

        Which number fits the decision depends on the log probabilities, too: see `Binary`.
        """
        if self.met is None:
            return self.model_copy(update={"probability": None})
        if self.probability is None:
            raise ValueError(
                f"met is {json.dumps(self.met)} and probability null: give null for both if you cannot tell"
            )
        return self


class PartAnswer(FrozenModel):
    quotes: QuoteTexts
    met: StrictBool | None


class BarePartAnswer(FrozenModel):
    met: StrictBool | None


class LikelyPartAnswer(FrozenModel):
    quotes: QuoteTexts
    probability: UnitInterval | None


class BareLikelyPartAnswer(FrozenModel):
    probability: UnitInterval | None


class AnswerForm(ShortRepr, ABC):
    """Base class of the forms in which one item is judged. `compact` replies hold neither reasons nor quotations."""

    @abstractmethod
    def reply_model(self, compact: bool) -> type[FrozenModel]:
        """Return the model of the answer to one item."""

    @abstractmethod
    def find(self, answer: Any, name: str, reply: Reply | None) -> Finding:
        """Return the finding of an answer, in the field `name` of a reply; its positive parts need a quotation."""

    def find_reply_problem(self, answer: Any, name: str, reply: Reply) -> Problem | None:
        """Return what breaks the form of an answer that fits its model, such as a contradiction; None by default.

        The reply is then malformed as a whole: it is sent back once, and never read by `find`.
        """
        return None


@dataclass(frozen=True, slots=True, repr=False)
class Binary(AnswerForm):
    """Met or not, as the judge decides. The score is P(met), on the decision's side of 0.5.

    P(met) comes from the log probabilities of the token of `met` if they agree with it, whatever number comes with it;
    else from that number. It is the probability given that the judge can tell: what a token leaves to `null` is no part
    of it. A number on the other side of 0.5 breaks the form: whichever of the two was taken, the judge would be
    credited with what it did not say. A number of 0.5 is on no side, and leaves it to the decision: met at 0.5, or not
    met with a score of 0. So something unmet, which needs no quotation, stays below 0.5.
    """

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return BinaryAnswer if compact else _add_reason_fields(BinaryAnswer)

    def find(self, answer: Any, name: str, reply: Reply | None) -> Finding:
        if answer.met is None:
            return build_answer_finding(name, answer, None)
        score = _p_met_by_tokens(answer, name, reply)
        native = "P(met) from log probabilities"
        if score is None and not answer.met and answer.probability == MET_THRESHOLD:
            score = 0.0
            native = "not met; P(met) 0.5 as stated"
        elif score is None:
            score = answer.probability
            native = "P(met) as stated"
        judged_value = JudgedValue(score, answer.met, native)
        return build_answer_finding(name, answer, judged_value, "met" if answer.met else "")

    def find_reply_problem(self, answer: Any, name: str, reply: Reply) -> Problem | None:
        probability = answer.probability
        if answer.met is None or probability == MET_THRESHOLD:
            return None
        if (probability > MET_THRESHOLD) == answer.met:
            return None
        if _p_met_by_tokens(answer, name, reply) is not None:
            return None
        return Problem(
            (name, "probability"),
            f"is {probability:g} and met {json.dumps(answer.met)}, which contradict each other",
            "decide anew, and give 0.5 or more exactly where met is true",
        )


def _p_met_by_tokens(answer: BinaryAnswer, name: str, reply: Reply | None) -> float | None:
    """Return P(met) from the log probabilities of a reply; None if there are none, or if they contradict the decision.

    As they do where words are drawn by chance: then they are not about the answer that was given.
    """
    if reply is None:
        return None
    p_met = probability_of_true(reply, (name, "met"))
    if p_met is None or (p_met >= MET_THRESHOLD) != answer.met:
        return None
    return p_met


@dataclass(frozen=True, slots=True, repr=False)
class Scale(AnswerForm):
    """A value from `low` (not at all) to `high` (fully), scored as its relative position in [0, 1]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            require_argument_type(
                f"Scale.{name}", getattr(self, name), int | float, "give a number"
            )
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError(
                f"Scale({self.low}, {self.high}): does not rise; give the lower end first"
            )

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _scale_answer_model(self.low, self.high, compact)

    def find(self, answer: Any, name: str, reply: Reply | None) -> Finding:
        if answer.value is None:
            return build_answer_finding(name, answer, None)
        score = (answer.value - self.low) / (self.high - self.low)
        judged_value = JudgedValue(score, native=answer.value, scale=(self.low, self.high))
        statement = f"a value of {answer.value:g}" if answer.value > self.low else ""
        return build_answer_finding(name, answer, judged_value, statement)


def build_answer_finding(
    name: str, answer: Any, judged_value: JudgedValue | None, statement: str = ""
) -> Finding:
    """Return the finding of an answer with a reason and quotations of its own; the statement is its only claim."""
    quotes = getattr(answer, "quotes", ())
    claims = [ClaimWithQuotes(statement, quotes)] if statement else []
    return Finding(name, judged_value, getattr(answer, "reason", ""), quotes, claims)


@dataclass(frozen=True, slots=True, repr=False)
class PartialCredit(AnswerForm):
    """Each part is met or not, and adds its weight as partial credit. If one is unknown, so is the item.

    With `by_probability`, a part adds its weight times the probability that it is met, as the authors' scripts of GEAR
    do; it is claimed, and needs a quotation, from 0.5.
    """

    weights: tuple[float, ...]
    by_probability: bool = False

    def __post_init__(self) -> None:
        require_argument_type("PartialCredit.weights", self.weights, list | tuple, _WEIGHTS_HINT)
        for index, weight in enumerate(self.weights):
            require_argument_type(
                f"PartialCredit.weights[{index}]", weight, int | float, _WEIGHTS_HINT
            )
        are_weights_positive = all(0 < weight < math.inf for weight in self.weights)
        if not self.weights or not are_weights_positive:
            raise InputError(f"PartialCredit.weights: are {list(self.weights)}; {_WEIGHTS_HINT}")

    @property
    def names(self) -> list[str]:
        return [f"part_{number}" for number in range(1, len(self.weights) + 1)]

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _parts_answer_model(tuple(self.names), compact, self.by_probability)

    def find(self, answer: Any, name: str, reply: Reply | None) -> Finding:
        reason = getattr(answer, "reason", "")
        quotes: list[str] = []
        unjudged_parts = []
        claims = []
        part_credits = []
        for part, weight in zip(self.names, self.weights, strict=True):
            part_answer = getattr(answer, part)
            part_quotes = getattr(part_answer, "quotes", ())
            quotes += part_quotes
            p_met = part_answer.probability if self.by_probability else part_answer.met
            if p_met is None:
                unjudged_parts.append(part)
                continue
            part_credits.append(weight * p_met)
            if p_met >= MET_THRESHOLD:
                claims.append(ClaimWithQuotes(f"{part} met", part_quotes))
        if unjudged_parts:
            why = f"{CANNOT_TELL_REASON} {', '.join(unjudged_parts)}"
            return Finding(name, None, f"{why}: {reason}" if reason else why, quotes)
        credit = math.fsum(part_credits)
        total = math.fsum(self.weights)
        # Probabilities decide nothing: whether the item is met, the rubric's `met_from` says.
        is_met = None if self.by_probability else len(claims) == len(self.weights)
        judged_value = JudgedValue(min(1.0, credit / total), is_met, credit, (0.0, total))
        return Finding(name, judged_value, reason, quotes, claims)


@lru_cache(maxsize=1024)
def _scale_answer_model(low: float, high: float, compact: bool) -> type[FrozenModel]:
    value = Annotated[float, Field(strict=True, ge=low, le=high, allow_inf_nan=False)] | None
    model_without_reason = create_model("ScaleAnswer", __base__=FrozenModel, value=(value, ...))
    return model_without_reason if compact else _add_reason_fields(model_without_reason)


@lru_cache(maxsize=64)
def _parts_answer_model(
    names: tuple[str, ...], compact: bool, uses_probabilities: bool
) -> type[FrozenModel]:
    part_answer_model: type[FrozenModel] = BarePartAnswer if compact else PartAnswer
    if uses_probabilities:
        part_answer_model = BareLikelyPartAnswer if compact else LikelyPartAnswer
    fields: Any = dict.fromkeys(names, (part_answer_model, ...))
    reason_field: Any = {} if compact else {"reason": (ReasonText, ...)}
    return create_model("PartsAnswer", __base__=FrozenModel, **reason_field, **fields)


@lru_cache(maxsize=1024)
def _add_reason_fields(model_without_reason: type[FrozenModel]) -> type[FrozenModel]:
    """Put the reason and the quotations before the judgement that follows from them."""
    model_with_reason = create_model("Reasoned", __base__=FrozenModel, **REASON_AND_QUOTES_FIELDS)
    return create_model(
        model_without_reason.__name__, __base__=(model_without_reason, model_with_reason)
    )


@dataclass(frozen=True, slots=True, repr=False)
class Item(ShortRepr):
    """One item to be judged: its text, its form, the texts of its parts, and the meanings of values of its scale.

    `needs` are the texts of which each has to be quoted for it.
    """

    text: str
    form: AnswerForm
    parts: tuple[str, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()
    needs: tuple[QuotedSourceKind, ...] = ("response",)

    def __post_init__(self) -> None:
        require_argument_type("Item.text", self.text, str, "give the text of a criterion")
        require_argument_type(
            "Item.form",
            self.form,
            AnswerForm,
            "give Binary(), Scale(1, 5) or PartialCredit((1, 2))",
        )


async def judge_items(
    client: JudgeClient,
    prompt: Prompt,
    items: Mapping[str, Item],
    variables: ReadOnlyFields,
    response: str,
    *,
    sample: int,
    compact: bool,
    passages: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Return a verdict on each item, from one call; the keys of `items` are their names in the reply and in the prompt.

    `passages` are other texts that may be quoted, by name (see `request_finding_verdicts`). `compact` replies hold
    neither reasons nor quotations; others need quotations as there.
    """
    answers = tuple((name, item.form.reply_model(compact)) for name, item in items.items())
    reply_model = _reply_model(answers)
    shown_items = tuple(_to_shown_item(name, item) for name, item in items.items())
    prompt_variables = {**variables, "items": shown_items, "compact": compact}
    request = client.request(prompt, reply_model, prompt_variables, sample=sample, logprobs=True)

    def find(value: Any, reply: Reply | None) -> dict[str, Finding]:
        found = {}
        for name, item in items.items():
            finding = item.form.find(getattr(value, name), name, reply)
            claims = [claim._replace(needs=item.needs) for claim in finding.claims]
            found[name] = finding._replace(claims=claims)
        return found

    def find_reply_problem(value: Any, reply: Reply) -> Problem | None:
        for name, item in items.items():
            problem = item.form.find_reply_problem(getattr(value, name), name, reply)
            if problem is not None:
                return problem
        return None

    verdicts = await request_finding_verdicts(
        client,
        request,
        reply_model,
        response,
        items,
        find,
        find_reply_problem=find_reply_problem,
        are_quotes_checked=not compact,
        passages=passages,
    )
    return list(verdicts.values())


@lru_cache(maxsize=1024)
def _reply_model(answers: tuple[tuple[str, type[FrozenModel]], ...]) -> type[FrozenModel]:
    """Return the model of the whole reply: one field for each item, with the answer on it."""
    answer_fields: Any = {name: (answer, ...) for name, answer in answers}
    return create_model("JudgeReply", __base__=FrozenModel, **answer_fields)


class PromptItem(dict[str, Any]):
    """An item as prompts show it, never changed: hashable, so that a question is rendered once for many responses."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(tuple(self.values()))


def _to_shown_item(name: str, item: Item) -> PromptItem:
    form = item.form
    parts: Iterable[tuple[str, str]] = ()
    if isinstance(form, PartialCredit):
        parts = zip(form.names, item.parts, strict=True)
    lines = [item.text, *(f"{label}: {text}" for label, text in (*parts, *item.anchors))]
    return PromptItem(
        name=name,
        text="\n".join(lines),
        parts=isinstance(form, PartialCredit),
        scale=(f"{form.low:g}", f"{form.high:g}") if isinstance(form, Scale) else None,
        by_probability=isinstance(form, PartialCredit) and form.by_probability,
    )


class JudgeEvaluator(BatchEvaluator):
    """Base class of evaluators that judge up to four items of a response in one call, each item independently.

    A prompt with the variable `passages` gets those of the task's context, as pairs of name and text to be fenced.

    Sample s shows the items of a call rotated by s places, so that the samples differ in the order and not by chance
    alone, unless `rotate` is false.
    A positive judgement needs evidence (see `judge_items`). A `compact` profile asks for neither reasons nor quotations
    (GEAR, D.4), so evidence is not required. The version combines those of the class and of its prompt.
    """

    class Params(ParamsModel):
        profile: ReplyVerbosity = "full"
        """`full`, or `compact` for fewer tokens."""
        rotate: StrictBool = True
        """Whether later samples show the items in another order; with `false` they differ by the model's chance
        alone."""

    layer: Layer = "model"
    uses_model = True
    item_name: str = "item"
    """The name of an item in prompts and replies."""
    bounds_its_time = True
    version = "3"
    settings: Params

    @property
    @abstractmethod
    def prompt(self) -> Prompt:
        """Return the prompt. It must show `items`, as any prompt that extends the prompt `items` does."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        if "items" not in self.prompt.needs:
            raise ConfigError(
                f"prompt {self.prompt.id!r} shows no items; write `extends: items` in its front matter"
            )
        self.reads_context = "passages" in self.prompt.needs
        has_declared_version = declares_version(type(self), JudgeEvaluator)
        class_version = self.version if has_declared_version else source_version(type(self))
        self.version = f"{class_version} prompt {self.prompt.full_version}"

    @abstractmethod
    def item(self, inputs: EvaluatorInput) -> Item:
        """Return the item to be judged."""

    def prompt_variables(self, inputs: EvaluatorInput) -> ReadOnlyFields:
        """Return additional prompt variables; they must be equal for all inputs of a batch."""
        return {}

    def batch_key(self, inputs: EvaluatorInput) -> str:
        """Return a batch key: inputs about one response with equal keys share a call."""
        return ""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `batch`. Batches depend on ids only, so that equal inputs always give
        equal batches."""
        indices_by_key = defaultdict(list)
        for index, inputs in enumerate(batch):
            # what may share a call
            key = (inputs.response.id, inputs.sample, self.batch_key(inputs))
            indices_by_key[key].append(index)
        calls = []
        for _, indices in sorted(indices_by_key.items()):
            indices.sort(key=lambda index: batch[index].question.id)
            calls += split_into_batches(indices, MAX_ITEMS_PER_CALL)
        results = await gather_all(
            self._judge_batch([batch[index] for index in indices]) for indices in calls
        )
        verdicts = dict(zip(chain(*calls), chain(*results), strict=True))
        return [verdicts[index] for index in range(len(batch))]

    async def _judge_batch(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        first = batch[0]
        client = require_client(share_client(batch))
        sample = first.sample
        shift = sample if self.settings.rotate else 0
        items = {
            f"{self.item_name}_{number}": self.item(inputs)
            for number, inputs in enumerate(rotate(batch, shift), start=1)
        }
        variables = {**shared_prompt_variables(first), **self.prompt_variables(first)}
        passages = None
        if self.reads_context:
            passages = first.task.passages_by_name
            variables["passages"] = tuple(passages.items())
        verdicts = await judge_items(
            client,
            self.prompt,
            items,
            variables,
            first.response.text,
            sample=sample,
            compact=self.settings.profile == "compact",
            passages=passages,
        )
        verdicts = rotate(verdicts, -shift)
        for inputs, verdict in zip(batch, verdicts, strict=True):
            inputs.report(verdict)
        return verdicts


def rotate(values: Sequence[T], shift: int) -> list[T]:
    """Return the values rotated by so many places: those from there on, then those before; back if negative."""
    start = shift % max(1, len(values))
    return [*values[start:], *values[:start]]


def _refuse_slash_in_id(name: str) -> str:
    if "/" in name:
        raise ValueError("has a slash; leave it out")
    return name


_IdWithoutSlash = Annotated[Id, AfterValidator(_refuse_slash_in_id)]
_NONEMPTY_FIELD = Field(min_length=1)


class OwnCriterion(Criterion):
    """A criterion of an evaluator's own; a text alone will do."""

    id: _IdWithoutSlash | None = None  # type: ignore[assignment]  # the key in a mapping, or the place in a list, replaces it
    weight: PositiveNumber = 1.0

    @field_validator("weight", mode="before")
    @classmethod
    def _refuse_negative_weight(cls, weight: Any) -> Any:
        if isinstance(weight, int | float) and weight < 0:
            raise ValueError(
                "is negative; give a fault an evaluator of its own, whose component has a negative weight under "
                "`reward`, such as `reward: {rude: -0.3}`"
            )
        return weight

    @model_validator(mode="before")
    @classmethod
    def _expand_text_shorthand(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


class Criteria(JudgeEvaluator):
    """Score how far each criterion of the rubric is met.

    A criterion is met or not, and its score is P(met); with a `scale`, its position on the scale in [0, 1]; with
    `parts`, the share of their weight that is met, or their probabilities times their weights.
    """

    class Params(JudgeEvaluator.Params):
        criteria: (
            Annotated[dict[_IdWithoutSlash, OwnCriterion], _NONEMPTY_FIELD]
            | Annotated[tuple[OwnCriterion, ...], _NONEMPTY_FIELD]
            | None
        ) = None
        """Criteria of its own: texts by id, or a list of texts and of criteria as in a rubric. They replace the
        rubric of every task, and form a component of the evaluator's name: their mean by weight."""
        parts: Literal["met", "probability"] = "met"
        """Whether each of a criterion's parts is met or not, or has a probability that multiplies its weight, as in
        GEAR's scripts for PLawBench."""
        instructions: NonEmptySentence | None = None
        """Text for the judge, such as how strict to be."""

        @property
        def own(self) -> tuple[Criterion, ...]:
            criteria_by_name = self.criteria or {}
            if not isinstance(criteria_by_name, dict):
                criteria_by_name = {
                    f"c{number}": criterion for number, criterion in enumerate(criteria_by_name, 1)
                }
            return tuple(
                criterion.model_copy(update={"id": criterion.id or name})
                for name, criterion in criteria_by_name.items()
            )

        @model_validator(mode="after")
        def _check_ids(self) -> Self:
            require_different_criteria(self.own)
            return self

    name = "criteria"
    version = "4"
    prompt = load_prompt("criteria")
    audience: Audience = "criterion"
    item_name = "criterion"

    settings: Params

    def _set_up_from_settings(self) -> None:
        if self.settings.instructions is not None:
            self.prompt = load_prompt("instructed-criteria")
        self._own = {criterion.id: criterion for criterion in self.settings.own}
        if self._own:
            self.audience = "task"
            self.shares = {name: criterion.weight for name, criterion in self._own.items()}
            self.musts = tuple(name for name, criterion in self._own.items() if criterion.must)

    def questions(self, view: TaskView) -> Sequence[Question]:
        if not self._own:
            return super().questions(view)
        params = {name: value for name, value in self.params.items() if name != "criteria"}
        questions = []
        for name, criterion in self._own.items():
            content = criterion.model_dump(mode="json", exclude={"weight", "role", "must"})
            criterion_params = {**params, "criterion": content}
            questions.append(self.question(view, name, params=criterion_params))
        return questions

    def prompt_variables(self, inputs: EvaluatorInput) -> ReadOnlyFields:
        instructions = self.settings.instructions
        return {} if instructions is None else {"instructions": instructions}

    def item(self, inputs: EvaluatorInput) -> Item:
        about = self._own[inputs.question.subject] if self._own else inputs.task.about
        assert isinstance(about, Criterion)
        if about.parts:
            weights = tuple(part.weight for part in about.parts)
            texts = tuple(part.text for part in about.parts)
            form = PartialCredit(weights, self.settings.parts == "probability")
            return Item(about.text, form, texts)
        if about.scale is not None:
            return Item(about.text, Scale(*about.scale), anchors=sort_anchors(about.anchors))
        return Item(about.text, Binary())


def sort_anchors(anchors: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the values of a scale with their meanings, numbers from low to high before any other."""

    def sort_key(anchor: tuple[str, str]) -> tuple[float, str]:
        match = _NUMBER.match(anchor[0])
        return float(match[0]) if match else math.inf, anchor[0]

    return tuple(sorted(anchors.items(), key=sort_key))


WISH_FULFILMENT_SCALE = (0.0, 4.0)
_WISH_FULFILMENT_ANCHORS = (
    ("0", "nothing in the response serves it"),
    ("1", "it is touched, and little is done about it"),
    ("2", "about half of it is served"),
    ("3", "it is served, but for something small"),
    ("4", "it is served wholly"),
)


class _StakeholderJudge(JudgeEvaluator):
    def prompt_variables(self, inputs: EvaluatorInput) -> ReadOnlyFields:
        about = inputs.task.about
        return {"profile": about.profile if isinstance(about, Stakeholder) else ""}

    def batch_key(self, inputs: EvaluatorInput) -> str:
        return inputs.task.member or ""


class Preferences(_StakeholderJudge):
    """Score how far each wish of a stakeholder is served, from 0 to 4, and each need as met, with a probability.

    Covers the constraints without a `check`. Only the stakeholder's own needs are shown to the model.
    """

    name = "preferences"
    version = "4"
    prompt = load_prompt("preferences")
    audience = "stakeholder"
    item_name = "constraint"

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        return [
            self.question(view, constraint.id)
            for constraint in view.about.constraints
            if constraint.check is None
        ]

    def item(self, inputs: EvaluatorInput) -> Item:
        stakeholder = inputs.task.about
        assert isinstance(stakeholder, Stakeholder)
        subject = inputs.question.subject
        constraint = next(c for c in stakeholder.constraints if c.id == subject)
        text = constraint.text or constraint.id
        if constraint.kind == "hard":
            return Item(text, Binary())
        return Item(text, Scale(*WISH_FULFILMENT_SCALE), anchors=_WISH_FULFILMENT_ANCHORS)


DEFAULT_CHECKLIST_ITEMS = (
    "It answers what was asked, and leaves nothing out that whoever asked would have to ask for again.",
    "It can be acted on as it is written, without guessing who does what, where or when.",
    "Its parts agree with each other.",
    "Where not everything could be had, it says what was given up and why.",
)


class Checklist(_StakeholderJudge):
    """Score the share of checklist items that hold. Its layer `residual` may make up a fifth of û_i at most."""

    class Params(JudgeEvaluator.Params):
        items: tuple[NonEmptySentence, ...] = Field(
            DEFAULT_CHECKLIST_ITEMS, min_length=1, max_length=20
        )
        """Sentences that hold or do not; four general ones by default."""
        audience: Literal["stakeholder", "task"] = "stakeholder"
        """`stakeholder`, for each one's utility, or `task`, for a separate component `checklist`."""

    name = "checklist"
    version = "3"
    prompt = load_prompt("checklist")
    layer = "residual"
    item_name = "checklist"

    settings: Params

    def _set_up_from_settings(self) -> None:
        self.audience = self.settings.audience

    def item(self, inputs: EvaluatorInput) -> Item:
        parts = self.settings.items
        form = PartialCredit((1.0,) * len(parts))
        return Item("Each part is asked about by itself.", form, parts)
