"""Evaluators without a class: plain functions, langchain-core Runnables, LangGraph graphs, and criteria for a model.

Functions are called with the task and the response, or with keywords in openevals' form (`feedback`).

@jurygraph.evaluator(layer="check")
def short(task: TaskView, response: Response) -> float:
    return 1.0 if len(response.text) < 400 else 0.0
"""

import contextlib
import hashlib
import inspect
import pkgutil
import sys
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Self, overload

from pydantic import Field, create_model

from jurygraph.agents.feedback import (
    MISSING_REASON_BY_KEYWORD,
    closure_digest,
    declared_keywords,
    feedback_keyword_values,
    read_feedback,
)
from jurygraph.agents.roles import (
    BRANCH_OF_AUDIENCE,
    NO_PARAMS,
    Evaluator,
    EvaluatorAnswer,
    EvaluatorAnswers,
    EvaluatorInput,
)
from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import Problem, describe_type, validate
from jurygraph.schema import (
    Audience,
    Condition,
    Criterion,
    EvaluatorScope,
    GraphBranchName,
    Layer,
    Question,
    TaskView,
    Verdict,
)
from jurygraph.schema.frozen_model import (
    FrozenModel,
    Id,
    JsonFields,
    PositiveInt,
    RawParams,
    ReadOnlyFields,
    StrPath,
    require_argument_type,
)
from jurygraph.schema.plan import SUBMITTED_MATERIAL_NAME, PairOrder

_ARGUMENTS_BY_SCOPE = {
    "response": ("task", "response"),
    "pair": ("task", "first", "second"),
    "group": ("task", "responses"),
}


_PLAIN_TYPE_BY_NAME = {kind.__name__: kind for kind in (bool, int, float, str)}


class AdaptedSettings(FrozenModel):
    """The settings of a function or Runnable that becomes an evaluator.

    `layer` is by default `model` for a Runnable and `check` for a function. `own_model` says that the target brings its
    own model; a Runnable does by default. The others are as in `Evaluator` and `Question`.
    """

    version: str | None = None
    layer: Layer | None = None
    audience: Audience = "task"
    scope: EvaluatorScope = "response"
    branch: GraphBranchName | None = None
    needs: tuple[Id, ...] = ()
    reads: tuple[StrPath, ...] = ()
    own_model: bool | None = None
    material: Id = SUBMITTED_MATERIAL_NAME
    when: Condition | None = None
    pairs: PairOrder = "ordered"
    samples: PositiveInt = 1


class CallableEvaluator(Evaluator):
    """Base class of the evaluators that `adapt_to_evaluator` makes of functions and Runnables."""

    branch: GraphBranchName = "checks"
    file_params: RawParams = NO_PARAMS
    """Absolute paths by the params that name files."""

    def __init__(self, target: Any, name: str, settings: AdaptedSettings) -> None:
        is_langchain_runnable = is_runnable(target)
        own_model = is_langchain_runnable if settings.own_model is None else settings.own_model
        self.target = target
        self.name = name
        self.version = settings.version or (
            "1" if is_langchain_runnable else source_version(target)
        )
        self.layer = settings.layer or ("model" if is_langchain_runnable else "check")
        self.audience = settings.audience
        self.scope = settings.scope
        self.needs = settings.needs
        self.reads = settings.reads
        self.uses_model = self.layer in ("model", "residual") and not own_model
        if not is_langchain_runnable:
            self.no_model_message = (
                f"{Evaluator.no_model_message}; if the function brings its own, "
                "declare own_model=True"
            )
        self.branch = settings.branch or BRANCH_OF_AUDIENCE[settings.audience]
        self._question_fields = {
            field: getattr(settings, field) for field in ("material", "when", "pairs", "samples")
        }
        self._check_params({}, are_params_complete=False)

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, **self._question_fields)]

    def set_params(self, params: RawParams) -> None:
        self._check_params(params, are_params_complete=True)
        self.params = dict(params)

    def _call_params(self, inputs: EvaluatorInput) -> JsonFields:
        """Return the params that the target is called with; the paths of files are absolute."""
        return {**inputs.question.params, **self.file_params}

    @abstractmethod
    def _check_params(self, params: RawParams, are_params_complete: bool) -> None:
        """Raise ConfigError if the target cannot take the params; `are_params_complete` unless the config adds some."""


