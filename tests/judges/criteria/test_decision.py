"""The judge's decision decides: neither a number beside it nor a log probability makes a judge say what it did not."""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from jurygraph import Jury, Task, Trace
from jurygraph.schema import RecordedVerdict
from tests.judges.criteria.scripted_judge import binary_reply, parts_reply, reply_in_turn
from tests.models.judge_scripts import Script, responses
from tests.models.server import Answer, Server, reply_with, run_server
from tests.rows import all_rows

TEXT = "Four, with pleasure."
REASON = "It does not say when."


def answer(met: bool, probability: float, quotes: Sequence[str] = (TEXT,)) -> dict[str, Any]:
    return binary_reply(met, probability, REASON, quotes)


def with_tokens(reply: dict[str, Any], p_true: float | None) -> Answer:
    """Return a reply; its last decision was drawn from words of which `true` has this probability."""
    text = json.dumps(reply, separators=(",", ":"))
    if p_true is None:
        return reply_with(text)
    before, _, after = text.rpartition('"met":')
    word = "true" if after.startswith("true") else "false"
    odds = {"true": math.log(p_true), "false": math.log(1 - p_true)}
    tokens = [
        (f'{before}"met":', 0.0, {}),
        (word, odds[word], odds),
        (after.removeprefix(word), 0.0, {}),
    ]
    return reply_with(text, logprobs=tokens)


class Expected(NamedTuple):
    """What becomes of a reply: the number of calls, and score, decision and origin of the score; no score: failed."""

    calls: int
    score: float | None = None
    met: bool | None = None
    native: str | None = None
    unsupported: str | None = None


STATED = "P(met) as stated"
TOKENS = "P(met) from log probabilities"
HALF = "not met; P(met) 0.5 as stated"
FAILED = Expected(2)
CASES: list[tuple[dict[str, Any], float | None, Expected]] = [
    (answer(True, 0.9), None, Expected(1, 0.9, True, STATED)),
    (answer(False, 0.2), None, Expected(1, 0.2, False, STATED)),
    (answer(False, 0.9), None, FAILED),
    (answer(False, 0.500001), None, FAILED),
    (answer(True, 0.1), None, FAILED),
    # log probabilities that agree with the decision
    (answer(False, 0.9), 0.018, Expected(1, 0.018, False, TOKENS)),
    (answer(True, 0.1), 0.98, Expected(1, 0.98, True, TOKENS)),
    (answer(False, 0.5), 0.3, Expected(1, 0.3, False, TOKENS)),
    (answer(True, 0.1, ()), 0.98, Expected(2, 0.0, False, None, "worst-case")),
    # those that contradict it are ignored
    (answer(False, 0.2), 0.95, Expected(1, 0.2, False, STATED)),
    (answer(True, 0.9), 0.05, Expected(1, 0.9, True, STATED)),
    (answer(False, 0.9), 0.95, FAILED),
    (answer(True, 0.1), 0.05, FAILED),
    # exactly one half
    (answer(False, 0.5, ()), None, Expected(1, 0.0, False, HALF)),
    (answer(False, 0.5), 0.95, Expected(1, 0.0, False, HALF)),
    (answer(True, 0.5), None, Expected(1, 0.5, True, STATED)),
    (answer(True, 0.5, ()), None, Expected(2, 0.0, False, None, "worst-case")),
]


# Where a decision counts


def rubric(**weights: float) -> Task:
    criteria = [
        {"id": name, "text": f"It is {name}.", "weight": weight} for name, weight in weights.items()
    ]
    return Task.model_validate(
        {"id": "letter", "query": "Write.", "rubric": {"criteria": criteria}}
    )


def reward_of_vote(verdict: Expected) -> float:
    """Return the majority of the decision, a yes and a no; a vote without its quotation decides nothing."""
    return float(bool(verdict.met))


class Use(NamedTuple):
    """A task, a config, the fields of the reply (the last one is the decision's), and the reward of a verdict."""

    task: Task
    config: dict[str, Any]
    fields: dict[str, Any]
    reward: Callable[[Any], float]
    is_penalty: bool = False


NEED = {"id": "when", "kind": "hard", "text": "An hour is named."}
PEOPLE = [{"id": "ann", "constraints": [NEED]}]
JUDGES = ["yes", "no", "deciding"]
OTHER_VOTES = {"yes": answer(True, 0.9), "no": answer(False, 0.1)}
FLAT = {"rubric": {"aggregation": "flat"}}
COMPACT = {"use": "criteria", "params": {"profile": "compact"}}
USES = {
    "criterion": Use(
        rubric(clear=1.0), {"evaluators": ["criteria"]}, {"criterion_1": None}, lambda it: it.score
    ),
    "compact": Use(
        rubric(clear=1.0), {"evaluators": [COMPACT]}, {"criterion_1": None}, lambda it: it.score
    ),
    "penalty": Use(
        rubric(clear=2.0, rude=-1.0),
        {"evaluators": ["criteria"], **FLAT},
        {"criterion_1": answer(True, 1.0), "criterion_2": None},
        lambda it: (2.0 - (1.0 if it.unsupported else it.score)) / 2.0,
        is_penalty=True,
    ),
    "need": Use(
        Task.model_validate({"id": "letter", "query": "Write.", "stakeholders": PEOPLE}),
        {"evaluators": ["preferences"], "weights": {"method": "uniform"}},
        {"constraint_1": None},
        lambda it: it.score,
    ),
    "vote": Use(
        rubric(clear=1.0),
        {"evaluators": [{"use": "criteria", "judges": JUDGES, "fold": "majority"}], **FLAT},
        {"criterion_1": None},
        reward_of_vote,
    ),
}


