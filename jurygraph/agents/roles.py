"""The three roles. A deriver makes material, an evaluator measures, a combiner combines; only the router decides.

`Deriver`   sees one view of the task and one response; gives material, never a score.
`Evaluator` sees one view of the task and one, two or all responses, masked; gives verdicts.
`Combiner`  sees numbers alone; gives one component of the reward by arithmetic.
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
    Input,
    Layer,
    Material,
    Question,
    Response,
    Scope,
    Seat,
    TaskView,
    Verdict,
)

if TYPE_CHECKING:
    from jurygraph.models.consultation import Consultation

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
class Ask:
    """All that an evaluator is given.

    `responses` has one entry for scope `response`, two for `pair`, all of the group for `group`; `material` stands
    beside them, one mapping of the needed material by name for each. `gateway` leads to the model, where one is.
    """

    question: Question
    task: TaskView
    responses: tuple[Response, ...]
    material: tuple[Materials, ...]
    sample: int = 0
    gateway: "Consultation | None" = None

    @property
    def response(self) -> Response:
        """The response asked about: the first one."""
        return self.responses[0]


@dataclass(frozen=True, slots=True)
class DeriverAsk:
    """All that a deriver is given: one view, one response, and the material that it needs.

    `gateway` leads to the model, where one is.
    """

    task: TaskView
    response: Response
    material: Materials
    gateway: "Consultation | None" = None


class Evaluator(ABC):
    """Measures. Subclass it, set `name`, and write `answer`; everything else has a default.

    `answer` gives a Verdict, a number in [0, 1] or a boolean; for scope `group` a sequence of them, one for each
    response as shown. It may be a coroutine; otherwise it runs in a thread, or, if it is `quick` (microseconds, no
    waiting), in the event loop itself. What it raises becomes a failed verdict.
    One that is `together` gets all that it is asked at a time in `answer_all`, to ask a model less often.
    One that reads a response's data (`reads_data`) is shown what a deriver of material `data` made of its text, if any.
    An evaluator that `asks_model` abstains where the config's model is `none`. `params` are those of the config, which
    sets them after `__init__` took them; they stand in every question, so that other params are another question.
    `combiner` and `shares` say how its questions make up a component of their own, and `rests_on` that what it asks
    hangs on more than its params, which a run then keeps to (see `Seat`).
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
        """The family, and so the node of the score graph, that this evaluator belongs to."""
        return BRANCH_OF_AUDIENCE[self.audience]

    @property
    def seat(self) -> Seat:
        """What a run remembers of it."""
        return Seat(
            version=self.version,
            audience=self.audience,
            combiner=self.combiner,
            shares=dict(self.shares),
            rests_on=self.rests_on,
        )

    @property
    def notes(self) -> Sequence[str]:
        """What whoever starts a run should know of it, such as what it had to leave out; one sentence each."""
        return ()

    def check(self, question: Question) -> None:
        """Called when a plan is made, and before one that was made earlier is used.

        Raises `ConfigError` where the config asks a question in a way that it cannot be asked in, and `InputError`
        where what it rests on, beside the task, is not what it was.
        """

    def questions(self, view: TaskView) -> Sequence[Question]:
        """What to ask about this member of the audience; one question unless overridden."""
        return [self.question(view)]

    def question(self, view: TaskView, subject: str | None = None, **fields: Any) -> Question:
        """A question of this evaluator about `view`; `fields` override those of Question."""
        own = view.member or self.name.rpartition(".")[2]
        aspect = "" if subject is None else f"/{subject}"
        member = "" if view.member is None else f"@{view.member}"
        stated: dict[str, Any] = {
            "id": f"{self.name}{aspect}{member}",
            "evaluator": self.name,
            "version": self.version,
            "subject": subject or own,
            "view": view.digest,
            "branch": self.branch,
            "layer": self.layer,
            "scope": self.scope,
            "needs": self.needs,
            "params": dict(self.params),
        }
        return Question.model_validate(stated | fields)

    @abstractmethod
    def answer(self, ask: Ask) -> Answer | Sequence[Answer] | Awaitable[Answer | Sequence[Answer]]:
        """The verdict on what is asked."""

    async def answer_all(self, asks: Sequence[Ask]) -> Sequence[Any]:
        """The verdicts on all that is asked, in the order of the asks; called where the evaluator is `together`."""
        raise NotImplementedError(f"evaluator {self.name!r} is `together`, and has no `answer_all`")

    def open(self) -> None:
        """Called before the first question; start here what takes long to start."""

    def close(self) -> None:
        """Called when the jury is closed; may be called more than once."""


