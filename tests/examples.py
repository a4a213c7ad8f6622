"""How much of a test runs in `make test`: the examples of its properties, and which of its parameters."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

QUICK_EXAMPLES = 8


def at_most(examples: int, quick: int = QUICK_EXAMPLES) -> int:
    """So many, but in `make test` no more than 8, or than `quick`."""
    return min(examples, quick) if settings.get_current_profile_name() == "quick" else examples


def some_or_all(name: str, some: Any, every: Any) -> pytest.MarkDecorator:
    """Return the parameter `name`, a number or a collection: of `make test`, and of `make test-exhaustive`."""
    cases = [
        pytest.param(some, id="some"),
        pytest.param(every, id="all", marks=pytest.mark.exhaustive),
    ]
    return pytest.mark.parametrize(name, cases)


def one_in(step: int, cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return all cases as parameters, of which only the first of every `step` runs in `make test`."""
    return [
        pytest.param(*case, marks=() if place % step == 0 else pytest.mark.exhaustive)
        for place, case in enumerate(cases)
    ]
