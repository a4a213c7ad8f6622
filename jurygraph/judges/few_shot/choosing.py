"""Which of a history's examples a judge is shown first: langchain-core example selectors, without any luck.

Equal seeds and equal examples give an equal order on every machine, whatever order the examples came in.
"""

import importlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

from langchain_core.example_selectors import BaseExampleSelector
from rapidfuzz import fuzz

from jurygraph.errors import ConfigError
from jurygraph.judges.few_shot.sieve import Example
from jurygraph.schema import digest_of

T = TypeVar("T")
Shown = dict[str, Any]
"""An example as selectors see it: the fields of `Example`, and its `digest`."""
Selectors = Callable[[Sequence[Shown], int], BaseExampleSelector]


class _Seeded(BaseExampleSelector):
    """Examples, and the seed of the draw among them."""

    def __init__(self, examples: Sequence[Shown], seed: int) -> None:
        self._examples, self._seed = list(examples), seed

    def add_example(self, example: Shown) -> None:
        """Add one to choose from."""
        self._examples.append(example)


class Balanced(_Seeded):
    """Takes scores by turns, so that the examples cover the scale; which example of a score comes first is drawn."""

    def select_examples(self, input_variables: dict[str, str]) -> list[Shown]:
        """All examples, the first one first; the task's query changes nothing."""
        by_score: dict[float, list[Shown]] = {}
        for example in drawn(self._examples, self._seed):
            by_score.setdefault(example["score"], []).append(example)
        turns = zip_longest(*(by_score[score] for score in _shuffled(by_score, self._seed)))
        return [example for turn in turns for example in turn if example is not None]


class Similar(_Seeded):
    """Takes those first that share most words with the task's query: likeness in letters, not in meaning."""

    def select_examples(self, input_variables: dict[str, str]) -> list[Shown]:
        """All examples, the one most like the `query` first."""
        query = input_variables["query"]
        return sorted(
            drawn(self._examples, self._seed), key=lambda example: -fuzz.token_set_ratio(query, example["text"])
        )


OWN: dict[str, Selectors] = {"balanced": Balanced, "similar": Similar}


def selectors_of(choice: str) -> Selectors:
    """What makes a selector: a name of ours, or the dotted path of a callable that takes examples and a seed.

    Raises `ConfigError` where there is none such.
    """
    if choice in OWN:
        return OWN[choice]
    module, _, name = choice.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except Exception as error:  # a module of others may raise anything when it is imported
        raise ConfigError(f"choice: {choice!r} cannot be found ({error}); name {_known()}") from error
    if not callable(found):
        raise ConfigError(f"choice: there is no selector {choice!r}; name {_known()}")
    try:
        inspect.signature(found).bind([], 0)
    except (TypeError, ValueError):
        raise ConfigError(f"choice: {choice!r} does not take examples and a seed, in this order; mend it") from None
    made: Selectors = found
    return made


def _known() -> str:
    return f"{', '.join(OWN)}, or a callable as package.module.name"


def in_order(selectors: Selectors, examples: Sequence[Example], query: str, seed: int) -> list[Example]:
    """Examples as a selector orders them for a task's query. Raises `ConfigError` where it gives something else."""
    by_digest = {example.digest: example for example in examples}
    known = [{**example.model_dump(), "digest": digest} for digest, example in by_digest.items()]
    selector = _tried(lambda: selectors(known, seed))
    if not isinstance(selector, BaseExampleSelector):
        raise ConfigError(f"choice: it gave a {type(selector).__name__}, and no example selector of langchain-core")
    given = _tried(lambda: selector.select_examples({"query": query}))
    if not isinstance(given, list) or not all(isinstance(example, dict) for example in given):
        raise ConfigError("choice: the selector gave no list of the examples that it was given; mend it")
    chosen = [str(example.get("digest")) for example in given]
    if not set(chosen) <= by_digest.keys() or len(set(chosen)) < len(chosen):
        raise ConfigError("choice: the selector gave an example twice, or one that it was not given; mend it")
    return [by_digest[digest] for digest in chosen]


def _tried(call: Callable[[], T]) -> T:
    """What somebody's selector gives; whatever it raises is said of it."""
    try:
        return call()
    except Exception as error:
        raise ConfigError(f"choice: the selector failed: {type(error).__name__}: {error}; mend it") from error


def drawn(examples: Iterable[Shown], seed: int) -> list[Shown]:
    """Examples in an order that a seed draws, and that the order given does not change."""
    return sorted(examples, key=lambda example: digest_of([seed, example["digest"]]))


def _shuffled(scores: Iterable[float], seed: int) -> list[float]:
    return sorted(scores, key=lambda score: digest_of([seed, float(score)]))