class FunctionEvaluator(CallableEvaluator):
    """A function of `(task, response)`, `(task, first, second)` or `(task, responses)`, depending on its scope.

    Needed material and the config's params are passed as keyword arguments. The function may be `async def`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.target(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by the dotted path if that leads here: pickle does not find a decorated function behind its name."""
        with contextlib.suppress(AttributeError, ImportError, ValueError):
            path = f"{self.target.__module__}:{self.target.__qualname__}"
            if pkgutil.resolve_name(path) is self:
                return pkgutil.resolve_name, (path,)
        return super().__reduce_ex__(protocol)

    def __copy__(self) -> Self:
        duplicate = object.__new__(type(self))
        vars(duplicate).update(vars(self))
        return duplicate

    def answer(self, inputs: EvaluatorInput) -> Any:
        responses = (inputs.responses,) if self.scope == "group" else inputs.responses
        material: JsonFields = {}
        for name in self.needs:
            values = tuple(material_by_name[name] for material_by_name in inputs.material)
            material[name] = values[0] if self.scope == "response" else values
        return self.target(inputs.task, *responses, **material, **self._call_params(inputs))

    def _list_arguments(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of the arguments and the keywords that it is called with, besides the params.

        Raises ConfigError where its scope does not go with them.
        """
        return _ARGUMENTS_BY_SCOPE[self.scope], self.needs

    def _check_params(self, params: RawParams, are_params_complete: bool) -> None:
        """Raise ConfigError if the function cannot be called with its arguments, keywords and these params."""
        argument_names, keyword_names = self._list_arguments()
        names = []
        try:
            signature = inspect.signature(self.target)
            names = list(signature.parameters)[len(argument_names) :]
            bind_arguments = signature.bind if are_params_complete else signature.bind_partial
            bind_arguments(*argument_names, **dict.fromkeys(keyword_names), **params)
        except (TypeError, ValueError) as error:
            hint = ""
            if params:
                param_names = [name for name in names if name not in keyword_names]
                hint = f"; its params: {', '.join(param_names) or 'none'}"
            keywords_text = ""
            if keyword_names or params:
                keywords_text = f" with {', '.join((*keyword_names, *params))} as keywords"
            raise ConfigError(
                f"evaluator {self.name!r} of scope {self.scope} is called as "
                f"({', '.join(argument_names)}){keywords_text}: "
                f"{error}; change the function, or the params{hint}"
            ) from error
        # a plain type that the function declares is that of the param
        fields: JsonFields = {}
        for name in params.keys() & signature.parameters.keys():
            annotation = signature.parameters[name].annotation
            plain_type = _PLAIN_TYPE_BY_NAME.get(str(getattr(annotation, "__name__", annotation)))
            if plain_type is not None:
                fields[name] = (Annotated[plain_type, Field(strict=True)], ...)
        params_model = create_model("Params", __base__=FrozenModel, **fields)
        problem = validate(params_model, {name: params[name] for name in fields})
        if isinstance(problem, Problem):
            raise ConfigError(f"params.{problem.field}: {problem}")


_TRAJECTORY_MODULE = "openevals.trajectory"
"""The package of openevals' evaluators that take messages and no text."""


class FeedbackEvaluator(FunctionEvaluator):
    """A function of openevals' form: `(inputs, outputs, reference_outputs)`, or some of these, and `context`.

    It gets the parts that it declares, and the config's params; it sees all messages without their reasoning unless
    the config says otherwise. It abstains where the task lacks a part for which it has no default.
    """

    sees = "without_reasoning"

    def __init__(self, target: Any, name: str, settings: AdaptedSettings) -> None:
        self._declared = declared_keywords(target)
        super().__init__(target, name, settings)
        values = closure_digest(target)
        if settings.version is None:
            # 2: messages that are given are a list, also of one reply, and texts in `content` are one
            self.version = f"2 {self.version}"
            self.version += f" with {values}" if values else ""
        module = str(getattr(target, "__module__", None))
        self._compares_messages = module.startswith(_TRAJECTORY_MODULE)

    def answer(self, inputs: EvaluatorInput) -> Any:
        values = feedback_keyword_values(inputs)
        if isinstance(values["outputs"], str) and self._compares_messages:
            raise ValueError(
                "compares messages, and the response is shown as a text; give responses with `messages` and tasks "
                "with `reference_messages`"
            )
        for name, reason in MISSING_REASON_BY_KEYWORD.items():
            parameter = self._declared.get(name)
            is_required = parameter is not None and parameter.default is parameter.empty
            if is_required and values[name] is None:
                return Verdict.abstain(reason)
        parts = {name: values[name] for name in self._declared}
        material = {name: inputs.material[0][name] for name in self.needs}
        result = self.target(**parts, **material, **self._call_params(inputs))
        if inspect.isawaitable(result):
            return self._await_feedback(result)
        return read_feedback(result, self.name)

    async def _await_feedback(self, result: Awaitable[Any]) -> EvaluatorAnswer:
        return read_feedback(await result, self.name)

    def _list_arguments(self) -> tuple[Sequence[str], Sequence[str]]:
        if self.scope != "response":
            raise ConfigError(
                f"evaluator {self.name!r} has the keyword `outputs`, of one response: leave its scope `response`"
            )
        return (), [*self._declared, *self.needs]


class RunnableEvaluator(CallableEvaluator):
    """A langchain-core Runnable or compiled LangGraph graph.

    Its input is a mapping with `task`, `response` (or `responses` for pairs and groups), `query`, `text` and the needed
    `material`; it returns a Verdict, a number, a boolean, or a mapping with `verdict` or `score`. The config's model is
    in its configuration, as `chat_model` and `client` under `configurable`; a graph's runtime context is the input.
    """

    def _check_params(self, params: RawParams, are_params_complete: bool) -> None:
        if params:
            raise ConfigError(
                f"evaluator {self.name!r} is a Runnable and takes no params: bind them to it instead"
            )

    async def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswers:
        # Imported lazily: it needs langchain-core.
        from jurygraph.agents.graph_steps import StepRecorder

        graph_input: JsonFields = {"task": inputs.task, "query": inputs.task.query}
        if self.scope == "response":
            graph_input |= {
                "response": inputs.response,
                "text": inputs.response.text,
                "material": inputs.material[0],
            }
        else:
            graph_input |= {"responses": inputs.responses, "material": inputs.material}
        chat_model = inputs.client and inputs.client.chat_model
        configurable = {"client": inputs.client, "chat_model": chat_model}
        runnable_config = {"callbacks": [StepRecorder(inputs.steps)], "configurable": configurable}
        keyword_arguments = {}
        if "context" in inspect.signature(self.target.ainvoke).parameters:  # as graphs do
            keyword_arguments["context"] = inputs
        result = await self.target.ainvoke(graph_input, runnable_config, **keyword_arguments)
        if self.scope == "group" and isinstance(result, Mapping):
            return [to_evaluator_answer(verdict) for verdict in result["verdicts"]]
        return to_evaluator_answer(result)


def to_evaluator_answer(result: Any) -> EvaluatorAnswer:
    """Convert the result of a Runnable to an answer. Raises ValueError or pydantic's own error if it has none."""
    if not isinstance(result, Mapping):
        return result  # type: ignore[no-any-return]
    if "verdict" in result:
        return to_evaluator_answer(result["verdict"])
    if "score" not in result:
        raise ValueError(
            f"expected `verdict` or `score` in the result, found {sorted(map(str, result))}"
        )
    return Verdict.model_validate(
        {name: value for name, value in result.items() if name in Verdict.model_fields}
    )


def is_runnable(value: Any) -> bool:
    """Return true if the value behaves like a langchain-core Runnable; does not import langchain-core."""
    return (
        not inspect.isclass(value) and hasattr(value, "ainvoke") and hasattr(value, "with_config")
    )


def source_version(definition: Callable[..., Any]) -> str:
    """Return a version that changes with the source of the module that defines a function or class.

    It so changes with the constants and helpers of that module too. Falls back to the object's own source, and to "1"
    without any.
    """
    candidates: tuple[Any, ...] = (
        sys.modules.get(getattr(definition, "__module__", "")),
        definition,
    )
    for candidate in candidates:
        with contextlib.suppress(OSError, TypeError):
            return hashlib.sha256(inspect.getsource(candidate).encode()).hexdigest()[:12]
    return "1"


def declares_version(kind: type, role_base_class: type) -> bool:
    """Return true if a class, or a base class of it up to `role_base_class` from the same package, writes down its
    version.

    That of another package's base class says nothing about the code that the class adds.
    """
    package_name = _package_name_of(kind)
    derived_classes = kind.__mro__[: kind.__mro__.index(role_base_class)]
    return any(
        "version" in vars(base_class)
        for base_class in derived_classes
        if _package_name_of(base_class) == package_name
    )


def _package_name_of(kind: type) -> str:
    # Imported lazily: readers of configs load much.
    from jurygraph.sources.user_modules import module_name_in_config

    return module_name_in_config(kind.__module__).partition(".")[0]


def adapt_to_evaluator(target: Any, name: str, **settings: Any) -> CallableEvaluator:
    """Make an evaluator of a function, Runnable or compiled graph; the settings are those of `AdaptedSettings`.

    A Runnable is assumed to bring its own model (layer `model`, used even if the config's model is `none`), unless
    `own_model=False`; a function of layer `model` or `residual` brings its own only with `own_model=True`.
    """
    for setting_name in settings:
        if hasattr(Evaluator, setting_name) and setting_name not in AdaptedSettings.model_fields:
            raise ConfigError(
                f"{setting_name}: a function has no such setting; subclass jg.Evaluator, which has it"
            )
    try:
        chosen = AdaptedSettings(**settings)
    except InputError as error:
        problem = str(error).removeprefix("AdaptedSettings.")
        raise ConfigError(f"evaluator {name!r}, {problem}") from None
    if target is criteria:
        raise ConfigError('`criteria` is to be called: jg.criteria({"polite": "It is polite."})')
    kind: type[CallableEvaluator] = FunctionEvaluator
    if is_runnable(target):
        kind = RunnableEvaluator
    elif declared_keywords(target):
        kind = FeedbackEvaluator
    return kind(target, name, chosen)


REGISTERED_EVALUATORS: dict[str, CallableEvaluator | None] = {}
"""Evaluators registered by the decorator so far, by name. None for a name that several evaluators share."""


@overload
def evaluator(
    target: Callable[..., Any], /, *, name: str | None = None, **settings: Any
) -> FunctionEvaluator: ...
@overload
def evaluator(
    target: None = None, /, *, name: str | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], FunctionEvaluator]: ...
