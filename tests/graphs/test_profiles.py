"""The plan of a task that tells of stakeholders in text alone: it rests on what their profiles were read as."""

import asyncio
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.agents.registry import load_combiners
from jurygraph.errors import InputError, PlanError
from jurygraph.schema import EvaluatorRecord, Plan, Response, Task
from jurygraph.schema.task import PROFILES_FILE_SOURCE, Profiles, ProfilesLine, apply_profiles
from jurygraph.sources import parse_config_mapping
from tests.agents.parser import ANN, BEN, ZOE, parser_script, settings, tension, trip
from tests.graphs.scenes import decide
from tests.graphs.scripted import evaluator_use, make_plan
from tests.models.server import run_server

TENSIONS = [tension(1, 2, "high")]
BY_HAND: dict[str, Any] = {
    "task": "trip",
    "stakeholders": [
        {
            "id": "ben",
            "constraints": [
                {"id": "zz", "text": "Cheap.", "kind": "soft"},
                {"id": "aa", "kind": "hard"},
            ],
        },
        {
            "id": "ann",
            "profile": ANN,
            "constraints": [{"id": "nuts", "kind": "hard", "restrictiveness": 2.0}],
        },
    ],
    "tensions": [{"between": ["ben", "ann"], "strength": 0.75, "reason": "the sea is dear"}],
}
JUDGE = evaluator_use("kind", audience="stakeholder")


def profiles_line(**change: Any) -> ProfilesLine:
    return ProfilesLine.model_validate({**BY_HAND, **change})


def plan_of(
    about: Task, by_hand: ProfilesLine | None = None, requests: int | None = None, **fields: Any
) -> Plan:
    """Return the plan made with a model that reads profiles; `requests` is the expected number of requests."""
    with run_server(parser_script(tensions=TENSIONS)) as server:
        with jg.Jury.from_config({**settings(server.url), **fields}) as jury:
            plan = jury.prepare(about, by_hand)
        assert requests in (None, server.count)
    return plan


def profiles_of(plan: Plan) -> Profiles:
    assert plan.profiles is not None
    return plan.profiles


def test_traces_equal_those_of_a_task_with_the_parsed_constraints() -> None:
    about = trip(ANN, BEN)
    plan = plan_of(about, requests=3)
    whole = apply_profiles(about, profiles_of(plan))
    by_hand = make_plan({"evaluators": [JUDGE]}, Task.model_validate(whole.model_dump()))
    assert plan.survey == by_hand.survey
    ((spec,), (other,)) = (one.decision.specs for one in (plan, by_hand))
    assert {name: one.input_weight for name, one in spec.inputs.items()} == {
        n: one.input_weight for n, one in other.inputs.items()
    }
    assert spec.params["difficulty"]["ann"]["hard"] == 1.5  # type: ignore[index, call-overload]
    assert spec.params["difficulty"]["ben"]["conflict"] == 1.5  # type: ignore[index, call-overload]
    assert plan.task_digest == about.content_digest, "it serves the task as it is given"


def test_only_profiles_in_text_alone_are_read() -> None:
    people = [
        {
            "id": "ann",
            "profile": ANN,
            "constraints": [{"id": "own", "text": "Its own.", "kind": "soft"}],
        },
        {"id": "ben", "profile": BEN},
        {"id": "cy"},
    ]
    plan = plan_of(trip(stakeholders=people), requests=2)
    assert profiles_of(plan).by == {"ben": "tiny, prompt profile 2"}


def test_a_profile_without_constraints_or_model_is_an_error_with_a_remedy() -> None:
    expected = r"'ann' has a profile in text alone.*in the task or in a file for --profiles-from, or name a model"
    with pytest.raises(PlanError, match=expected):
        make_plan({"evaluators": [JUDGE]}, trip(ANN))


