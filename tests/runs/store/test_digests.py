"""A set of digests that takes little memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.runs.store.digests import Digests
from jurygraph.schema import digest_of

NAMES = st.sets(st.text(max_size=70), max_size=40)


@given(NAMES, NAMES)
def test_what_was_added_is_found_and_nothing_else(added: set[str], others: set[str]) -> None:
    digests = Digests(added)
    assert {one for one in added | others if one in digests} == added


def test_one_that_is_added_again_is_there_once() -> None:
    digests, name = Digests(), digest_of("a call")
    assert name not in digests
    for _ in range(5000):  # more often than there are slots to begin with
        digests.add(name)
    assert name in digests
    assert digest_of("another call") not in digests


def test_it_grows_with_what_is_added() -> None:
    names = [digest_of(number) for number in range(5000)]
    digests = Digests(names[::2])
    assert [one in digests for one in names] == [place % 2 == 0 for place in range(5000)]


def test_as_many_as_fall_on_every_other_slot_are_found_and_another_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set is half full when it grows: until then there is a free slot for whoever looks on, one by one."""
    monkeypatch.setattr("jurygraph.runs.store.digests._number", lambda digest: 2 * int(digest))
    digests = Digests(map(str, range(1, 513)))
    assert all(str(number) in digests for number in range(1, 513))
    assert "600" not in digests
