"""Shards: every task is in exactly one, and the shares of a limit never exceed it."""

from decimal import Decimal
from fractions import Fraction

import pytest

from jurygraph.errors import InputError
from jurygraph.sources import Shard
from tests.rows import all_rows


def shards(number: int) -> list[Shard]:
    return [Shard.parse(f"{index}/{number}") for index in range(1, number + 1)]


@all_rows("number", [1, 2, 3, 7, 64])
def test_every_task_is_in_one_shard_and_stays_there(number: int) -> None:
    names = [f"task-{name}" for name in range(500)] + ["ä", "\ud800", ""]
    members = [sum(shard.includes_task(name) for name in names) for shard in shards(number)]
    assert sum(members) == len(names)
    assert min(members) > len(names) / number / 4, "the shares are of about one size"
    owner = Shard(index=2, of=2)
    assert [owner.includes_task(f"task-{name}") for name in range(3, 6)] == [True, False, True]


@all_rows(
    "number, calls, cost", [(2, 1, 0.1), (3, 100, 1.0), (7, 0, 0.0), (5, 3, 1e-9), (9, 17, 5)]
)
def test_the_shares_of_a_limit_are_within_it(number: int, calls: int, cost: float) -> None:
    assert sum(shard.call_limit_share(calls) or 0 for shard in shards(number)) == calls
    amounts = [Decimal(str(shard.budget_share(cost))) for shard in shards(number)]
    assert Fraction(sum(amounts)) <= Fraction(Decimal(str(cost)))
    assert float(sum(amounts)) == pytest.approx(cost)
    assert shards(number)[0].call_limit_share(None) is shards(number)[0].budget_share(None) is None


@all_rows("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1 / 2"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write I/N"):
        Shard.parse(text)
