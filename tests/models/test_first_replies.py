"""A run whose first replies are all unusable for one reason stops; anything else lets it go on."""

import pytest

from jurygraph.errors import UnusableRepliesError
from jurygraph.models.gateway import LOOKED_AT, FirstReplies
from jurygraph.models.request import AnsweredCall, Fault, Reply
from jurygraph.schema import Call

PROSE = Fault("malformed", "the reply is not valid JSON")


def answered(number: int) -> AnsweredCall:
    return AnsweredCall(Reply(text=f"It is fine, no. {number}."), Call(id=f"c{number}", provider="p", model="m"))


def read(first: FirstReplies, *faults: Fault | None) -> None:
    """Let a reply with each of these faults arrive and be read."""
    for number, fault in enumerate(faults):
        first.expect(f"c{number}")
        first.note(answered(number), fault)


def test_twenty_unusable_replies_end_the_run_with_one_of_them_and_what_to_change() -> None:
    first = FirstReplies()
    read(first, *[PROSE] * (LOOKED_AT - 1))
    first.expect("c19")
    with pytest.raises(UnusableRepliesError) as stopped:
        first.note(answered(19), PROSE)
    assert str(stopped.value) == (
        "none of the first 20 replies can be used: the reply is not valid JSON; such as 'It is fine, no. 19.'; set "
        "calls.form (native or instructed), raise calls.max_tokens, or name another model"
    )


@pytest.mark.parametrize("other", [None, Fault("truncated", "cut off"), Fault("server", "503")])
def test_one_other_reply_lets_the_run_go_on(other: Fault | None) -> None:
    for place in (0, 7, LOOKED_AT - 1):
        first = FirstReplies()
        faults: list[Fault | None] = [PROSE] * 40
        faults[place] = other
        read(first, *faults)
        assert first.problem is None


def test_only_the_first_to_arrive_are_looked_at_and_stored_ones_never() -> None:
    first = FirstReplies()
    for number in range(100, 150):
        first.note(answered(number), PROSE)
    assert first.problem is None
    for number in range(LOOKED_AT):
        first.expect(f"c{number}")
    first.expect("c99")
    first.note(answered(99), None)
    for number in range(LOOKED_AT - 1):
        first.note(answered(number), PROSE)
    with pytest.raises(UnusableRepliesError):
        first.note(answered(LOOKED_AT - 1), PROSE)
