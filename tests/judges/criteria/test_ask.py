"""What comes of a missing reply, the same for everything that asks a model: never credit, and never a lost cause."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from jurygraph import Jury, ModelAccessError, Response, Task, Trace
from tests.agents.data_synthesizer import test_synthesizer as contrasts
from tests.agents.extraction.plans import RECORDS, in_words
from tests.judges.criteria.people import people
from tests.judges.few_shot import reviewers
from tests.models.judge_scripts import rubric
from tests.models.server import Answer, raw_body, reply_with, run_server, status

PROTOCOLS = [
    f"protocols.{name}"
    for name in "direct rubric checklist decomposed-adaptive decomposed-uniform".split()
]
EXTRACTION = {
    "derivers": [{"use": "extract", "params": {"records": RECORDS}}],
    "evaluators": ["checks.constraints"],
}
EGGS = Task(id="eggs", query="Ann has 3 eggs and eats 2. How many are left?", reference="A: 1")

USERS: Mapping[str, tuple[dict[str, Any], Task, str]] = {
    "criteria": ({"evaluators": ["criteria"]}, rubric("kind", "short"), "Dear Ann, come at nine."),
    "preferences": ({"evaluators": ["preferences"]}, people(), "We go to Leeds."),
    "checklist": (
        {"evaluators": [{"use": "checklist", "params": {"audience": "task"}}]},
        EGGS,
        "One egg.",
    ),
    **{use: ({"evaluators": [use]}, people(), "We go to Leeds.") for use in PROTOCOLS},
    "pairwise": ({"evaluators": ["pairwise"]}, EGGS, "One egg is left.\nA: 1"),
    "listwise": ({"evaluators": ["listwise"]}, EGGS, "One egg is left.\nA: 1"),
    "reviewers": (
        {"evaluators": [reviewers.judge_use("zero-shot")]},
        reviewers.task("ann"),
        "Cats purr.",
    ),
    "reasoning": (
        {"evaluators": ["quality.reasoning"]},
        EGGS,
        "She has 3 eggs.\nShe eats 2, so 1 is left.\nA: 1",
    ),
    "extraction": (
        EXTRACTION,
        people("ann", checks={"tea": {"text": "tea"}}),
        in_words("40", "bullets"),
    ),
    "contrasts": (contrasts.CONFIG, contrasts.TASK, contrasts.RIGHT),
}
"""By what asks a model: its config, a task, and a response."""

FAULTS: Mapping[str, tuple[Answer, str, str]] = {
    "an error of the server": (status(503), "server", "infrastructure"),
    "a request that it rejects": (status(400), "rejected", "infrastructure"),
    "no reply in its format": (raw_body("<h1>Welcome</h1>"), "unreadable", "infrastructure"),
    "a reply that is cut off": (
        reply_with('{"reason": "', finish="length"),
        "truncated",
        "response",
    ),
    "a refusal": (reply_with(None, refusal="I will not judge that."), "refused", "response"),
    "a filter": (reply_with("{}", finish="content_filter"), "refused", "response"),
    "an empty reply": (reply_with(" \n"), "empty", "response"),
    "prose": (reply_with("It is fine."), "malformed", "response"),
    "another form": (reply_with(json.dumps({"score": 1.0})), "malformed", "response"),
}


@pytest.mark.parametrize("user", USERS)
def test_a_missing_reply_is_a_failure_of_its_cause_and_a_refused_key_an_error(user: str) -> None:
    config, task, text = USERS[user]
    both = [Response(id="a", text=text), Response(id="b", text=f"{text} ")]
    calls = {"cache": False, "attempts": 1, "concurrency": 1}
    answers: list[Answer] = []
    with (
        run_server(lambda body, number: answers[-1]) as server,
        Jury.from_config(
            {**config, "model": f"openai-compatible:{server.url}#tiny", "calls": calls}
        ) as jury,
    ):
        for answer, kind, cause in FAULTS.values():
            answers.append(answer)
            check_failures(jury.score(task, both), kind, cause)
        answers.append(status(401))
        before = server.count
        with pytest.raises(ModelAccessError, match="401"):
            jury.score(task, both)
        assert server.count == before + 1


@pytest.mark.parametrize("user", USERS)
def test_without_a_model_every_question_abstains(user: str) -> None:
    config, task, text = USERS[user]
    with Jury.from_config(config) as jury:
        traces = jury.score(task, [Response(id="a", text=text), Response(id="b", text=f"{text} ")])
    assert [(trace.reward.value, trace.calls) for trace in traces] == [(None, ())] * 2
    missing = [
        one
        for trace in traces
        for one in (*trace.material, *trace.verdicts)
        if one.failure is not None
    ]
    assert {
        (one.status, one.failure and (one.failure.kind, one.failure.cause)) for one in missing
    } <= {
        ("abstained", ("no-model", "infrastructure")),
        ("failed", ("no-model", "infrastructure")),
        ("failed", ("not-derived", "infrastructure")),
    }
    assert missing


def check_failures(traces: Sequence[Trace], kind: str, cause: str) -> None:
    assert [trace.reward.value for trace in traces] == [None, None]
    results = [one for trace in traces for one in (trace.material or trace.verdicts)]
    assert {
        (one.status, one.failure and (one.failure.kind, one.failure.cause)) for one in results
    } == {("failed", (kind, cause))}
    # such a reply was paid for
    assert {one.call is not None for one in results} == {cause == "response"}
    purposes = {use.purpose for one in results for use in one.calls}
    assert ("repair" in purposes) is (kind == "malformed")