class Together(Evaluator):
    """An evaluator that answers all that it is asked at a time: write `answer_all`."""

    together = True

    async def answer(self, ask: Ask) -> Answer:
        (verdict,) = await self.answer_all([ask])
        return verdict

    @abstractmethod
    async def answer_all(self, asks: Sequence[Ask]) -> Sequence[Verdict]:
        """The verdicts on all that is asked, in the order of the asks."""


class Deriver(ABC):
    """Makes material from one response, for evaluators that name it in `needs` (or `of`, for variants).

    `params` are those of the config, as for an evaluator, and so are `asks_model` and `reads_data`. Where material
    `data` is given, its data stands as the response's own for those who read that.
    """

    name: str
    version: str = "1"
    gives: str
    asks_model: bool = False
    reads_data: bool = False
    needs: tuple[str, ...] = ()
    params: Params = NO_PARAMS

    def params_for(self, view: TaskView) -> Params:
        """What the plan is to state of it: its params, and whatever else the material rests on than the view."""
        return self.params

    @abstractmethod
    def derive(self, ask: DeriverAsk) -> Material | Awaitable[Material]:
        """The material, under the name that it `gives`. May be a coroutine; otherwise it runs in a thread."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Numbers for one input of a combiner: rows are responses, columns questions (or samples, opponents, variants).

    `value` [R,Q] in [0,1], already filled where unjudged; `met` [R,Q] the judges' own decisions, filled alike;
    `judged` [R,Q], false too where a gate stopped the response before anybody judged it; `live` [R,Q] is false where a
    question does not apply: such a cell leaves numerator and denominator; `weight` [Q], signed; `mass` is what the
    whole input weighs beside the component's other inputs.
    """

    value: Floats
    met: Bools
    judged: Bools
    live: Bools
    weight: Floats
    mass: float = 1.0

    def mean(self) -> tuple[Floats, Bools]:
        """Mean over the live columns by |weight|, [R], and where there was any live column, [R]."""
        size = np.where(self.live, np.abs(self.weight), 0.0)
        total = aggregation.total(size)
        some: Bools = np.greater(total, 0.0)
        return aggregation.total(size * self.value) / np.where(some, total, 1.0), some


@dataclass(frozen=True, slots=True)
class Component:
    """A component of the reward: value [R], the rows where there is one, and its named parts [R] for the trace.

    `figures` [R] are told beside it and are no parts of it; NaN where there is nothing to tell.
    """

    value: Floats
    present: Bools
    parts: Mapping[str, Floats]
    figures: Mapping[str, Floats] = field(default_factory=dict)


class Combiner(ABC):
    """Turns cells into one component by arithmetic that gives the same bits everywhere.

    `freeze` runs when the plan is made: it checks the inputs and may compute what needs more than + - * / (powers,
    an order); its result is all that `combine` gets beside the cells. One that `keeps_columns` gets every opponent or
    sample in a column of its own. Where it does not fix the weights, they are a judge's, and the reward says so. Where
    it works a row out from others too, it looks `across` them: what is missing of one may change all.
    """

    name: ClassVar[str]
    version: str = "1"
    keeps_columns: ClassVar[bool] = False
    fixes_weights: ClassVar[bool] = True
    across: ClassVar[bool] = False

    def fits(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        """Called when the plan is made, with all that its inputs ask. Raises PlanError where it cannot read that."""

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters to store in the plan. Raises PlanError if the inputs or params do not fit."""
        if params:
            raise PlanError(f"combiner {self.name!r} takes no parameter {sorted(params)[0]!r}; leave it out")
        return {}

    @abstractmethod
    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        """The component of every response.

        Where every question looks at one response alone, a row is worked out from itself alone: which other responses
        stand beside it, in a group or in a re-scored run, changes nothing.
        """

    def bounds(
        self, low: Mapping[str, Cells], high: Mapping[str, Cells], params: Mapping[str, Any]
    ) -> tuple[Floats, Floats]:
        """Least and greatest component [R], from cells with every unjudged value at 0 and at 1.

        Right as it stands for a combiner that never falls when a cell rises; others override it.
        """
        return self.combine(low, params).value, self.combine(high, params).value