@overload
def evaluator(target: Any, /, *, name: str | None = None, **settings: Any) -> Evaluator: ...
def evaluator(target: Any = None, /, *, name: str | None = None, **settings: Any) -> Any:
    """Make and register an evaluator; use it as a decorator, with or without settings, or call it.

    The config refers to it by its dotted path, or by `name` (by default the function's own name) if that is unique.
    The target is called with the task and what its scope names, and returns a `Verdict`, a bool or a score in [0, 1].

    Settings:
        layer: `check` (a function's default), `fact`, `model` (a Runnable's default) or `residual`.
        own_model: whether the target brings its own model, as a Runnable does by default. A function of layer `model`
            or `residual` does not: it abstains where the config's model is `none`.
        audience: who it is about, `task`, `everyone`, `stakeholder`, `criterion` or `reviewer`; one question for each.
        scope: `response` (called with task and response), `pair` (task, first, second) or `group` (task, responses).
        pairs: which pairs are asked, for the scope `pair`.
        version: by default a digest of the source; give one where the behaviour depends on more.
        needs: names of the material that it reads.
        reads: the files that it reads, by the names of params that are paths, or by paths (see `Evaluator`).
        material: the variants that it is about, instead of the submitted responses.
        when: the condition on another question under which it is asked.
        samples: how often it is asked.
        branch: the node of the machine in which it runs; by default that of its audience.

    Raises ConfigError for a wrong setting, or a target that cannot be called like this.
    """
    require_argument_type("name", name, str | None, "write text")
    if target is None:
        return lambda decorated: evaluator(decorated, name=name, **settings)
    chosen_name = name or getattr(target, "__name__", None)
    if not chosen_name:
        if not callable(target) and not is_runnable(target):
            raise InputError(
                f"evaluator: is {describe_type(target)}; give a function, a Runnable or a compiled graph"
            )
        raise ConfigError(f"{target!r} has no name of its own: say evaluator(..., name='...')")
    adapted_evaluator = adapt_to_evaluator(target, chosen_name, **settings)
    earlier = REGISTERED_EVALUATORS.get(chosen_name, adapted_evaluator)
    is_same_definition = earlier is not None and _definition_identity(
        earlier
    ) == _definition_identity(adapted_evaluator)
    REGISTERED_EVALUATORS[chosen_name] = adapted_evaluator if is_same_definition else None
    return adapted_evaluator


