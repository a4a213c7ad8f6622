"""Functions of openevals' form: what they are called with, and what becomes of their results."""

import sys
from pathlib import Path
from typing import Any

import pytest
from openevals.trajectory.match import (
    create_async_trajectory_match_evaluator,
    create_trajectory_match_evaluator,
)

import jurygraph as jg
from jurygraph import ConfigError, Response
from jurygraph.agents.functions import FeedbackEvaluator, adapt_to_evaluator
from tests.command import run_command
from tests.rows import all_rows

CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "reasoning": "Look first.", "tool_calls": [CALL]},
    {"role": "tool", "content": "3", "tool_call_id": "1"},
    {"role": "assistant", "content": "Three."},
]
SHOWN = [{name: value for name, value in MESSAGES[0].items() if name != "reasoning"}, *MESSAGES[1:]]
CHAT = Response.model_validate({"id": "r", "messages": MESSAGES})
TEXT = Response(id="r", text="Three.")
TASK = jg.Task(id="t", query="How many?", reference_messages=MESSAGES, context=["It is three."])


def judge(target: Any, task: jg.Task, response: Response, **settings: Any) -> jg.RecordedVerdict:
    config = {"model": "none", "evaluators": [{"use": target, "name": "judged", **settings}]}
    with jg.Jury.from_config(config) as jury:
        (trace,) = jury.score(task, [response])
    (verdict,) = trace.verdicts
    return verdict


@pytest.mark.parametrize(
    "create", [create_trajectory_match_evaluator, create_async_trajectory_match_evaluator]
)
def test_openevals_own_evaluators_judge_a_conversation(create: Any) -> None:
    strict = create(trajectory_match_mode="strict")
    superset = create(trajectory_match_mode="superset")
    shorter = Response.model_validate({"id": "s", "messages": [MESSAGES[2]]})
    verdicts = [judge(made, TASK, one) for made in (strict, superset) for one in (CHAT, shorter)]
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, 1.0, 0.0]
    assert verdicts[0].met is True
    assert (
        adapt_to_evaluator(strict, "match").version != adapt_to_evaluator(superset, "match").version
    )
    without = judge(strict, TASK.model_copy(update={"reference_messages": None}), CHAT)
    assert (without.status, without.reason) == (
        "abstained",
        "the task has neither reference_messages nor a reference",
    )
    with_texts = judge(strict, jg.Task(id="t", query="How many?", reference="3"), TEXT)
    assert "compares messages, and the response is shown as a text" in with_texts.reason


BLOCKS = [{"type": "text", "text": "Three"}, {"type": "text", "text": "of them."}]
ANTHROPIC_CHAT: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": [*BLOCKS, {"type": "tool_use", "id": "1", "name": "look", "input": {"n": 1}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": BLOCKS}]},
    {"role": "assistant", "content": [{"type": "image", "data": "a"}, BLOCKS[0]]},
]


def test_content_is_a_text_where_all_of_its_parts_are() -> None:
    seen: dict[str, Any] = {}

    def look(*, inputs: Any, outputs: Any, reference_outputs: Any) -> float:
        seen.update(inputs=inputs, outputs=outputs, reference_outputs=reference_outputs)
        return 1.0

    query = [{"role": "user", "content": BLOCKS}]
    task = jg.Task(id="t", query=query, reference_messages=ANTHROPIC_CHAT)
    judge(look, task, Response.model_validate({"id": "r", "messages": ANTHROPIC_CHAT}))
    contents = [message["content"] for message in seen["outputs"]]
    assert contents[:2] == ["Three\nof them."] * 2
    assert contents[2] == ANTHROPIC_CHAT[2]["content"]
    assert seen["outputs"][0]["tool_calls"][0]["function"]["name"] == "look"
    assert seen["reference_outputs"] == seen["outputs"]
    assert seen["inputs"] == [{"role": "user", "content": "Three\nof them."}]


@pytest.mark.parametrize("task", [TASK, TASK.model_copy(update={"reference_messages": None})])
def test_messages_are_a_list_also_of_one_reply(task: jg.Task) -> None:
    def kind(*, outputs: Any) -> dict[str, Any]:
        return {"score": 1.0, "comment": repr(outputs)}

    replies = (Response(id="r", messages=MESSAGES[2:]), Response(id="r", text="Three."))
    comments = [judge(kind, task, reply).reason for reply in replies]
    assert comments == [
        repr(MESSAGES[2:]),
        repr(MESSAGES[2:] if task.reference_messages else "Three."),
    ]


def test_each_turn_gets_the_messages_up_to_it() -> None:
    counts = []

    def count(*, outputs: Any) -> float:
        counts.append((type(outputs), len(outputs)))
        return 1.0

    turns = [MESSAGES[2], {"role": "user", "content": "Sure?"}, MESSAGES[2]]
    config = {
        "model": "none",
        "evaluators": [{"use": count, "name": "count", "scope": "turn", "fold": "mean"}],
    }
    with jg.Jury.from_config(config) as jury:
        jury.score(jg.Task(id="t", query="How many?"), [Response(id="r", messages=turns)])
    assert sorted(counts, key=lambda item: item[1]) == [(list, 1), (list, 3)]


