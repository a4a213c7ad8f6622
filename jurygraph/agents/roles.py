"""Base classes of two roles: derivers prepare material and evaluators score; combiners are in `decision`.

`Deriver`   sees one view of the task and one response; returns material, never a score.
`Evaluator` sees one view of the task and one, two or all responses, masked; returns verdicts.

Only the router decides which of them run.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from jurygraph.display import Displayed
from jurygraph.errors import ConfigError
from jurygraph.models.request import CallLog
from jurygraph.schema import (
    Audience,
    Branch,
    EvaluatorRecord,
    Layer,
    Material,
    Question,
    Response,
    Scope,
    Step,
    TaskView,
    Verdict,
)
from jurygraph.schema.frozen_model import ParamsModel, PlainParams, read_params

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

Answer = Verdict | float | bool
Materials = Mapping[str, Material]
NO_PARAMS: PlainParams = MappingProxyType({})

CODE_LIMIT = 60.0
"""Seconds for a call of user code that uses no model, unless it or the config sets a `timeout`."""

BRANCH_OF_AUDIENCE: dict[Audience, Branch] = {
    "task": "checks",
    "everyone": "judges",
    "stakeholder": "stakeholders",
    "criterion": "criteria",
    "reviewer": "judges",
}


class UndeclaredClient:
    """Stands in for the client of an evaluator or deriver, `owner`, that does not declare that it uses the model.

    It is false. To use it raises ConfigError: such calls would be in no forecast, and model `none` would break them.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        hint = "write `uses_model = True` in its class, or `own_model=False` where jg.evaluator makes it of a Runnable"
        raise ConfigError(f"{self._owner!r} uses the config's model and does not declare it: {hint}")


@dataclass(frozen=True, slots=True, repr=False)
class EvaluatorInput(Displayed):
    """Input of an evaluator.

    `responses` has one entry for scope `response`, two for `pair`, and the whole group for `group`. `material` has
    one mapping per response, from the name of the needed material to the material. `client` gives access to the
    model, if the evaluator `uses_model`. `call_log` and `steps` are what jurygraph records with the verdict.
    """

    question: Question
    task: TaskView
    responses: tuple[Response, ...]
    material: tuple[Materials, ...]
    sample: int = 0
    client: "JudgeClient | None" = None
    call_log: CallLog = field(default_factory=CallLog, compare=False, repr=False)
    steps: list[Step] = field(default_factory=list, compare=False, repr=False)

    @property
    def response(self) -> Response:
        """Return the first response, which is the only one in scope `response`."""
        return self.responses[0]


@dataclass(frozen=True, slots=True, repr=False)
class DeriverInput(Displayed):
    """Input of a deriver: one view, one response, and the material that the deriver needs.

    `client` gives access to the model, if the deriver `uses_model`.
    """

    task: TaskView
    response: Response
    material: Materials
    client: "JudgeClient | None" = None


def share_client(batch: Sequence[EvaluatorInput]) -> "JudgeClient | None":
    """Return a client whose calls are listed with the verdicts on all these inputs; None without a model."""
    return batch[0].client and batch[0].client.logging_to(*(inputs.call_log for inputs in batch))


class Configurable(Displayed):
    """Base class of evaluators and derivers, which a config sets up by params.

    `Params` is the model of these params, with their types, bounds, defaults and descriptions. `settings` are the
    params as that model; narrow its type with `settings: Params`. A class with an `__init__` of its own takes the
    keyword arguments that this one declares, and has settings only if it calls that of its base class.
    """

    name: str
    bounds_its_time: ClassVar[bool] = False
    may_take_long: ClassVar[bool] = False
    """Its answers may take long, though the class bounds its time."""
    Params: ClassVar[type[ParamsModel]] = ParamsModel
    settings: Any

    def __init__(self, **params: Any) -> None:
        """Validate the params. Raises ConfigError that names the first wrong one."""
        owner = getattr(self, "name", type(self).__name__)
        self.settings = read_params(owner, self.Params, params, ConfigError)


