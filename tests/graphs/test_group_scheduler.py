"""The scheduler: how many groups are in work at once."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from jurygraph.graphs.active_groups import ActiveGroups
from jurygraph.graphs.group_scheduler import GroupScheduler
from jurygraph.graphs.groups import Group, GroupOutcome
from jurygraph.schema import Response, Task
from tests.virtual_time import run


@pytest.mark.parametrize(("size", "in_work"), [(1, 32), (2, 16), (16, 4), (64, 2), (500, 1)])
def test_so_many_responses_are_in_work_and_more_where_groups_are_large(
    size: int, in_work: int
) -> None:
    """The usual number is 32, or that of four groups, but 128 at most."""
    begun: list[Group] = []

    async def admit_groups(
        groups: Sequence[Group], active_groups: ActiveGroups
    ) -> list[asyncio.Future[GroupOutcome]]:
        begun.extend(groups)
        return [asyncio.get_running_loop().create_future() for _ in groups]  # none ever finishes

    def make_group(number: int) -> Group:
        responses = [Response(id=f"{number}/{place}", text="4") for place in range(size)]
        return Group(Task(id=str(number), query="2 + 2?"), responses)

    async def count_begun() -> int:
        scheduler = GroupScheduler(
            groups=map(make_group, range(200)),
            admit_groups=admit_groups,
            batch_size=8,
            max_responses=128,
            target_response_count=32,
            target_group_count=4,
            may_plan_by_model=False,
            langsmith=False,
        )
        async with aclosing(scheduler.run()) as results:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await anext(results)
        return len(begun)

    assert run(count_begun()) == in_work