def judge(task: Task, script: Script, **config: Any) -> tuple[Trace, Server]:
    """Return the trace of the response, and the server with the requests about it."""
    with run_server(script) as server:
        model = f"openai-compatible:{server.url}#"
        has_jury = any("judges" in use for use in config["evaluators"])
        models = (
            {"models": {name: model + name for name in JUDGES}}
            if has_jury
            else {"model": f"{model}deciding"}
        )
        with Jury.from_config({"failure": {"min_coverage": 0.0}, **models, **config}) as jury:
            (trace,) = jury.score(task, responses(TEXT))
        return trace, server


@pytest.mark.parametrize("name", USES)
@all_rows(("reply", "p_true", "expected"), CASES)
def test_the_decision_decides(
    name: str, reply: dict[str, Any], p_true: float | None, expected: Expected
) -> None:
    use = USES[name]
    if name == "compact" and expected.unsupported:
        return  # a compact reply has no quotations
    bare = {field: reply[field] for field in ("met", "probability")} if name == "compact" else reply

    def script(body: dict[str, Any], number: int) -> Answer:
        if body["model"] in OTHER_VOTES:
            return with_tokens({"criterion_1": OTHER_VOTES[body["model"]]}, None)
        return with_tokens({field: other or bare for field, other in use.fields.items()}, p_true)

    trace, server = judge(use.task, script, **use.config)
    calls = [request for request in server.requests if request.body["model"] == "deciding"]
    assert len(calls) == expected.calls
    *others, verdict = sorted(
        trace.verdicts, key=lambda verdict: (verdict.judge == "deciding", verdict.subject)
    )
    check_verdict(verdict, expected, use.is_penalty, "" if name == "compact" else REASON)
    assert [other.status for other in others] == (
        ["ok"] * 2 if name == "vote" else [verdict.status] * len(others)
    )
    if expected.score is None:  # neither credit, fine nor vote: what is missing is open
        assert (trace.reward.value, trace.reward.status) == (None, "failed")
        assert "is 0." in calls[1].body["messages"][-1]["content"]
    else:
        assert trace.reward.value == pytest.approx(use.reward(expected))


def check_verdict(
    verdict: RecordedVerdict, expected: Expected, is_penalty: bool, reason: str
) -> None:
    """Check a verdict, and what is said of it."""
    if expected.score is None:
        assert (verdict.status, verdict.score, verdict.met, verdict.native) == (
            "failed",
            None,
            None,
            None,
        )
        assert verdict.failure is not None
        assert (verdict.failure.kind, verdict.failure.cause) == ("malformed", "response")
        assert re.fullmatch(
            r"field \w+_\d\.probability: is [\d.]+ and met (true|false), which contradict each other",
            verdict.reason,
        )
        return
    assert verdict.status == "ok"
    assert (verdict.native, verdict.unsupported) == (expected.native, expected.unsupported)
    if expected.unsupported is None:
        assert (verdict.score, verdict.met, verdict.reason) == (
            pytest.approx(expected.score),
            expected.met,
            reason,
        )
    else:
        assert (verdict.score, verdict.met) == (float(is_penalty), is_penalty)
        assert (
            verdict.reason
            == f"{reason} [unsupported: the judge says met, and nothing is quoted for it]"
        )


# The repair


def test_a_contradiction_is_sent_back_once_and_the_new_decision_counts() -> None:
    wrong = {"criterion_1": answer(True, 1.0), "criterion_2": answer(False, 0.9)}
    right = {**wrong, "criterion_2": answer(False, 0.2)}
    trace, server = judge(
        rubric(clear=1.0, kind=1.0), reply_in_turn(wrong, right), evaluators=["criteria"]
    )
    assert [(verdict.score, verdict.met) for verdict in trace.verdicts] == [
        (1.0, True),
        (0.2, False),
    ]
    assert trace.reward.value == 0.6
    _, second = server.requests
    assert second.body["messages"][-1]["content"].startswith(
        "That cannot be used: field criterion_2.probability: is 0.9 and met false, which contradict each other; "
        "decide anew, and give 0.5 or more exactly where met is true."
    )


def test_a_reply_that_lacks_a_quotation_counts_if_its_repair_contradicts_itself() -> None:
    """As it does if its repair breaks its form in any other way: it was a reply."""
    first, second = {"criterion_1": answer(True, 0.9, ())}, {"criterion_1": answer(False, 0.9)}
    trace, server = judge(rubric(clear=1.0), reply_in_turn(first, second), evaluators=["criteria"])
    (verdict,) = trace.verdicts
    assert (verdict.status, verdict.unsupported, trace.reward.value, server.count) == (
        "ok",
        "worst-case",
        0.0,
        2,
    )


# Parts


@pytest.mark.parametrize("is_met", [True, False])
def test_an_item_of_a_checklist_has_a_decision_alone(is_met: bool) -> None:
    """No number can stand beside it, and a log probability changes nothing."""
    reply = {"checklist_1": parts_reply([TEXT], [TEXT] if is_met else None)}
    checklist = {
        "use": "checklist",
        "params": {"audience": "task", "items": ["It is kind.", "It is clear."]},
    }
    config = {"evaluators": [checklist], "reward": {"checklist": 1.0}}
    trace, server = judge(
        rubric(any=1.0), lambda *_: with_tokens(reply, 0.05 if is_met else 0.95), **config
    )
    (verdict,) = trace.verdicts
    assert (verdict.score, verdict.met, trace.reward.value) == (
        (1.0, True, 1.0) if is_met else (0.5, False, 0.5)
    )
    assert server.count == 1
    reply["checklist_1"]["part_2"]["probability"] = 0.9
    trace, server = judge(rubric(any=1.0), lambda *_: with_tokens(reply, None), **config)
    assert (trace.verdicts[0].status, trace.reward.value, server.count) == ("failed", None, 2)
