"""Whatever user code gives or raises is taken in as a verdict or material: nothing of it stops a run."""

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from pydantic import ValidationError

import jurygraph as jg
from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
from jurygraph.graphs.answers import MAX_FAILURE_KIND_CHARACTERS, to_failure
from jurygraph.models.request import Fault
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Evidence, Failure, Material, RecordedVerdict, Response, Verdict
from tests.graphs.scripted import response, score_responses, task
from tests.rows import all_rows

HERE = __name__
Nameless = type("", (RuntimeError,), {})


class Untold(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit(3)


class Unfloatable(float):
    def __float__(self) -> NoReturn:
        raise RuntimeError("no number")

    __le__ = __ge__ = __float__  # type: ignore[assignment]


class Classless:
    @property  # type: ignore[misc]
    def __class__(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("no class")


class Endless(list[float]):
    def __len__(self) -> NoReturn:
        raise RuntimeError("no end")


ANSWERS: dict[str, Any] = {
    "huge number": 10**400,
    "no number": Unfloatable(0.5),
    "no class": Classless(),
    "surrogate in a call": Verdict(score=1.0, call="\ud800"),
    "surrogate in evidence": Verdict.model_construct(
        status="ok", score=1.0, evidence=({"quote": "\ud800"},)
    ),
    "off the scale": Verdict.model_construct(status="ok", score=7.0),
    "not applicable and failed": Verdict.not_applicable("m").model_copy(
        update={"failure": Verdict.fail("k", "m").failure}
    ),
    "not applicable and scored": Verdict.not_applicable("m").model_copy(update={"score": 1.0}),
    "recorded": RecordedVerdict(score=1.0, gated_by="group-of-one"),
    "ok and failed": Verdict(score=1.0, failure=Verdict.fail("k", "m").failure),
    "list for a group": Endless([1.0]),
    "point for a group": np.array(1.0),
    "untold": Untold(),
    "nameless": Nameless("boo"),
    "surrogate in a message": ValueError("\ud83d"),
    "long name": type("E" * 600, (RuntimeError,), {})("boo"),
}


class Gives(Evaluator):
    def __init__(self, what: str, scope: Any = "response") -> None:
        self.what, self.scope = what, scope

    def answer(self, inputs: EvaluatorInput) -> Any:
        answer = ANSWERS[self.what]
        if isinstance(answer, BaseException):
            raise answer
        return answer


@all_rows("scope", ["response", "group"])
@all_rows("what", ANSWERS)
def test_an_answer_of_no_permitted_type_is_a_failed_verdict_that_can_be_stored(
    what: str, scope: str
) -> None:
    use = {"use": f"{HERE}:Gives", "name": "gives", "params": {"what": what, "scope": scope}}
    for trace in score_responses(
        {"evaluators": [use]}, task(), response("a"), response("b", "another")
    ):
        (verdict,) = trace.verdicts
        assert (verdict.status, verdict.failure is not None) == ("failed", True)
        assert trace.reward.value is None
        assert type(trace).model_validate_json(trace.model_dump_json()).digest == trace.digest


MADE: dict[str, Any] = {
    "surrogate": Material(name="made", data="\ud800"),
    "an object": Material.model_construct(name="made", status="ok", data=object()),
    "no variants": Material.model_construct(name="made", status="ok", variants=5),
    "no material": [1],
    "another name": Material(name="mad"),
}


class Detailed(Verdict):
    """A user's own kind of verdict, with a field more."""

    detail: str = "none"


@pytest.mark.parametrize(
    ("answer", "score", "met"),
    [
        (True, 1.0, True),
        (np.bool_(False), 0.0, False),
        (np.float32(0.5), 0.5, None),
        (0, 0.0, None),
        (Detailed(score=0.5, met=False), 0.5, False),
    ],
)
def test_an_answer_becomes_a_plain_verdict(
    answer: Any, score: float, met: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "this", answer)
    (verdict,) = verdicts_of("this")
    assert type(verdict) is RecordedVerdict
    assert (verdict.status, verdict.score, verdict.met) == ("ok", score, met)


@pytest.mark.parametrize(
    ("what", "scope", "message"),
    [
        ("off the scale", "response", "score: Input should be less than or equal to 1"),
        (
            "surrogate in a call",
            "response",
            "it cannot be written as JSON: .*surrogates not allowed",
        ),
        (
            "recorded",
            "response",
            r"jurygraph records verdicts: return a Verdict\(.*\), not a RecordedVerdict",
        ),
        (
            "not applicable and failed",
            "response",
            "a verdict that is not_applicable has no failure",
        ),
        (
            "not applicable and scored",
            "response",
            "`score` is 1; leave it out where the status is not_applicable",
        ),
        ("ok and failed", "response", "a verdict that is ok has no failure"),
        ("too high", "response", r"a score lies in \[0, 1\], not at 1.0000001"),
        (
            "one for all",
            "group",
            "expected a sequence of 2 verdicts, one for each response of the group",
        ),
    ],
)
def test_an_invalid_answer_is_malformed_with_a_reason(
    what: str, scope: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "too high", 1.0000001)
    monkeypatch.setitem(ANSWERS, "one for all", Verdict(score=1.0))
    for verdict in verdicts_of(what, scope):
        assert verdict.failure is not None
        assert (verdict.failure.kind, verdict.failure.cause) == ("malformed", "evaluator")
        assert re.match(message, verdict.failure.message)


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (Verdict.abstain("cannot tell"), "abstained", "cannot tell"),
        (Verdict.fail("refused", "a filter refused"), "failed", "a filter refused"),
        (Verdict.not_applicable("no table is needed"), "not_applicable", "no table is needed"),
        (ZeroDivisionError("boo"), "failed", "boo"),
    ],
)
def test_a_group_that_cannot_be_judged_gives_every_response_the_reason(
    answer: Any, status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ANSWERS, "this", answer)
    for verdict in verdicts_of("this", "group"):
        assert verdict.status == status
        assert verdict.reason.startswith(reason)


