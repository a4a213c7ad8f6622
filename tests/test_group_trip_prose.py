"""The example of group trips in words: with a model that reads, utilities are those of the plans as data."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.group_trip import prose
from examples.group_trip.layouts import LAYOUTS
from jurygraph import Jury, Task, Trace
from jurygraph.schema import Response, TaskLine
from jurygraph.sources import read_config, read_tasks
from tests.agents.extraction.extractor import fenced_text, read_perfectly, reader_script
from tests.models.judge_scripts import requested_items
from tests.models.server import Answer, Server, reply_with, run_server

ROOT = Path(__file__).parent.parent
TRIP = ROOT / "examples" / "group_trip"
CONFIG: Any = read_config(TRIP / "prose.yaml").model_dump(mode="json", exclude_defaults=True)
DECIDED = {"layers": {"fact": 0.4, "check": 0.6}, "temperature": 2, "cap": 0.5}
"""Weights where no model judges."""

Group = tuple[Task, tuple[Response, ...]]


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    return list(read_tasks(TRIP / "prose.jsonl.gz"))


@pytest.fixture(scope="module")
def own() -> dict[str, Group]:
    """The same plans as data."""
    return {task.id: (task, responses) for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")}


@pytest.fixture(autouse=True, scope="module")
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def model(body: dict[str, Any], number: int) -> Answer:
    """Takes out what a plan lays down; and judges a wish by what it has read of nights and sights."""
    names = requested_items(body)
    if "days" in names:
        return reader_script(lambda text, query: read_perfectly(text))(body, number)
    text = fenced_text(str(body["messages"][1]["content"]), "response")
    stay = read_perfectly(text)["stays"][0]["quote"]
    served = max(0, 4 - len(read_perfectly(text)["attractions"]) // 4)
    return reply_with(json.dumps({name: {"reason": "few sights", "quotes": [stay], "value": served} for name in names}))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server(model) as running:
        yield running


def asking(server: Server, **changes: Any) -> Jury:
    return Jury.from_config({**CONFIG, "model": f"openai-compatible:{server.url}#tiny", **changes})


@pytest.fixture(scope="module")
def traces(server: Server, groups: list[Group]) -> dict[str, Trace]:
    """The traces of the example as it is shipped, with a model."""
    with asking(server) as jury:
        return {trace.response_id: trace for task, responses in groups for trace in jury.score(task, responses)}


# What is shipped


def test_ten_groups_tell_their_six_plans_in_words_alone(groups: list[Group], own: dict[str, Group]) -> None:
    assert len(groups) == 10
    told = [response for _, responses in groups for response in responses]
    assert {response.labels["layout"] for response in told} == set(LAYOUTS)
    for task, responses in groups:
        assert [one.id for one in responses] == [one.id for one in own[task.id][1]]
        assert all(one.data is None and one.text for one in responses)
        assert [one.labels.get("fault") for one in responses] == [one.labels.get("fault") for one in own[task.id][1]]


def test_one_traveller_of_each_group_wishes_what_no_check_decides(groups: list[Group]) -> None:
    for task, _ in groups:
        unchecked = [(s.id, c.text, c.kind) for s in task.stakeholders for c in s.constraints if c.check is None]
        assert unchecked == [(task.stakeholders[-1].id, prose.UNHURRIED["text"], "soft")]


def test_the_tasks_are_what_the_script_makes_of_the_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tasks.jsonl.gz").write_bytes((TRIP / "tasks.jsonl.gz").read_bytes())
    monkeypatch.setattr(prose, "HERE", tmp_path)
    prose.main()
    made, shipped = (gzip.decompress((folder / "prose.jsonl.gz").read_bytes()) for folder in (tmp_path, TRIP))
    assert made == shipped


# With a model


@pytest.mark.landing
def test_everything_is_judged_and_each_utility_is_of_facts_checks_and_a_judgement(
    groups: list[Group], traces: dict[str, Trace]
) -> None:
    assert {(one.reward.status, one.reward.coverage) for one in traces.values()} == {("ok", 1.0)}
    for task, responses in groups:
        last = task.stakeholders[-1].id
        for response in responses:
            layers = {(v.stakeholder, v.layer) for v in traces[response.id].verdicts}
            assert layers == {(s.id, layer) for s in task.stakeholders for layer in ("fact", "check")} | {
                (last, "model")
            }
            assert set(traces[response.id].reward.parts["stakeholders"]) == {s.id for s in task.stakeholders}


def test_a_plan_is_taken_out_once_for_all_travellers(
    groups: list[Group], traces: dict[str, Trace], server: Server
) -> None:
    extractions = [seen for seen in server.requests if "days" in requested_items(seen.body)]
    texts = {fenced_text(seen.body["messages"][1]["content"], "response") for seen in extractions}
    assert texts == {response.text for _, responses in groups for response in responses}
    for trace in traces.values():
        data, claims = (next(one for one in trace.material if one.name == name) for name in ("data", "claims"))
        assert (data.status, claims.status) == ("ok", "ok")
        assert data.call is not None


def test_a_claim_leads_to_the_words_that_make_it(groups: list[Group], traces: dict[str, Trace]) -> None:
    invented = [one for _, responses in groups for one in responses if one.labels.get("fault") == "invented restaurant"]
    assert len(invented) == 10
    for response in invented:
        trace = traces[response.id]
        claims, data = (next(one for one in trace.material if one.name == name) for name in ("claims", "data"))
        found: Any = claims.data
        (claim,) = [one for one in found["meals"] if one["found"] != "confirmed"]
        (words,) = [one for one in data.evidence if one.of == claim["at"][0]]
        assert words.quote.split() == ["The", "Gilded", "Lantern"]
        assert response.text[words.start : words.end] == words.quote


@pytest.mark.exhaustive
def test_the_reference_plan_ranks_first_by_facts_and_checks(
    server: Server, groups: list[Group], own: dict[str, Group]
) -> None:
    """And rewards are, bit for bit, those of the plans' own data."""
    evaluators = [one for one in CONFIG["evaluators"] if one["use"] != "preferences"]
    decided = {"evaluators": evaluators, "weights": DECIDED}
    with asking(server, **decided) as reader, Jury.from_config({**decided, "derivers": ["facts.claims"]}) as knower:
        for task, responses in groups:
            task_of_data, plans = own[task.id]
            told = reader.score(_without_the_wish(task), responses)
            known = knower.score(task_of_data, plans)
            assert [one.reward.model_dump_json() for one in told] == [one.reward.model_dump_json() for one in known]
            first, *others = (one.reward.value for one in told)
            assert first is not None
            assert all(other is not None and other < first for other in others)


def _without_the_wish(task: Task) -> Task:
    *others, last = task.stakeholders
    constraints = tuple(one for one in last.constraints if one.id != prose.UNHURRIED["id"])
    return task.model_copy(update={"stakeholders": (*others, last.model_copy(update={"constraints": constraints}))})


# Without one


def test_without_a_model_everything_that_rests_on_one_abstains(groups: list[Group]) -> None:
    with Jury.from_config(CONFIG) as jury:
        for trace in jury.score(*groups[0]):
            assert {(one.status, one.failure and one.failure.kind) for one in trace.verdicts} == {
                ("abstained", "no-model")
            }
            assert trace.reward.value is None


def test_a_task_of_records_is_read_as_it_was_written() -> None:
    with gzip.open(TRIP / "prose.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            assert TaskLine.model_validate_json(line, strict=True)
