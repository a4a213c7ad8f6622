"""Base classes of the three roles: derivers prepare material, evaluators score, combiners aggregate.

`Deriver`   sees one view of the task and one response; returns material, never a score.
`Evaluator` sees one view of the task and one, two or all responses, masked; returns verdicts.
`Combiner`  sees numbers only; computes one component of the reward.

Only the router decides which of them run.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.errors import PlanError
from jurygraph.schema import (
    Audience,
    Branch,
    ComponentInput,
    EvaluatorRecord,
    Layer,
    Material,
    Question,
    Response,
    Scope,
    TaskView,
    Verdict,
)

if TYPE_CHECKING:
    from jurygraph.models.consultation import JudgeClient

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Answer = Verdict | float | bool
Materials = Mapping[str, Material]
Params = Mapping[str, Any]
NO_PARAMS: Params = MappingProxyType({})

BRANCH_OF_AUDIENCE: dict[Audience, Branch] = {
    "task": "checks",
    "everyone": "judges",
    "stakeholder": "stakeholders",
    "criterion": "criteria",
    "reviewer": "judges",
}


@dataclass(frozen=True, slots=True)
class EvaluatorInput:
    """Input of an evaluator.

    `responses` has one entry for scope `response`, two for `pair`, and the whole group for `group`. `material` has
    one mapping per response, from the name of the needed material to the material. `gateway` gives access to the
    model; None without one.
    """

    question: Question
    task: TaskView
    responses: tuple[Response, ...]
    material: tuple[Materials, ...]
    sample: int = 0
    gateway: "JudgeClient | None" = None

    @property
    def response(self) -> Response:
        """Return the first response, which is the only one in scope `response`."""
        return self.responses[0]


@dataclass(frozen=True, slots=True)
class DeriverInput:
    """Input of a deriver: one view, one response, and the material that the deriver needs.

    `gateway` gives access to the model; None without one.
    """

    task: TaskView
    response: Response
    material: Materials
    gateway: "JudgeClient | None" = None


class Evaluator(ABC):
    """Base class of evaluators. Set `name` and implement `answer`; everything else has a default.

    `answer` returns a Verdict, a number in [0, 1] or a boolean; for scope `group`, a sequence of them, one per
    response in the order shown. It may be a coroutine; otherwise it runs in a thread, or, if the evaluator is `quick`
    (microseconds, no waiting), in the event loop itself. An exception becomes a failed verdict.
    An evaluator that is `together` receives all its inputs at once in `answer_all`, to make fewer model calls.
    An evaluator with `reads_data` sees the data that a deriver of material `data` extracted from the response, if any.
    An evaluator with `asks_model` abstains if the config's model is `none`. `params` come from the config, which sets
    them after `__init__` received them; they are part of every question, so other params give another question.
    `combiner` and `shares` describe how the evaluator's questions form a component of their own. `rests_on` names what
    the questions depend on besides the params; a run then keeps it fixed (see `EvaluatorRecord`).
    """

    name: str
    version: str = "1"
    audience: Audience = "task"
    layer: Layer = "check"
    scope: Scope = "response"
    asks_model: bool = False
    together: bool = False
    quick: bool = False
    reads_data: bool = False
    needs: tuple[str, ...] = ()
    params: Params = NO_PARAMS
    combiner: str = "mean"
    shares: Mapping[str, float] = MappingProxyType({})
    rests_on: str = ""

    @property
    def branch(self) -> Branch:
        """Return the branch of the score graph that this evaluator belongs to."""
        return BRANCH_OF_AUDIENCE[self.audience]

    @property
    def seat(self) -> EvaluatorRecord:
        """Return the record of this evaluator that a run stores."""
        return EvaluatorRecord(
            version=self.version,
            audience=self.audience,
            combiner=self.combiner,
            shares=dict(self.shares),
            rests_on=self.rests_on,
        )

    @property
    def notes(self) -> Sequence[str]:
        """Return what the user should know before a run, such as skipped parts; one sentence each."""
        return ()

    def check(self, question: Question) -> None:
        """Check that the question is valid. Called when a plan is made, and before an earlier plan is used.

        Raises `ConfigError` if the config asks for a question that is not possible, and `InputError` if anything other
        than the task that the question depends on has changed.
        """

    def questions(self, view: TaskView) -> Sequence[Question]:
        """Return the questions about this member of the audience; one question unless overridden."""
        return [self.question(view)]

    def question(self, view: TaskView, subject: str | None = None, **fields: Any) -> Question:
        """Return a question of this evaluator about `view`; `fields` override those of Question."""
        default_subject = view.member or self.name.rpartition(".")[2]
        aspect = "" if subject is None else f"/{subject}"
        member = "" if view.member is None else f"@{view.member}"
        defaults: dict[str, Any] = {
            "id": f"{self.name}{aspect}{member}",
            "evaluator": self.name,
            "version": self.version,
            "subject": subject or default_subject,
            "view": view.digest,
            "branch": self.branch,
            "layer": self.layer,
            "scope": self.scope,
            "needs": self.needs,
            "params": dict(self.params),
        }
        return Question.model_validate(defaults | fields)

    @abstractmethod
    def answer(self, ask: EvaluatorInput) -> Answer | Sequence[Answer] | Awaitable[Answer | Sequence[Answer]]:
        """Return the verdict on the question."""

    async def answer_all(self, asks: Sequence[EvaluatorInput]) -> Sequence[Any]:
        """Return the verdicts on all inputs, in the order of `asks`; called if the evaluator is `together`."""
        raise NotImplementedError(f"evaluator {self.name!r} is `together`, and has no `answer_all`")

    def open(self) -> None:
        """Prepare for the first question. Called once before it; start slow resources here."""

    def close(self) -> None:
        """Release resources. Called when the jury is closed; may be called more than once."""


class BatchEvaluator(Evaluator):
    """Base class of evaluators that answer all their inputs in one batch: implement `answer_all`."""

    together = True

    async def answer(self, ask: EvaluatorInput) -> Answer:
        (verdict,) = await self.answer_all([ask])
        return verdict

    @abstractmethod
    async def answer_all(self, asks: Sequence[EvaluatorInput]) -> Sequence[Verdict]:
        """Return the verdicts on all inputs, in the order of `asks`."""


class Deriver(ABC):
    """Base class of derivers, which make material from one response for evaluators that list it in `needs`.

    Evaluators of variants name it in `of` instead. `params` come from the config, as for an evaluator; `asks_model` and
    `reads_data` mean the same as there. Material `data` replaces the response's own data for those that read data.
    """

    name: str
    version: str = "1"
    gives: str
    asks_model: bool = False
    reads_data: bool = False
    needs: tuple[str, ...] = ()
    params: Params = NO_PARAMS

    def params_for(self, view: TaskView) -> Params:
        """Return what the plan records: the params, and everything besides the view that the material depends on."""
        return self.params

    @abstractmethod
    def derive(self, ask: DeriverInput) -> Material | Awaitable[Material]:
        """Return the material, under the name in `gives`. May be a coroutine; otherwise it runs in a thread."""


@dataclass(frozen=True, slots=True)
class ScoreMatrix:
    """Numbers for one input of a combiner: rows are responses, columns questions (or samples, opponents, variants).

    `value` [R,Q] in [0,1], with unjudged cells already filled; `met` [R,Q] the judges' own decisions, filled alike;
    `judged` [R,Q], also false if a gate stopped the response before it was judged; `live` [R,Q], false if a question
    does not apply, which takes the cell out of numerator and denominator; `weight` [Q], signed; `mass` is the weight
    of the whole input among the component's inputs.
    """

    value: Floats
    met: Bools
    judged: Bools
    live: Bools
    weight: Floats
    mass: float = 1.0

    def mean(self) -> tuple[Floats, Bools]:
        """Return the mean over the live columns by |weight| [R], and a mask [R] of the rows with any live column."""
        size = np.where(self.live, np.abs(self.weight), 0.0)
        total = aggregation.total(size)
        has_live: Bools = np.greater(total, 0.0)
        return aggregation.total(size * self.value) / np.where(has_live, total, 1.0), has_live


@dataclass(frozen=True, slots=True)
class Component:
    """A component of the reward: value [R], the rows that have one, and its named parts [R] for the trace.

    `figures` [R] are reported with the component but are not parts of it; NaN means there is nothing to report.
    """

    value: Floats
    present: Bools
    parts: Mapping[str, Floats]
    figures: Mapping[str, Floats] = field(default_factory=dict)


class Combiner(ABC):
    """Base class of combiners: compute one component from cells, with arithmetic that gives the same bits everywhere.

    `freeze` runs when the plan is made: it checks the inputs and may compute what needs more than + - * / (powers,
    an order); its result is all that `combine` receives besides the cells. With `keeps_columns` every opponent or
    sample has its own column. If `fixes_weights` is false, the weights come from a judge, and the reward says so. If
    `across` is true, a row also depends on other rows, so a value missing in one may change all.
    """

    name: ClassVar[str]
    version: str = "1"
    keeps_columns: ClassVar[bool] = False
    fixes_weights: ClassVar[bool] = True
    across: ClassVar[bool] = False

    def fits(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        """Check the questions of all inputs when the plan is made. Raises PlanError if the combiner cannot use them."""

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters to store in the plan. Raises PlanError if the inputs or params do not fit."""
        if params:
            raise PlanError(f"combiner {self.name!r} takes no parameter {sorted(params)[0]!r}; leave it out")
        return {}

    @abstractmethod
    def combine(self, cells: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        """Return the component of every response.

        If every question looks at one response only, each row is computed from that row only: other responses in the
        group or in a re-scored run do not change it.
        """

    def bounds(
        self, low: Mapping[str, ScoreMatrix], high: Mapping[str, ScoreMatrix], params: Mapping[str, Any]
    ) -> tuple[Floats, Floats]:
        """Return the least and greatest component [R], from cells with every unjudged value at 0 and at 1.

        Correct for a combiner that never decreases when a cell increases; other combiners override it.
        """
        return self.combine(low, params).value, self.combine(high, params).value