def verdicts_of(what: str, scope: str = "response") -> list[RecordedVerdict]:
    """The verdict about each of one response, or of a group of two."""
    use = {"use": f"{HERE}:Gives", "name": "gives", "params": {"what": what, "scope": scope}}
    group = [response("a"), response("b", "another")] if scope == "group" else [response("a")]
    return [trace.verdicts[0] for trace in score_responses({"evaluators": [use]}, task(), *group)]


class Makes(Deriver):
    gives = "made"

    def __init__(self, what: str) -> None:
        self.what = what

    def derive(self, inputs: DeriverInput) -> Any:
        return MADE[self.what]


class Needs(Evaluator):
    needs = ("made",)

    def answer(self, inputs: EvaluatorInput) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("surrogate", "it cannot be written as JSON"),
        ("an object", "data"),
        ("no variants", "variants: Input should be a valid tuple"),
        (
            "no material",
            "expected material 'made', got list; return Material(name='made', data=...)",
        ),
        ("another name", "expected material 'made', got 'mad'"),
    ],
)
def test_material_of_no_permitted_type_is_failed_material_with_a_reason(
    what: str, message: str
) -> None:
    config = {
        "evaluators": [f"{HERE}:Needs"],
        "derivers": [{"use": f"{HERE}:Makes", "params": {"what": what}}],
    }
    (trace,) = score_responses(config, task(), response("a"))
    assert trace.material[0].status == trace.verdicts[0].status == "failed"
    assert trace.material[0].failure is not None
    assert trace.material[0].failure.message.startswith(message)
    assert trace.model_dump_json()


class Spoils(Evaluator):
    name = "spoils"

    def answer(self, inputs: EvaluatorInput) -> float:
        data: Any = inputs.response.data
        data["list"].append(1)
        return 1.0


def test_changes_of_data_by_an_evaluator_do_not_reach_the_caller() -> None:
    mine = response("a", list=[])
    for _ in range(2):
        score_responses({"evaluators": [f"{HERE}:Spoils"]}, task(), mine)
    assert mine.data == {"list": []}


TEXT = "Wir treffen uns um 9\u00a0Uhr im Cafe\u0301.\nBring\tbitte Kuchen mit."


class Quotes(Evaluator):
    """Quotes what its params say, where they say it."""

    def __init__(self, evidence: list[dict[str, Any]]) -> None:
        self.evidence = tuple(Evidence(**one) for one in evidence)

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        return Verdict(score=1.0, evidence=self.evidence)


@all_rows(
    ("quoted", "found"),
    [
        ({"quote": "um 9 Uhr im Café"}, ("um 9\u00a0Uhr im Cafe\u0301", 16, 33, True)),
        ({"quote": "Bring bitte"}, ("Bring\tbitte", 35, 46, True)),
        ({"quote": "bring bitte"}, ("bring bitte", None, None, False)),
        ({"quote": "um 9 Uhr", "start": 16, "end": 24}, ("um 9 Uhr", 16, 24, False)),
        ({"quote": "um 9\u00a0Uhr", "start": 16, "end": 24}, ("um 9\u00a0Uhr", 16, 24, True)),
        ({"quote": "treffen", "start": 0, "end": 7}, ("treffen", 0, 7, False)),
        ({"quote": "treffen", "start": 4}, ("treffen", 4, 11, True)),
        ({"quote": "", "verified": True}, ("", None, None, False)),
        ({"quote": "Leeds", "source": "a table", "verified": True}, ("Leeds", None, None, True)),
    ],
)
def test_a_quotation_is_verified_only_if_found_verbatim(quoted: dict[str, Any], found: Any) -> None:
    use = {"use": f"{HERE}:Quotes", "name": "quotes", "params": {"evidence": [quoted]}}
    (trace,) = score_responses({"evaluators": [use]}, task(), Response(id="a", text=TEXT))
    (one,) = trace.verdicts[0].evidence
    assert (one.quote, one.start, one.end, one.verified) == found


