"""A compact set of digests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.runs.store.digests import Digests
from jurygraph.schema import digest_of

NAMES = st.sets(st.text(max_size=70), max_size=40)


@given(NAMES, NAMES)
def test_only_added_digests_are_found(added: set[str], others: set[str]) -> None:
    digests = Digests(added)
    assert {one for one in added | others if one in digests} == added


def test_a_repeated_digest_is_stored_once() -> None:
    digests, name = Digests(), digest_of("a call")
    assert name not in digests
    for _ in range(5000):  # more often than there are initial slots
        digests.add(name)
    assert name in digests
    assert digest_of("another call") not in digests


def test_the_set_grows() -> None:
    names = [digest_of(number) for number in range(5000)]
    digests = Digests(names[::2])
    assert [one in digests for one in names] == [place % 2 == 0 for place in range(5000)]


def test_colliding_digests_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set grows when it is half full, so that the search from slot to slot finds a free one."""
    monkeypatch.setattr("jurygraph.runs.store.digests._number", lambda digest: 2 * int(digest))
    digests = Digests(map(str, range(1, 513)))
    assert all(str(number) in digests for number in range(1, 513))
    assert "600" not in digests
