"""Packed records: everything survives bit for bit, and no text is in a body."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jurygraph.decision.decide import RewardRow
from jurygraph.runs.store.packing import (
    ERASED_PLACEHOLDER,
    Texts,
    count_by_component,
    number_shared_id_lists,
    pack_reward,
    pack_trace,
    read_shared_id_lists,
    shown_response_ids,
    unpack_failure_message,
    unpack_material,
    unpack_response_metadata,
    unpack_reward,
    unpack_verdict,
)
from jurygraph.schema import (
    Call,
    Evidence,
    Failure,
    Material,
    Question,
    RecordedVerdict,
    Response,
    Survey,
    SurveyWithoutTexts,
    TaskView,
    Trace,
    Wave,
)
from tests.graphs.scenes import Scene, scenes

VIEW = TaskView(id="t", query="?")
QUESTION = Question(id="q", evaluator="own.e", version="1", subject="e", view=VIEW.digest)
SURVEY = SurveyWithoutTexts.of(
    Survey(views={VIEW.digest: VIEW}, questions=(QUESTION,), waves=(Wave(questions=("q",)),))
)
STAMP = {"question": "q", "evaluator": "own.e", "version": "1", "subject": "e"}

SECRET = "a secret that somebody wrote"
words = st.text(max_size=20)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


class TestReward:
    def test_discarded_verdicts_are_counted_by_component(self) -> None:
        figures = {
            "tone": {"discarded": 2.0},
            "wit": {"discarded": 0.0},
            "rubric": {"spread over samples": 0.5},
        }
        assert count_by_component({"diagnostics": figures}, "discarded") == {"tone": 2}
        assert count_by_component({}, "discarded") == {}

    @given(scenes())
    def test_a_reward_survives_bit_for_bit(self, scene: Scene) -> None:
        decision = scene.plan.decision
        for reward in scene.rewards().values():
            packed = through_json(pack_reward(RewardRow.from_reward(reward)))
            assert unpack_reward(packed, decision).model_dump_json() == reward.model_dump_json()


@st.composite
def verdicts(draw: st.DrawFn) -> RecordedVerdict:
    status = draw(st.sampled_from(["ok", "abstained", "failed", "not_applicable"]))
    failure = st.builds(
        Failure,
        cause=st.sampled_from(["response", "infrastructure"]),
        kind=st.just("k"),
        message=words,
    )
    evidence = st.builds(
        Evidence,
        quote=words,
        start=st.none() | st.integers(0, 9),
        end=st.none(),
        source=st.just("response"),
        verified=st.booleans(),
        of=st.none() | st.sampled_from(["r", "s"]),
    )
    return RecordedVerdict(
        **STAMP,
        about="r",
        responses=draw(st.sampled_from([("r",), ("r", "s"), ()])),
        sample=draw(st.integers(0, 2)),
        score=draw(st.floats(0, 1)) if status == "ok" else None,
        met=draw(st.sampled_from([None, True, False])),
        native=draw(st.none() | st.booleans() | st.floats(-9, 9) | words),
        scale=draw(st.sampled_from([None, (0.0, 10.0)])),
        confidence=draw(st.none() | st.floats(0, 1)),
        status=status,
        failure=draw(failure if status == "failed" else st.none() | failure),
        gated_by=draw(st.none() | st.just("q")),
        reason=draw(words),
        evidence=draw(st.lists(evidence, max_size=2)),
        call=draw(st.none() | st.just("call-1")),
    )


def trace(*found: RecordedVerdict, **fields: Any) -> Trace:
    reward = {
        "value": 0.5,
        "status": "ok",
        "partial": 0.5,
        "coverage": 1.0,
        "range": None,
        "components": {},
        "terms": (),
        "counts": {},
    }
    return Trace.model_validate(
        {
            "task_id": "t",
            "response_id": "r",
            "group": "g",
            "plan_digest": "p",
            "reward": reward,
            "verdicts": found,
            **fields,
        }
    )


RESPONSE = Response(id="r", text="text")


def pack(given_trace: Trace, response: Response = RESPONSE) -> tuple[dict[str, Any], Texts]:
    body, texts = pack_trace(given_trace, response, SURVEY, {}, 1, {})
    return through_json(body), texts


class TestVerdict:
    @given(verdicts())
    def test_a_verdict_survives(self, verdict: RecordedVerdict) -> None:
        body, texts = pack(trace(verdict))
        again = unpack_verdict(body["verdicts"][0], "r", SURVEY, dict(enumerate(texts)), ())
        assert again.model_dump_json() == verdict.model_dump_json()

    def test_the_body_contains_no_written_text(self) -> None:
        verdict = RecordedVerdict(
            **STAMP,
            about="r",
            responses=("r",),
            status="failed",
            reason=SECRET,
            native=SECRET,
            failure=Failure(cause="response", kind="k", message=SECRET),
            evidence=(Evidence(quote=SECRET),),
        )
        material = Material(
            name="m", response="r", data={"found": SECRET}, evidence=(Evidence(quote=SECRET),)
        )
        response = Response(id="r", text=SECRET, data=[SECRET])
        body, texts = pack(trace(verdict, material=(material,), labels={"note": SECRET}), response)
        assert SECRET not in json.dumps(body)
        assert sum(SECRET in text.decode() for text in texts) == 4

    def test_an_erased_verdict_keeps_its_numbers(self) -> None:
        verdict = RecordedVerdict(
            **STAMP,
            about="r",
            responses=("r",),
            score=0.25,
            reason=SECRET,
            evidence=(Evidence(quote=SECRET, start=3, end=9),),
        )
        body, _ = pack(trace(verdict))
        again = unpack_verdict(body["verdicts"][0], "r", SURVEY, {}, ())
        assert (again.score, again.reason, again.evidence[0].quote, again.evidence[0].start) == (
            0.25,
            ERASED_PLACEHOLDER,
            ERASED_PLACEHOLDER,
            3,
        )

    def test_the_message_of_a_failure_can_be_read_alone(self) -> None:
        failure = Failure(cause="response", kind="k", message=SECRET)
        body, texts = pack(
            trace(
                RecordedVerdict(
                    **STAMP, about="r", responses=("r",), status="failed", failure=failure
                )
            )
        )
        (stored,) = body["verdicts"]
        assert unpack_failure_message(stored, dict(enumerate(texts))) == SECRET
        assert unpack_failure_message(stored, {}) == ERASED_PLACEHOLDER
        reason = RecordedVerdict(**STAMP, about="r", responses=("r",), score=0.5, reason="a reason")
        for verdict in (reason, RecordedVerdict(**STAMP, about="r", responses=("r",), score=0.5)):
            body, texts = pack(trace(verdict))
            assert unpack_failure_message(body["verdicts"][0], dict(enumerate(texts))) == ""


class TestTrace:
    def test_labels_data_material_and_calls_survive(self) -> None:
        material = Material(name="m", response="r", data=[1, {"a": None}])
        call = Call(id="c", provider="p", model="m", latency=0.5)
        response = Response(id="r", text="text", data={"x": [1.5]}, metadata={"run": 2})
        body, texts = pack(
            trace(material=(material,), calls=(call,), labels={"gold": 1}, agent="a"), response
        )
        places = dict(enumerate(texts))
        assert unpack_response_metadata(body, places) == {
            "labels": {"gold": 1},
            "data": {"x": [1.5]},
            "metadata": {"run": 2},
        }
        assert unpack_material(body["material"][0], "r", places) == material
        assert (body["agent"], places[body["response"]]) == ("a", b"text")
        assert Call.model_validate(body["calls"][0]) == call

    def test_labels_or_metadata_alone_survive(self) -> None:
        body, texts = pack(trace(labels={"gold": 1}))
        assert json.loads(texts[body["about"]]) == {"labels": {"gold": 1}, "data": None}
        body, texts = pack(trace(), Response(id="r", text="text", metadata={"run": 2}))
        assert json.loads(texts[body["about"]]) == {
            "labels": {},
            "data": None,
            "metadata": {"run": 2},
        }

    def test_absent_fields_are_not_stored(self) -> None:
        body, texts = pack(trace())
        assert (sorted(body), list(texts)) == (
            ["group", "response", "reward", "verdicts"],
            [b"text"],
        )

    def test_erased_material_keeps_its_name(self) -> None:
        body, _ = pack(trace(material=(Material(name="m", response="r", data=SECRET),)))
        again = unpack_material(body["material"][0], "r", {})
        assert (again.name, again.response, again.status, again.data) == ("m", "r", "failed", None)
        assert again.failure is not None
        assert again.failure.kind == ERASED_PLACEHOLDER


class TestShape:
    @given(scenes())
    def test_a_survey_survives_without_texts_and_as_views(self, scene: Scene) -> None:
        survey = scene.plan.survey
        stored = SurveyWithoutTexts.model_validate(
            through_json(SurveyWithoutTexts.of(survey).model_dump())
        )
        assert stored.digest == SurveyWithoutTexts.of(survey).digest
        assert stored.with_views(list(survey.views.values())) == survey

    def test_tasks_with_the_same_questions_share_a_survey_without_texts(self) -> None:
        other = TaskView(id="u", query="another one")
        question = QUESTION.model_copy(update={"view": other.digest})
        survey = Survey(views={other.digest: other}, questions=(question,), waves=SURVEY.waves)
        assert SurveyWithoutTexts.of(survey).digest == SURVEY.digest
        assert "another" not in json.dumps(SurveyWithoutTexts.of(survey).model_dump())


class TestVerdictsOnAWholeGroup:
    GROUP = tuple(f"r{number}" for number in range(200))

    def traces(self) -> list[Trace]:
        return [
            trace(RecordedVerdict(**STAMP, about="r", responses=self.GROUP, score=0.5))
            for _ in self.GROUP
        ]

    def test_verdicts_on_a_group_share_the_list_of_responses(self) -> None:
        shared = number_shared_id_lists(self.traces())
        body, _ = pack_trace(self.traces()[0], RESPONSE, SURVEY, {}, 1, shared)
        stored = through_json({"verdicts": body["verdicts"], "shown": list(shared)})
        assert stored["shown"] == [list(self.GROUP)]
        assert len(json.dumps(stored["verdicts"])) < 100

        lists = read_shared_id_lists(stored)
        first, second = (
            unpack_verdict(stored["verdicts"][0], "r", SURVEY, {}, lists) for _ in range(2)
        )
        assert first == self.traces()[0].verdicts[0]
        assert first.responses is second.responses
        assert list(shown_response_ids(stored["verdicts"][0], lists)) == list(self.GROUP)
