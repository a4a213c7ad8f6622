"""Costs of a run's calls by the source of their replies, and the requests of a session."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import BudgetExceeded
from jurygraph.interchange.workbook import read_agent_sheet
from jurygraph.runs.reports.bill import (
    REPLY_SOURCES,
    CallBill,
    CallCosts,
    ReplySource,
    count_requests,
)
from jurygraph.runs.run import Run
from jurygraph.schema import Call
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import run_overview_context
from tests.models.server import TOKENS_IN, TOKENS_OUT, Server
from tests.runs.sample_runs import scored_session, write_tasks
from tests.runs.test_calls import CALLS_EACH, judge_config, tasks_with_rubrics

CALLS = 3 * 2 * CALLS_EACH
PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
PAID = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6


def call(name: str, cost: float | None = None) -> Call:
    return Call(id=name, provider="p", model="m", cost=cost)


def test_every_call_is_counted_once_by_its_source() -> None:
    bill = CallBill()
    for one, source in (
        (call("a", 0.25), "sent"),
        (call("b", 0.5), "cached"),
        (call("a", 0.25), "sent"),
    ):
        bill.add(one, source)  # type: ignore[arg-type]
    none = {"number": 0, "cost": 0.0, "unpriced": 0}
    assert bill.to_json() == {
        "sent": {"number": 1, "cost": 0.25, "unpriced": 0},
        "cached": {"number": 1, "cost": 0.5, "unpriced": 0},
        "carried": none,
        "replayed": none,
        "unanswered": none,
    }


def test_one_sentence_says_what_judgements_cost_and_what_of_that_was_paid_now() -> None:
    bill = CallBill()
    assert bill.describe() == "no call of a model"
    bill.add(call("a", 0.25), "sent")
    assert bill.describe() == "1 call of models, $0.2500"
    free, unknown, partly = CallBill(), CallBill(), CallBill()
    free.add(call("a", 0.0), "cached")
    assert free.describe() == (
        "1 call of models, $0.0000, of which $0.0000 was paid now, 1 answered from the cache or an earlier run"
    )
    unknown.add(call("a"), "cached")
    assert unknown.describe() == (
        "1 call of models, 1 answered from the cache or an earlier run, 1 without a known price"
    )
    partly.add(call("a", 0.5), "sent")
    partly.add(call("b"), "sent")
    assert partly.describe() == "2 calls of models, $0.5000, 1 without a known price"
    bill.add(call("b", 0.5), "cached")
    bill.add(call("c"), "carried")
    bill.add(call("d"), "unanswered")
    assert bill.describe() == (
        "4 calls of models, $0.7500, of which $0.2500 was paid now, "
        "2 answered from the cache or an earlier run, 1 without a known price, 1 without a reply"
    )


@pytest.mark.parametrize(
    ("fault", "attempts", "cost"),
    [("rejected", 1, 0.0), ("rejected", 2, None), ("server", 1, None)],
)
def test_a_refused_request_costs_nothing_if_it_was_sent_once(
    fault: str, attempts: int, cost: float | None
) -> None:
    bill = CallBill()
    bill.add(call("a").model_copy(update={"fault": fault, "attempts": attempts}), "unanswered")
    assert bill.to_json()["unanswered"]["cost"] == cost


SEEN = st.tuples(
    st.sampled_from("abcdef"),
    st.sampled_from(REPLY_SOURCES),
    st.none() | st.sampled_from([0.0, 0.25, 2.0]),
)


@given(st.lists(SEEN))
def test_the_sources_add_up_to_the_calls(seen: list[tuple[str, ReplySource, float | None]]) -> None:
    bill = CallBill()
    for name, source, cost in seen:
        bill.add(call(name, cost), source)
    first = {
        (name, source == "unanswered"): (source, cost) for name, source, cost in reversed(seen)
    }
    assert {
        source: tally.number for source, tally in bill.costs_by_source.items() if tally.number
    } == Counter(source for source, _ in first.values())
    for source, tally in bill.costs_by_source.items():
        costs = [cost for where, cost in first.values() if where == source]
        assert tally.cost == sum(cost for cost in costs if cost is not None)
        assert tally.unpriced == costs.count(None)


class SessionCosts(NamedTuple):
    """Costs of a session: numbers of calls by source, the bill, and the requests."""

    sources: dict[str, int]
    bill: CallBill
    requests: CallCosts | None


def score_for_costs(folder: Path, *given: Any, **more: Any) -> SessionCosts:
    with scored_session(folder, *given, **more) as scored:
        bill = scored.summary.bill
        return SessionCosts(
            {s: tally.number for s, tally in bill.costs_by_source.items() if tally.number},
            bill,
            count_requests(scored.job.jury),
        )


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, tasks_with_rubrics())


def priced_judge_config(server: Server, **calls: Any) -> dict[str, Any]:
    return judge_config(server, prices=PRICES, **calls)


class TestSources:
    def test_a_run_from_the_cache_bills_nothing_and_shows_the_original_cost(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        score_for_costs(tmp_path / "cold", tasks, priced_judge_config(server, cache=True))
        session_costs = score_for_costs(
            tmp_path / "warm", tasks, priced_judge_config(server, cache=True)
        )
        assert session_costs.sources == {"cached": CALLS}
        assert session_costs.bill.costs_by_source["cached"].cost == pytest.approx(CALLS * PAID)
        assert session_costs.requests == CallCosts()

    def test_a_branch_separates_carried_and_sent_calls_also_when_resumed(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        score_for_costs(tmp_path / "old", tasks, priced_judge_config(server))
        more = write_tasks(tmp_path, tasks_with_rubrics(4), "more.jsonl")
        session_costs = score_for_costs(
            tmp_path / "new", more, priced_judge_config(server), branch=tmp_path / "old"
        )
        assert session_costs.sources == {"sent": 2 * CALLS_EACH, "carried": CALLS}
        assert session_costs.requests is not None
        assert session_costs.requests.number == 2 * CALLS_EACH
        again = score_for_costs(
            tmp_path / "new", more, priced_judge_config(server), branch=tmp_path / "old"
        )
        assert (again.sources, again.bill) == (session_costs.sources, session_costs.bill)
        assert again.requests == CallCosts()
        # the page of the run and its workbook say the same
        with Run.open(tmp_path / "new") as run, closing(RunIndex(run)) as index:
            index.update()
            assert run_overview_context(index)["bill"] == again.bill.describe()
            (sheet,) = read_agent_sheet(run, 8).values()
            assert ("Cost", again.bill.describe()) in sheet.rows
        third = score_for_costs(
            tmp_path / "third", more, priced_judge_config(server), branch=tmp_path / "new"
        )
        assert third.sources == {"carried": CALLS + 2 * CALLS_EACH}

    def test_replayed_calls_cost_nothing(self, server: Server, tasks: Path, tmp_path: Path) -> None:
        score_for_costs(
            tmp_path / "run",
            tasks,
            priced_judge_config(server, record=str(tmp_path / "calls.jsonl")),
        )
        settings = {"model": f"replay:{tmp_path / 'calls.jsonl'}", "evaluators": ["criteria"]}
        session_costs = score_for_costs(tmp_path / "again", tasks, settings)
        assert session_costs.sources == {"replayed": CALLS}
        assert session_costs.bill.costs_by_source["replayed"] == CallCosts(number=CALLS)
        assert session_costs.requests is None


class TestSessions:
    def test_the_bill_covers_all_sessions_and_the_requests_one(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        first = score_for_costs(tmp_path / "run", tasks, priced_judge_config(server), limit=1)
        second = score_for_costs(tmp_path / "run", tasks, priced_judge_config(server))
        assert (first.sources, second.sources) == ({"sent": 2 * CALLS_EACH}, {"sent": CALLS})
        assert first.requests is not None
        assert second.requests is not None
        assert (first.requests.number, second.requests.number) == (
            2 * CALLS_EACH,
            CALLS - 2 * CALLS_EACH,
        )

    def test_calls_before_a_reached_limit_are_billed_and_not_repeated(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(BudgetExceeded):
            score_for_costs(
                tmp_path / "run", tasks, priced_judge_config(server, concurrency=1), max_calls=3
            )
        session_costs = score_for_costs(
            tmp_path / "run", tasks, priced_judge_config(server, concurrency=1)
        )
        assert session_costs.sources == {"sent": CALLS}
        assert session_costs.requests is not None
        assert session_costs.requests.number == CALLS - 3
