"""Order a history's examples for a judge, with langchain-core example selectors that are deterministic.

Equal seeds and equal examples give the same order on every machine, whatever the order of the input.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from langchain_core.example_selectors import BaseExampleSelector
from rapidfuzz import fuzz

from jurygraph.errors import ConfigError
from jurygraph.judges.few_shot.history import Example
from jurygraph.schema import digest_of
from jurygraph.sources.user_modules import import_module

ExampleFields = dict[str, Any]  # an example as selectors see it: the fields of `Example`, and its `digest`
Selectors = Callable[[Sequence[ExampleFields], int], BaseExampleSelector]


class _Seeded(BaseExampleSelector):
    def __init__(self, examples: Sequence[ExampleFields], seed: int) -> None:
        self._examples = list(examples)
        self._seed = seed

    def add_example(self, example: ExampleFields) -> None:
        """Add an example to choose from."""
        self._examples.append(example)


class Random(_Seeded):
    """Draw without replacement, each example as likely as any other, so that a reviewer's base rate survives.

    Each query has a draw of its own: otherwise one unlucky draw would stand for a reviewer in a whole run.
    """

    def select_examples(self, input_variables: dict[str, str]) -> list[ExampleFields]:
        """Return all examples in the order of the draw."""
        return shuffle_examples(self._examples, self._seed, input_variables["query"])


class Balanced(_Seeded):
    """Alternate between the scores, so that the examples cover the scale; the order within a score is drawn.

    The frequencies of the scores are lost: a strict and a lenient reviewer look alike.
    """

    def select_examples(self, input_variables: dict[str, str]) -> list[ExampleFields]:
        """Return one example of each item, the first choice first; the task's query has no effect."""
        by_score: dict[float, list[ExampleFields]] = {}
        for example in shuffle_examples(self._examples, self._seed):
            by_score.setdefault(example["score"], []).append(example)
        scores = sorted(by_score, key=lambda score: digest_of([self._seed, float(score)]))
        seen: set[str] = set()
        queues = [_unseen_items(by_score[score], seen) for score in scores]
        ordered: list[ExampleFields] = []
        while turn := [example for queue in queues for example in islice(queue, 1)]:
            ordered += turn
        return ordered


class Similar(_Seeded):
    """Order examples by the words that they share with the task's query: similarity of letters, not of meaning."""

    def select_examples(self, input_variables: dict[str, str]) -> list[ExampleFields]:
        """Return all examples, the most similar to the `query` first."""
        query = input_variables["query"]
        examples = shuffle_examples(self._examples, self._seed)
        return sorted(examples, key=lambda example: -fuzz.token_set_ratio(query, example["text"]))


BUILT_IN: dict[str, Selectors] = {"random": Random, "balanced": Balanced, "similar": Similar}
_CHOICES = f"{', '.join(BUILT_IN)}, or a callable as package.module.name"


def load_selector(choice: str) -> Selectors:
    """Return the factory of a selector: built in, or a callable by its path. Raises `ConfigError` if it is neither."""
    if choice in BUILT_IN:
        return BUILT_IN[choice]
    module, _, name = choice.rpartition(".")
    try:
        target = getattr(import_module(module), name) if module else None
    except Exception as error:  # importing a user's module may raise anything
        raise ConfigError(f"choice: {choice!r} cannot be found ({error}); name {_CHOICES}") from error
    if not callable(target):
        raise ConfigError(f"choice: there is no selector {choice!r}; name {_CHOICES}")
    try:
        inspect.signature(target).bind([], 0)
    except (TypeError, ValueError):
        raise ConfigError(f"choice: {choice!r} does not take examples and a seed, in this order; fix it") from None
    return cast(Selectors, target)


def order_examples(selectors: Selectors, examples: Sequence[Example], query: str, seed: int) -> list[Example]:
    """Return examples in a selector's order for a task's query, and of each item only the one that comes first.

    So an item that several reviewers rated is shown with the rating that the draw meets first, and one rated often is
    as likely to be met as its ratings are many. Raises `ConfigError` if the selector returns anything else.
    """
    by_digest = {example.digest: example for example in examples}
    records = [{**example.model_dump(), "digest": digest} for digest, example in by_digest.items()]
    try:
        selector = selectors(records, seed)
        is_selector = isinstance(selector, BaseExampleSelector)
        selected = selector.select_examples({"query": query}) if is_selector else None
    except Exception as error:  # a user's selector may raise anything
        raise ConfigError(f"choice: the selector failed: {type(error).__name__}: {error}; fix it") from error
    if not is_selector:
        raise ConfigError(f"choice: it gave a {type(selector).__name__}, and no example selector of langchain-core")
    if not isinstance(selected, list) or not all(isinstance(example, dict) for example in selected):
        raise ConfigError("choice: the selector did not return a list of the given examples; fix it")
    chosen = [str(example.get("digest")) for example in selected]
    if not set(chosen) <= by_digest.keys() or len(set(chosen)) < len(chosen):
        raise ConfigError("choice: the selector gave an example twice, or one that it was not given; fix it")
    by_item: dict[str, Example] = {}
    for digest in chosen:
        by_item.setdefault(by_digest[digest].key, by_digest[digest])
    return list(by_item.values())


def shuffle_examples(examples: Iterable[ExampleFields], *seed: int | str) -> list[ExampleFields]:
    """Return examples in an order that depends on the seed alone, not on the order of the input."""
    return sorted(examples, key=lambda example: digest_of([*seed, example["digest"]]))


def _unseen_items(examples: Iterable[ExampleFields], seen: set[str]) -> Iterator[ExampleFields]:
    for example in examples:
        if example["key"] not in seen:
            seen.add(example["key"])
            yield example
