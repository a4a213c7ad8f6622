"""Base classes of evaluators that ask a model about a response and give credit only for evidence in its text."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Annotated, Any, Literal, TypeVar

from pydantic import StringConstraints

from jurygraph.agents.functions import has_own_version, source_version
from jurygraph.agents.judging.items import Item, judge_items
from jurygraph.agents.roles import BatchEvaluator, DeriverInput, EvaluatorInput, share_client
from jurygraph.concurrency import each_answered
from jurygraph.errors import ConfigError
from jurygraph.prompts import Prompt
from jurygraph.schema import Layer, Verdict
from jurygraph.schema.frozen_model import Flag, ParamsModel
from jurygraph.schema.task import chat_text

T = TypeVar("T")

MAX_ITEMS_PER_CALL = 4
"""The largest number of items judged in one call (GEAR, D.1). More would save tokens but blur the single judgements."""
Profile = Literal["full", "compact"]
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class JudgeEvaluator(BatchEvaluator):
    """Base class of evaluators that judge up to four items of a response in one call, each item independently.

    Sample s shows the items of a call rotated by s places, so that the samples differ in the order and not by chance
    alone, unless `rotate` is false.
    A positive judgement needs evidence (see `judge_items`). A `compact` profile asks for neither reasons nor quotations
    (GEAR, D.4), so evidence is not required. The version combines those of the class and of its prompt.
    """

    class Params(ParamsModel):
        profile: Profile = "full"
        """`full`, or `compact` for fewer tokens."""
        rotate: Flag = True
        """Whether later samples show the items in another order; `false` repeats the identical input, so that samples
        differ by the model's chance alone."""

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
            raise ConfigError(f"prompt {self.prompt.id!r} shows no items; write `extends: items` in its front matter")
        class_version = self.version if has_own_version(type(self), JudgeEvaluator) else source_version(type(self))
        self.version = f"{class_version} prompt {self.prompt.full_version}"

    @abstractmethod
    def item(self, inputs: EvaluatorInput) -> Item:
        """Return the item to be judged."""

    def prompt_variables(self, inputs: EvaluatorInput) -> Mapping[str, Any]:
        """Return additional prompt variables; they must be equal for all inputs of a batch."""
        return {}

    def batch_key(self, inputs: EvaluatorInput) -> str:
        """Return a batch key: inputs about one response with equal keys share a call."""
        return ""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `batch`. Batches depend on ids only, so that equal inputs always give
        equal batches."""
        order = sorted(range(len(batch)), key=lambda index: self._sort_key(batch[index]))
        groups = [list(group) for _, group in groupby(order, key=lambda index: self._sort_key(batch[index])[:3])]
        size = MAX_ITEMS_PER_CALL
        calls = [group[start : start + size] for group in groups for start in range(0, len(group), size)]
        judging = [self._judge_batch([batch[index] for index in indices]) for indices in calls]
        # the most common case: a single call needs no asyncio task of its own
        results = [await judging[0]] if len(judging) == 1 else await each_answered(judging)
        verdicts = dict(zip(chain(*calls), chain(*results), strict=True))
        return [verdicts[index] for index in range(len(batch))]

    def _sort_key(self, inputs: EvaluatorInput) -> tuple[str, int, str, str]:
        return inputs.response.id, inputs.sample, self.batch_key(inputs), inputs.question.id

    async def _judge_batch(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        first = batch[0]
        client = share_client(batch)
        sample = batch[0].sample
        assert client is not None, "a model is required"
        places = sample if self.settings.rotate else 0
        shown = enumerate(rotate(batch, places), start=1)
        items = {f"{self.item_name}_{number}": self.item(inputs) for number, inputs in shown}
        variables = {**shared_prompt_variables(first), **self.prompt_variables(first)}
        text = first.response.text
        compact = self.settings.profile == "compact"
        verdicts = await judge_items(client, self.prompt, items, variables, text, sample=sample, compact=compact)
        return rotate(verdicts, -places)


def rotate(values: Sequence[T], places: int) -> list[T]:
    """Return the values rotated by so many places: those from there on, then those before; back if negative."""
    start = places % max(1, len(values))
    return [*values[start:], *values[:start]]


def shared_prompt_variables(inputs: EvaluatorInput | DeriverInput) -> dict[str, Any]:
    """Return the prompt variables that all prompts about a response share: the task, a reference, and the response."""
    return {"query": chat_text(inputs.task.query), "reference": inputs.task.reference, "response": inputs.response.text}


class SingleCallEvaluator(BatchEvaluator):
    """Ask a model once about a response, and read all verdicts from the reply."""

    layer: Layer = "model"
    uses_model = True
    bounds_its_time = True

    @abstractmethod
    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        """Return all verdicts on a response, by the subjects of their questions."""

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        """Return the verdicts, in the order of `batch`; those on one response and sample come from one call."""
        calls: dict[tuple[str, int], list[EvaluatorInput]] = defaultdict(list)
        for inputs in batch:
            calls[inputs.response.id, inputs.sample].append(inputs)
        shared = [replace(same_call[0], client=share_client(same_call)) for same_call in calls.values()]
        verdicts = dict(zip(calls, await each_answered(map(self.judge_response, shared)), strict=True))
        return [verdicts[inputs.response.id, inputs.sample][inputs.question.subject] for inputs in batch]
