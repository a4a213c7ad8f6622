"""What a run's calls cost, by where their replies came from, and what a sitting sent."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import BudgetExceeded
from jurygraph.runs.reports.estimate import SOURCES, Bill, CallCosts, ReplySource, count_requests
from jurygraph.schema import Call
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Server, serving, status
from tests.runs.judge import by_what_is_shown
from tests.runs.made import PLAIN, sat, write_tasks
from tests.runs.made import lines as without_rubrics
from tests.runs.test_calls import CALLS_EACH, lines, plain

CALLS = 3 * 2 * CALLS_EACH
PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
PAID = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6


def call(name: str, cost: float | None = None) -> Call:
    return Call(id=name, provider="p", model="m", cost=cost)


def test_every_call_is_counted_once_where_its_reply_came_from() -> None:
    bill = Bill()
    for one, source in ((call("a", 0.25), "sent"), (call("b", 0.5), "cached"), (call("a", 0.25), "sent")):
        bill.add(one, source)  # type: ignore[arg-type]
    none = {"number": 0, "cost": 0.0, "unpriced": 0}
    assert bill.to_json() == {
        "sent": {"number": 1, "cost": 0.25, "unpriced": 0},
        "cached": {"number": 1, "cost": 0.5, "unpriced": 0},
        "carried": none,
        "replayed": none,
    }


def test_a_cost_of_which_nothing_is_known_is_not_a_cost_of_nothing() -> None:
    tally = CallCosts()
    tally.add(None)
    assert tally.to_json() == {"number": 1, "cost": None, "unpriced": 1}
    tally.add(0.5)
    assert tally.to_json() == {"number": 2, "cost": 0.5, "unpriced": 1}


SEEN = st.tuples(st.sampled_from("abcdef"), st.sampled_from(SOURCES), st.none() | st.sampled_from([0.0, 0.25, 2.0]))


@given(st.lists(SEEN))
def test_the_sources_add_up_to_the_calls(seen: list[tuple[str, ReplySource, float | None]]) -> None:
    bill = Bill()
    for name, source, cost in seen:
        bill.add(call(name, cost), source)
    first = {name: (source, cost) for name, source, cost in reversed(seen)}
    assert {source: tally.number for source, tally in bill.tallies.items() if tally.number} == Counter(
        source for source, _ in first.values()
    )
    for source, tally in bill.tallies.items():
        costs = [cost for where, cost in first.values() if where == source]
        assert tally.cost == sum(cost for cost in costs if cost is not None)
        assert tally.unpriced == costs.count(None)


class Sat(NamedTuple):
    """What a sitting came to: how many calls of each source, the bill itself, and the requests."""

    sources: dict[str, int]
    bill: Bill
    requests: CallCosts | None


def sit(folder: Path, *given: Any, **more: Any) -> Sat:
    with sat(folder, *given, **more) as session:
        bill = session.summary.bill
        return Sat(
            {s: tally.number for s, tally in bill.tallies.items() if tally.number}, bill, count_requests(session.jury)
        )


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, lines())


def priced(server: Server, **calls: Any) -> dict[str, Any]:
    return plain(server, prices=PRICES, **calls)


class TestSources:
    def test_what_the_model_answers_is_sent_and_billed(self, server: Server, tasks: Path, tmp_path: Path) -> None:
        sat = sit(tmp_path / "run", tasks, priced(server))
        assert sat.sources == {"sent": CALLS}
        assert sat.bill.tallies["sent"].cost == pytest.approx(CALLS * PAID)
        assert sat.requests is not None
        assert (sat.requests.number, sat.requests.unpriced) == (CALLS, 0)
        assert sat.requests.cost == pytest.approx(CALLS * PAID)

    def test_a_warm_run_bills_nothing_and_tells_what_it_cost_once(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "cold", tasks, priced(server, cache=True))
        sat = sit(tmp_path / "warm", tasks, priced(server, cache=True))
        assert sat.sources == {"cached": CALLS}
        assert sat.bill.tallies["cached"].cost == pytest.approx(CALLS * PAID)
        assert sat.requests == CallCosts()

    def test_what_a_branch_carried_over_was_not_sent_by_it(self, server: Server, tasks: Path, tmp_path: Path) -> None:
        sit(tmp_path / "old", tasks, priced(server))
        sat = sit(tmp_path / "new", tasks, priced(server), branch=tmp_path / "old")
        assert sat.sources == {"carried": CALLS}
        assert sat.bill.tallies["carried"].cost == pytest.approx(CALLS * PAID)
        assert sat.requests == CallCosts()

    def test_a_branch_that_asks_some_tells_both_apart_whenever_it_is_looked_at(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "old", tasks, priced(server))
        more = write_tasks(tmp_path, lines(4), "more.jsonl")
        sat = sit(tmp_path / "new", more, priced(server), branch=tmp_path / "old")
        assert sat.sources == {"sent": 2 * CALLS_EACH, "carried": CALLS}
        assert sat.requests is not None
        assert sat.requests.number == 2 * CALLS_EACH
        again = sit(tmp_path / "new", more, priced(server), branch=tmp_path / "old")
        assert (again.sources, again.bill) == (sat.sources, sat.bill)
        assert again.requests == CallCosts()
        third = sit(tmp_path / "third", more, priced(server), branch=tmp_path / "new")
        assert third.sources == {"carried": CALLS + 2 * CALLS_EACH}

    def test_a_recording_answers_for_nothing_and_nothing_is_sent(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "run", tasks, priced(server, record=str(tmp_path / "calls.jsonl")))
        settings = {"model": f"replay:{tmp_path / 'calls.jsonl'}", "evaluators": ["criteria"]}
        sat = sit(tmp_path / "again", tasks, settings)
        assert sat.sources == {"replayed": CALLS}
        assert sat.bill.tallies["replayed"] == CallCosts(number=CALLS)
        assert sat.requests is None

    def test_who_asks_no_model_sends_nothing(self, tmp_path: Path) -> None:
        sat = sit(tmp_path / "run", write_tasks(tmp_path, without_rubrics(1)), PLAIN)
        assert (sat.sources, sat.requests) == ({}, None)


class TestSittings:
    def test_a_run_tells_of_all_sittings_and_the_requests_are_those_of_one(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        first = sit(tmp_path / "run", tasks, priced(server), limit=1)
        second = sit(tmp_path / "run", tasks, priced(server))
        assert (first.sources, second.sources) == ({"sent": 2 * CALLS_EACH}, {"sent": CALLS})
        assert first.requests is not None
        assert second.requests is not None
        assert (first.requests.number, second.requests.number) == (2 * CALLS_EACH, CALLS - 2 * CALLS_EACH)

    def test_what_was_sent_before_a_limit_was_reached_is_in_the_bill_and_not_sent_again(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(BudgetExceeded):
            sit(tmp_path / "run", tasks, priced(server, concurrency=1), max_calls=3)
        sat = sit(tmp_path / "run", tasks, priced(server, concurrency=1))
        assert sat.sources == {"sent": CALLS}
        assert sat.requests is not None
        assert sat.requests.number == CALLS - 3

    def test_requests_that_come_to_nothing_are_told_with_the_most_that_they_may_cost(
        self, tasks: Path, tmp_path: Path
    ) -> None:
        with serving(lambda body, number: status(500)) as server:
            sat = sit(tmp_path / "run", tasks, priced(server, attempts=3, outage={"after": 1000}))
            assert server.count == 3 * CALLS
        assert sat.sources == {}
        assert sat.requests is not None
        assert (sat.requests.number, sat.requests.unpriced) == (3 * CALLS, 0)
        assert sat.requests.cost >= 3 * CALLS * 1024 * 10.0 / 1e6, "a server that failed may have billed all the same"

    def test_and_so_are_attempts_before_the_one_that_was_answered(self, tasks: Path, tmp_path: Path) -> None:
        seen: set[str] = set()

        def script(body: dict[str, Any], number: int) -> Answer:
            again = (asked := str(body["messages"])) in seen
            seen.add(asked)
            return by_what_is_shown(body, number) if again else status(503)

        with serving(script) as server:
            sat = sit(tmp_path / "run", tasks, plain(server))
        assert sat.sources == {"sent": CALLS}
        assert sat.requests == CallCosts(number=2 * CALLS, unpriced=2 * CALLS)
