"""The context of the graphs: what a jury gives each run of them, and what the runs of a session share."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.decision.combiners import Combiner
from jurygraph.display import ShortRepr
from jurygraph.errors import EvaluatorError
from jurygraph.graphs.events import EventListener
from jurygraph.models.request import CallSink
from jurygraph.safety.gates import read_project_key
from jurygraph.safety.redaction import LazyRedactor, Redactor
from jurygraph.schema import (
    Call,
    Config,
    Decision,
    Lookup,
    RecordedVerdict,
    SurveyWithoutTexts,
)

if TYPE_CHECKING:
    from jurygraph.models.gateway import Gateways
    from jurygraph.models.judge_client import JudgeClient
from jurygraph.graphs.time_limits import UserCallThreads
from jurygraph.tools.tool import ToolSet

T = TypeVar("T")

FAILED_VERDICTS_BEFORE_STOP = 10  # of an evaluator, of which one has to be no error of its code


class FirstVerdictsCheck:
    """The first verdicts of each evaluator in a session: whether its code failed at all of them."""

    def __init__(self) -> None:
        self._failed = Counter[str]()
        self._working: set[str] = set()

    def note(self, evaluator: str, verdicts: Iterable[RecordedVerdict]) -> None:
        """Note verdicts of an evaluator. Raises EvaluatorError if its code failed at all
        `FAILED_VERDICTS_BEFORE_STOP`."""
        if evaluator in self._working:
            return
        for verdict in verdicts:
            failure = verdict.failure
            if failure is None or failure.cause != "evaluator":
                self._working.add(evaluator)
                return
            self._failed[evaluator] += 1
            if self._failed[evaluator] == FAILED_VERDICTS_BEFORE_STOP:
                raise EvaluatorError(
                    f"evaluator {evaluator!r} failed at each of its first {FAILED_VERDICTS_BEFORE_STOP} verdicts, with "
                    f"{failure.kind}: {failure.message}; mend its code"
                )


_MAX_SHARED_PLAN_PARTS = 512


class SharedPlanParts(dict[Hashable, T]):
    """Parts that the plans of many tasks share, by what they are made from. When it is full, it begins anew."""

    def store_part(self, key: Hashable, part: T) -> None:
        if len(self) >= _MAX_SHARED_PLAN_PARTS:
            self.clear()
        self[key] = part


@dataclass(frozen=True, repr=False)
class GraphContext(ShortRepr):
    """The context of the graphs: evaluators, derivers and combiners by name, and the config.

    `client_by_judge` are those of the models: of the config's `model` under None, and of `models` by their names. Their
    calls in this run of a graph are the `sent_calls`, and those of tools the `lookups`, by id; `judges` are the names
    under which providers know them. `secrets` are known in addition to those of the environment. Plain functions of
    evaluators and derivers run in `threads`.
    `first_verdicts_check` stops a run whose evaluator is broken; None for a dry run, whose replies mean nothing. The
    `listener` gets the events. Tasks that differ only in their texts share the `surveys_without_texts` and
    `shared_decisions` of their plans.
    """

    config: Config
    evaluators: Mapping[str, Evaluator]
    derivers: Mapping[str, Deriver]
    combiners: Mapping[str, Combiner]
    client_by_judge: "Mapping[str | None, JudgeClient]" = field(default_factory=dict)
    sent_calls: Mapping[str, Call] = field(default_factory=dict, repr=False)
    lookups: Mapping[str, Lookup] = field(default_factory=dict, repr=False)
    judges: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    threads: UserCallThreads = field(default_factory=UserCallThreads)
    first_verdicts_check: FirstVerdictsCheck | None = field(
        default_factory=FirstVerdictsCheck, compare=False, repr=False
    )
    listener: EventListener | None = field(default=None, compare=False, repr=False)
    surveys_without_texts: SharedPlanParts[SurveyWithoutTexts] = field(
        default_factory=SharedPlanParts
    )
    shared_decisions: SharedPlanParts[Decision] = field(default_factory=SharedPlanParts)

    @property
    def toolsets(self) -> Iterator[tuple[str, ToolSet]]:
        """Yield the tools of evaluators and derivers that have any, each with the name of its owner."""
        for owner in (*self.evaluators.values(), *self.derivers.values()):
            if owner.toolset is not None:
                yield owner.name, owner.toolset

    def with_model_clients(
        self, gateways: "Gateways", sink: CallSink | None = None
    ) -> "GraphContext":
        """Return the context of one graph run, whose clients send to the `gateways` and keep replies in `sink`."""
        if not gateways:
            return self
        # imported lazily: only needed with a model
        from jurygraph.models.judge_client import JudgeClient

        calls: dict[str, Call] = {}
        lookups: dict[str, Lookup] = {}
        safety_config = self.config.safety
        key = read_project_key()
        client_by_judge = {
            name: JudgeClient(
                gateway,
                safety_config,
                key,
                sink,
                calls,
                lookups,
                self.config.call_settings_of(name),
            )
            for name, gateway in gateways.items()
        }
        return replace(self, client_by_judge=client_by_judge, sent_calls=calls, lookups=lookups)

    @property
    def judge_client(self) -> "JudgeClient | None":
        """Return the client of the config's `model`; None without one."""
        return self.client_by_judge.get(None)

    @property
    def redactor(self) -> Redactor:
        """Return a redactor for the environment at its first use, which user code may have changed."""
        return LazyRedactor(self.secrets)


@dataclass(frozen=True, slots=True)
class TaskContexts:
    """The contexts of a batch of tasks: equal but for their clients, each with its deadline and calls."""

    contexts: Sequence[GraphContext]
