"""Confusions are shares, on one scale."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jurygraph.schema import digest_of
from jurygraph.schema.rating import Confusions
from tests.rows import all_rows

CONTENT: dict[str, Any] = {
    "format": "jurygraph-consensus/1",
    "classes": [0.0, 1.0],
    "prior": [0.25, 0.75],
    "annotators": {"ada": [[0.9, 0.1], [0.5, 0.5]]},
}


def test_every_field_changes_the_digest() -> None:
    assert Confusions.model_validate(CONTENT).digest == digest_of(CONTENT)


@given(
    classes=st.lists(st.text(min_size=1, max_size=9), min_size=2, max_size=5, unique=True),
    weights=st.lists(st.floats(0.01, 1.0), min_size=5, max_size=5),
)
def test_rows_that_sum_to_1_survive_json(classes: list[str], weights: list[float]) -> None:
    some = weights[: len(classes)]
    shares = tuple(one / sum(some) for one in some)
    known = Confusions(
        classes=tuple(classes), prior=shares, annotators={"ada": (shares,) * len(classes)}
    )
    assert Confusions.model_validate_json(known.model_dump_json()) == known


@all_rows(
    ("changed", "message"),
    [
        ({"prior": [0.25, 0.75 + 2e-9]}, "`prior` sums to"),
        ({"prior": [1.0]}, "`prior` has 1 shares"),
        ({"prior": [float("nan"), 1.0]}, "prior.0"),
        ({"prior": [-0.5, 1.5]}, "prior.0"),
        ({"prior": [1e-9, float("inf")]}, "prior.1"),
        ({"classes": [0.0], "prior": [1.0]}, "classes"),
        ({"classes": [0.0, 0.0]}, "`classes` names one twice"),
        ({"annotators": {}}, "annotators"),
        ({"annotators": {"ada": [[0.9, 0.1]]}}, "`annotators.ada` has 1 rows"),
        ({"annotators": {"ada": [[0.9, 0.1], [0.6, 0.5]]}}, r"`annotators.ada\[1\]` sums to"),
        ({"annotators": {"": [[0.9, 0.1], [0.5, 0.5]]}}, "annotators"),
        ({"format": "jurygraph-consensus/2"}, "format"),
        ({"rows": 3}, "rows"),
    ],
)
def test_invalid_confusions_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Confusions.model_validate(CONTENT | changed)