class TestByHand:
    def test_written_profiles_replace_the_model(self) -> None:
        for model in ({}, {"model": "none"}):
            found = profiles_of(plan_of(trip(ANN, BEN), profiles_line(), requests=0, **model))
            assert found.by == {"ann": PROFILES_FILE_SOURCE, "ben": PROFILES_FILE_SOURCE}
            assert [[one.id for one in each.constraints] for each in found.stakeholders] == [
                ["nuts"],
                ["aa", "zz"],
            ]
            assert [(one.between, one.strength) for one in found.tensions] == [
                (("ann", "ben"), 0.75)
            ]

    def test_missing_profiles_and_tensions_are_requested_from_the_model(self) -> None:
        own = {"stakeholders": BY_HAND["stakeholders"][:1]}
        found = profiles_of(plan_of(trip(ANN, BEN), profiles_line(**own), requests=1))
        assert found.by == {"ben": PROFILES_FILE_SOURCE, "ann": "tiny, prompt profile 2"}
        assert (found.tensions[0].strength, found.tensions_by) == (0.75, PROFILES_FILE_SOURCE)
        assert [one.id for one in found.stakeholders] == ["ann", "ben"]
        found = profiles_of(
            plan_of(trip(ANN, BEN), profiles_line(**own, tensions=None), requests=2)
        )
        assert (found.tensions[0].strength, found.tensions_by) == (1.5, "tiny, prompt tensions 1")
        assert (
            profiles_of(
                plan_of(trip(ANN, BEN), profiles_line(**own, tensions=[]), requests=1)
            ).tensions
            == ()
        )

    @pytest.mark.parametrize(
        ("change", "wrong"),
        [
            (
                {"task": "tour"},
                "field task: is 'tour'; name task 'trip', or give it the line of that",
            ),
            (
                {"tensions": [{"between": ["ann", "zoe"]}]},
                r"field tensions\[0\].between\[1\]: names 'zoe', which is no",
            ),
        ],
        ids=["another task", "nobody"],
    )
    def test_profiles_that_do_not_fit_the_task_are_refused(
        self, change: dict[str, Any], wrong: str
    ) -> None:
        with pytest.raises(InputError, match=f"^profiles of task 'trip', {wrong}"):
            plan_of(trip(ANN, BEN), profiles_line(**change))

    def test_the_terms_of_the_weights_contain_the_reason_of_a_tension(self) -> None:
        (spec,) = plan_of(trip(ANN, BEN), profiles_line()).decision.specs
        assert spec.params["difficulty"]["ann"]["tensions"] == {  # type: ignore[index, call-overload]
            "ben": {"strength": 0.75, "why": ["the sea is dear"]}
        }


def test_another_decision_uses_the_task_with_the_parsed_profiles() -> None:
    about = trip(ANN, BEN, ZOE)
    plan = plan_of(about)
    config = parse_config_mapping({"evaluators": [JUDGE], "weights": {"temperature": 1.5}})
    whole = apply_profiles(about, profiles_of(plan))
    seats = {"kind": EvaluatorRecord(version="1", audience="stakeholder")}
    again = decide(whole, plan.survey, config, seats, load_combiners(config, ()))
    assert again == plan_of(about, weights={"temperature": 1.5}).decision
    assert again != plan.decision


class TestBeforeAnythingIsSent:
    def test_a_dry_run_lists_the_first_requests_and_sends_nothing(self) -> None:
        with (
            run_server(parser_script()) as server,
            jg.Jury.from_config(settings(server.url)) as jury,
        ):
            plan, first = asyncio.run(jg.Planner(jury).aestimate_plan(trip(ANN, BEN)))
            assert plan is None
            assert [request.prompt for request in first] == ["profile", "profile"]
            group = [Response(id="a", text="")]
            assert asyncio.run(jg.Planner(jury).aestimate_requests(trip(ANN, BEN), group)) == first
            assert server.count == 0

    def test_a_dry_run_sends_no_request_for_known_profiles(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path))
        with run_server(parser_script()) as server:
            config = settings(server.url, calls={"cache": True})
            with jg.Jury.from_config(config) as jury:
                made = jury.prepare(trip(ANN, BEN))
            with jg.Jury.from_config(config) as jury:
                plan, requests = asyncio.run(jg.Planner(jury).aestimate_plan(trip(ANN, BEN)))
                assert server.count == 3
                assert (plan is not None and plan.digest, len(requests)) == (made.digest, 3)
                assert jury.gateway is not None
                assert {jury.gateway.find_reply_source(request) for request in requests} == {
                    "cache"
                }
                _, requests = asyncio.run(jg.Planner(jury).aestimate_plan(trip(ANN, ZOE)))
                (request,) = (
                    one for one in requests if jury.gateway.find_reply_source(one) is None
                )
                assert ZOE in request.messages[1].content