def criteria(
    criteria: ReadOnlyFields | Iterable[str | Criterion | ReadOnlyFields],
    *,
    name: str = "criteria",
    profile: str = "full",
    parts: str | None = None,
    **settings: Any,
) -> JsonFields:
    """Return the built-in evaluator `criteria` with criteria of its own, for `evaluators` of a config in Python.

    A model judges each criterion in every task; their mean by weight is the component `name`. `criteria` are texts by
    id, or a list of texts (with the ids c1, c2, …) and criteria. `profile` and `parts` are params of the evaluator, and
    `settings` those of an evaluator in a config.
    Raises InputError for no criteria; the jury checks each one.
    """
    values = criteria.values() if isinstance(criteria, Mapping) else criteria
    if isinstance(values, str | FrozenModel) or not isinstance(values, Iterable):
        raise InputError(
            f'criteria: is {describe_type(values)}; write {{"polite": "It is polite."}}, or a list of texts or '
            "criteria, such as `rubric.criteria`"
        )
    entries: Any = [
        value.model_dump(mode="json", exclude_defaults=True)
        if isinstance(value, Criterion)
        else value
        for value in values
    ]
    if not entries:
        raise InputError(
            'criteria: is empty; write {"polite": "It is polite."}, or a list of texts'
        )
    if isinstance(criteria, Mapping):
        entries = dict(zip(criteria, entries, strict=True))
    params = {"criteria": entries, "profile": profile}
    if parts is not None:
        params["parts"] = parts
    return {"use": "criteria", "name": name, "params": params, **settings}


def _definition_identity(adapted_evaluator: CallableEvaluator) -> tuple[str, str | int]:
    """Return an identity of the definition, so that a redefinition replaces it; a Runnable equals only itself."""
    target = adapted_evaluator.target
    return getattr(target, "__module__", ""), getattr(target, "__qualname__", id(target))