class Evaluator(Configurable, ABC):
    """Base class of evaluators. Set `name` and implement `answer`; everything else has a default.

    `answer` returns a Verdict, a number in [0, 1] or a boolean; for scope `group`, a sequence of them, one per response
    in the order shown. It may be a coroutine; otherwise it runs in a thread, or, if the evaluator is `runs_inline`
    (microseconds, no waiting), in the event loop itself. An exception becomes a failed verdict. An evaluator that is
    `batched` receives all its inputs at once in `answer_all`, to make fewer model calls; those about several inputs are
    sent by `share_client`. An evaluator with `reads_data` sees the data that a deriver of material `data` extracted
    from the response, if any. An evaluator with `uses_model` abstains if the config's model is `none`. `params` come
    from the config, which sets them after `__init__` received them; they are part of every question, so other params
    give another question; `Configurable` says how they are validated. `timeout` is the time limit of a call in seconds,
    unless the config sets another; None is the default of its kind: none if its class `bounds_its_time`, which says
    that its methods end in time by themselves, else 60 without a model. `combiner` and `shares` describe how the
    evaluator's questions form a component of their own. `depends_on` names what the questions depend on besides the
    params; a run then keeps it fixed (see `EvaluatorRecord`).
    """

    version: str = "1"
    audience: Audience = "task"
    layer: Layer = "check"
    scope: Scope = "response"
    uses_model: bool = False
    batched: bool = False
    runs_inline: bool = False
    reads_data: bool = False
    timeout: float | None = None
    needs: tuple[str, ...] = ()
    params: PlainParams = NO_PARAMS
    combiner: str = "mean"
    shares: Mapping[str, float] = MappingProxyType({})
    depends_on: str = ""

    @property
    def branch(self) -> Branch:
        """Return the branch of the score graph that this evaluator belongs to."""
        return BRANCH_OF_AUDIENCE[self.audience]

    @property
    def record(self) -> EvaluatorRecord:
        """Return the record of this evaluator that a run stores."""
        return EvaluatorRecord(
            version=self.version,
            audience=self.audience,
            combiner=self.combiner,
            shares=dict(self.shares),
            depends_on=self.depends_on,
        )

    @property
    def notes(self) -> Sequence[str]:
        """Return what the user should know before a run, such as skipped parts; one sentence each."""
        return ()

    @property
    def known_reviewers(self) -> Sequence[str]:
        """Return the only reviewers whom it can predict, sorted; empty if it can predict any, or none."""
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
    def answer(self, inputs: EvaluatorInput) -> Answer | Sequence[Answer] | Awaitable[Answer | Sequence[Answer]]:
        """Return the verdict on the question."""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> Sequence[Any]:
        """Return the verdicts on all inputs, in the order of `batch`; called if the evaluator is `batched`."""
        raise NotImplementedError(f"evaluator {self.name!r} is `batched`, and has no `answer_all`")

    def open(self) -> None:
        """Prepare for the first question. Called once before it; start slow resources here."""

    def close(self) -> None:
        """Release resources. Called when the jury is closed; may be called more than once."""


class CodeEvaluator(Evaluator):
    """Base class of evaluators by code alone that take microseconds: they answer in the event loop itself."""

    version = "1"
    runs_inline = True
    bounds_its_time = True


class BatchEvaluator(Evaluator):
    """Base class of evaluators that answer all their inputs in one batch: implement `answer_all`."""

    batched = True

    async def answer(self, inputs: EvaluatorInput) -> Answer:
        (verdict,) = await self.answer_all([inputs])
        return verdict

    @abstractmethod
    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> Sequence[Verdict]:
        """Return the verdicts on all inputs, in the order of `batch`."""


class Deriver(Configurable, ABC):
    """Base class of derivers, which make material from one response for evaluators that list it in `needs`.

    Evaluators of variants name it in `material` instead. `params` come from the config, as for an evaluator;
    `uses_model`, `reads_data`, `bounds_its_time` and `timeout` mean the same as there. Material `data` replaces the
    response's own data for those that read data.
    """

    version: str = "1"
    gives: str
    uses_model: bool = False
    reads_data: bool = False
    timeout: float | None = None
    needs: tuple[str, ...] = ()
    params: PlainParams = NO_PARAMS

    def params_for(self, view: TaskView) -> PlainParams:
        """Return what the plan records: the params, and everything besides the view that the material depends on."""
        return self.params

    @abstractmethod
    def derive(self, inputs: DeriverInput) -> Material | Awaitable[Material]:
        """Return the material, under the name in `gives`. May be a coroutine; otherwise it runs in a thread."""