@all_rows(
    ("sees", "response", "outputs"),
    [
        (None, CHAT, SHOWN),
        ("full_trace", CHAT, MESSAGES),
        ("last_reply", CHAT, "Three."),
        (None, Response(id="r", text="Three."), MESSAGES[2:]),
        ("last_reply", Response(id="r", text="Three."), "Three."),
    ],
)
def test_it_gets_only_what_it_declares_and_sees(
    sees: Any, response: Response, outputs: Any
) -> None:
    calls: list[dict[str, Any]] = []

    def look(*, outputs: Any, context: Any, least: int, **more: Any) -> dict[str, Any]:
        calls.append({"outputs": outputs, "context": context, "least": least, **more})
        return {"key": "look", "score": 0.5, "comment": "Half.", "metadata": {"b": 1, "a": [2]}}

    settings: dict[str, Any] = {} if sees is None else {"sees": sees}
    verdict = judge(look, TASK, response, params={"least": 3}, **settings)
    assert calls == [{"outputs": outputs, "context": ["It is three."], "least": 3}]
    assert (verdict.score, verdict.reason) == (0.5, 'Half. (metadata: {"a": [2], "b": 1})')


@all_rows(
    ("result", "expected"),
    [
        (True, (1.0, "")),
        ({"key": "k", "score": False, "comment": None}, (0.0, "")),
        ({"key": "k", "score": None, "comment": "I cannot tell."}, ("abstained", "I cannot tell.")),
        ([{"key": "a", "score": 0}, {"key": "judged", "score": 1}], (1.0, "")),
        ({"results": [{"key": "a", "score": 0.25}]}, (0.25, "")),
        (
            [{"key": "a", "score": 1}, {"key": "b", "score": 1}],
            (
                "failed",
                "gave 2 results (a, b), of which 0 are called 'judged'; set `name` of",
            ),
        ),
        (
            [],
            ("failed", "gave 0 results (no key), of which 0 are called 'judged'; set"),
        ),
        ({"key": "a"}, ("failed", "expected `score` in the result, found ['key']")),
        (
            {"key": "a", "score": 7},
            ("failed", "Verdict.score: is the number 7; write a number of 1"),
        ),
    ],
)
def test_a_result_becomes_a_verdict(result: Any, expected: tuple[Any, str]) -> None:
    def give(*, outputs: Any) -> Any:
        return result

    verdict = judge(give, TASK, CHAT)
    assert (verdict.score if verdict.status == "ok" else verdict.status) == expected[0]
    assert verdict.reason.startswith(expected[1])


def test_a_function_of_another_form_with_such_a_result_is_told_the_form() -> None:
    def old_style(run: Any, example: Any) -> dict[str, Any]:
        return {"key": "old", "score": 1}

    reason = judge(old_style, TASK, CHAT).reason
    assert reason.endswith("got dict; name its first parameter `outputs` for openevals' form")


def test_a_wrong_call_is_refused_when_it_is_set_up() -> None:
    def pick(*, outputs: Any, least: int) -> float:
        return 1.0

    with pytest.raises(ConfigError, match=r"missing a required (keyword-only )?argument: 'least'"):
        judge(pick, TASK, CHAT)
    with pytest.raises(
        ConfigError, match=r"'most'; change the function, or the params; its params"
    ):
        judge(pick, TASK, CHAT, params={"least": 1, "most": 2})
    with pytest.raises(ConfigError, match="has the keyword `outputs`, of one response: leave"):
        adapt_to_evaluator(pick, "pick", scope="pair")


@all_rows(
    ("target", "is_such"),
    [
        (lambda inputs, outputs: 1.0, True),
        (lambda inputs, outputs, reference_outputs=None, **more: 1.0, True),
        (lambda outputs, least=3: 1.0, True),
        (lambda context, outputs: 1.0, True),
        (lambda least=3, *, outputs: 1.0, True),
        (lambda task, response: 1.0, False),
        (lambda task, outputs: 1.0, False),
        (lambda inputs, response: 1.0, False),
        (lambda prompt, reply, context=(): 1.0, False),
    ],
)
def test_it_is_recognised_by_the_names_of_its_parameters(target: Any, is_such: bool) -> None:
    assert isinstance(adapt_to_evaluator(target, "any"), FeedbackEvaluator) == is_such


def test_its_parameters_may_be_positional_as_in_langsmith() -> None:
    def is_short(inputs: Any, outputs: Any) -> bool:
        return (inputs, outputs) == ("How many?", "Three.")

    task = jg.Task(id="t", query="How many?")
    assert judge(is_short, task, Response(id="r", text="Three.")).score == 1.0
    assert judge(is_short, task, CHAT).score == 0.0


def test_it_is_named_by_its_dotted_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Exact:
        def __call__(self, *, outputs: Any, reference_outputs: Any = None) -> dict[str, Any]:
            return {"key": "exact", "score": outputs == reference_outputs}

    module = type(sys)("exact_words")
    module.exact = Exact()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "exact_words", module)
    (tmp_path / "jury.yaml").write_text("evaluators: [exact_words.exact]\n")
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": "t", "query": "?", "reference": "a", "responses": [{"id": "r", "text": "a"}]}\n'
    )
    typed = run_command(
        "score",
        tmp_path / "tasks.jsonl",
        "--config",
        tmp_path / "jury.yaml",
        "--out",
        tmp_path / "run",
    )
    assert typed.code == 0, typed.err
    assert '"score":1.0' in run_command("export", tmp_path / "run", "--to", "jsonl").out.replace(
        ": ", ":"
    )