OUTER = """
def ask(value):
    return inner(value)


def inner(value):
    import json

    return json.loads(value)
"""


def failure_of_module(path: Path, source: str) -> Failure:
    """The failure of calling `inputs` of a module of this source and path, without the frames of this test."""
    namespace: dict[str, Any] = {}
    exec(compile(source, str(path), "exec"), namespace)
    with pytest.raises(ValueError, match=r"Expecting value|wrong") as caught:
        namespace["ask"]("no JSON")
    return to_failure(caught.value.with_traceback(caught.tb.tb_next), Redactor(()))


def test_a_failure_names_the_last_line_of_the_users_own_code(tmp_path: Path) -> None:
    """The library that it called raised, further down."""
    failure = failure_of_module(tmp_path / "mine.py", OUTER)
    assert failure.message.endswith("(mine.py, line 9, in inner)")
    assert str(tmp_path) not in failure.message


@pytest.mark.parametrize(
    "path", ["/usr/lib/site-packages/library.py", "<string>", jg.__file__, json.__file__]
)
def test_a_failure_names_no_line_of_a_library_or_without_a_file(path: str) -> None:
    assert (
        failure_of_module(Path(path), "def ask(value): raise ValueError('wrong')").message
        == "wrong"
    )


class Unprintable(Exception):
    """An exception whose own message cannot be made."""

    def __str__(self) -> str:
        raise KeyError("lost")


def validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Verdict.model_validate({"score": "none"})
    return caught.value.with_traceback(None)


@all_rows(
    ("error", "cause", "kind", "message"),
    [
        (ValueError(), "evaluator", "ValueError", "ValueError"),
        (Nameless("boo"), "evaluator", "error", "boo"),
        (
            type("E" * 600, (RuntimeError,), {})("boo"),
            "evaluator",
            "E" * MAX_FAILURE_KIND_CHARACTERS,
            "boo",
        ),
        (ConnectionResetError("gone"), "infrastructure", "ConnectionResetError", "gone"),
        (jg.TimeLimitExceeded("late"), "response", "time-limit", "late"),
        (Fault("refused", "a filter refused"), "response", "refused", "a filter refused"),
        (Fault("server", "x" * 600), "infrastructure", "server", "x" * 500),
        (Fault("server", "half \ud83d"), "infrastructure", "server", "half \\ud83d"),
        (Unprintable(), "evaluator", "Unprintable", "it has no message: KeyError"),
        (
            validation_error(),
            "evaluator",
            "ValidationError",
            "score: Input should be a valid number",
        ),
    ],
)
def test_a_failure_has_cause_kind_and_message_of_the_exception(
    error: Exception, cause: str, kind: str, message: str
) -> None:
    failure = to_failure(error, Redactor(()))
    assert (failure.cause, failure.kind, failure.message) == (cause, kind, message)


def test_a_quotation_beyond_the_limits_is_not_searched_and_stays_unverified() -> None:
    long, longest, short = "word " * 2_001, "word " * 1_999 + "words", "word word"
    quotations = [{"quote": long}, {"quote": longest}, *[{"quote": short}] * 104]
    use = {"use": f"{HERE}:Quotes", "name": "quotes", "params": {"evidence": quotations}}
    (trace,) = score_responses(
        {"evaluators": [use]}, task(), Response(id="a", text=f"{longest} {long}")
    )
    found = [one.verified for one in trace.verdicts[0].evidence]
    assert found == [False, *[True] * 99, *[False] * 6], "10,000 characters, and 100 quotations"
    assert [one.quote for one in trace.verdicts[0].evidence] == [long, longest, *[short] * 104]


class Constant(Evaluator):
    name = "constant"
    verdict = Verdict(score=1.0, evidence=(Evidence(quote="yes"),))

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        return self.verdict


def test_one_verdict_on_two_responses_is_verified_against_each() -> None:
    responses = [
        Response(id=name, text=text) for name, text in (("a", "yes"), ("b", "no"), ("c", "no yes"))
    ]
    traces = score_responses({"evaluators": [f"{HERE}:Constant"]}, task(), *responses)
    evidence = {
        verdict.about: verdict.evidence[0] for trace in traces for verdict in trace.verdicts
    }
    assert {name: (each.verified, each.start) for name, each in evidence.items()} == {
        "a": (True, 0),
        "b": (False, None),
        "c": (True, 3),
    }
