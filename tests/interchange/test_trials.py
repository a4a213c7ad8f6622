"""Recorded conversations become tasks whose responses are the trials; nothing is left out without a note."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.readers import TRIAL_READERS
from jurygraph.schema import TaskLine
from tests.interchange.published import write_rows
from tests.rows import all_rows

ROWS = Path(__file__).parent / "rows"


def import_file(form: str, path: Path) -> tuple[dict[str, TaskLine], dict[str, list[str]]]:
    """Return the tasks by id, and the locations of each kind of note by its first word."""
    tasks: dict[str, TaskLine] = {}
    notes: dict[str, list[str]] = {}
    for task, found in TRIAL_READERS[form](path):
        if task is not None:
            tasks[task.id] = TaskLine.model_validate_json(
                task.model_dump_json(exclude_defaults=True)
            )
        for note in found:
            notes.setdefault(note.what.partition(" ")[0], []).append(note.where)
    return tasks, notes


def responses_of(task: TaskLine) -> dict[str, tuple[list[str], Any]]:
    """Return the roles and the labels of a task's responses by their ids."""
    return {
        response.id: ([message.role for message in response.messages or ()], response.labels)
        for response in task.responses
    }


AGENT = ["assistant", "tool", "assistant", "user"]


def test_trials_of_tau_bench_are_the_responses_to_what_they_begin_with() -> None:
    tasks, notes = import_file("taubench", ROWS / "taubench.json")
    cancel, refund = tasks["0"], tasks["3"]
    assert [(m.role, m.content) for m in cancel.query if not isinstance(m, str)] == [
        ("system", "Be brief.")
    ]
    assert [m.role for m in refund.query if not isinstance(m, str)] == ["system", "user"]
    assert responses_of(cancel) == {
        "0/0": (["user", *AGENT], {"trial": 0, "reward": 1.0}),
        "0/1": (["user", *AGENT], {"trial": 1, "reward": 0.0}),
    }
    assert responses_of(refund) == {"3/0": (AGENT, {"trial": 0, "reward": 0.0})}
    assert [(a.name, a.arguments) for a in cancel.reference_actions or ()] == [("cancel", {"n": 1})]
    assert refund.reference_actions == ()  # that nothing is to be done is known
    assert cancel.metadata["instruction"] == "You want to cancel order 1."
    assert notes == {"tasks": ["0"]}


def test_runs_of_langsmith_answer_their_example() -> None:
    tasks, notes = import_file("langsmith", ROWS / "langsmith.jsonl")
    example = tasks["ex"]
    assert (example.query, example.reference) == ("Ships?", "Three.")
    assert responses_of(example) == {"ex/r1": (["assistant", "tool", "assistant"], {})}
    assert example.responses[0].metadata["feedback_stats"] == {"right": {"n": 1, "avg": 1.0}}
    chat, openai = tasks["r3"], tasks["r4"]
    assert [m.role for m in chat.query if not isinstance(m, str)] == ["system", "user"]
    assert (chat.responses[0].text, openai.responses[0].text) == ("Three.", "Three.")
    assert chat.responses[0].metadata["outputs"] == {"llm_output": {"model": "m"}}
    assert tasks["r6"].responses == ()
    assert notes == {"runs": ["r2"], "rows": ["r5"], "conversations": ["r6/r6"]}


def test_a_beginning_is_the_same_as_a_text_and_as_a_part(tmp_path: Path) -> None:
    part = [{"type": "text", "text": "Ships?"}]
    rows = [
        {
            "id": f"r{number}",
            "run_type": "llm",
            "reference_example_id": "ex",
            "inputs": {"messages": [{"role": "user", "content": content}]},
            "outputs": {"messages": [{"role": "assistant", "content": "Three."}]},
        }
        for number, content in enumerate(["Ships?", part, "Ships?"])
    ]
    tasks, notes = import_file("langsmith", write_rows(tmp_path / "in.jsonl", *rows))
    assert (tasks["ex"].query, notes) == ("Ships?", {})
    assert [response.text for response in tasks["ex"].responses] == ["Three."] * 3


def test_epochs_of_inspect_are_trials() -> None:
    tasks, notes = import_file("inspect", ROWS / "inspect.json")
    assert list(tasks) == ["7", "s1"]
    roles = ["assistant", "tool", "user", "assistant"]
    assert responses_of(tasks["s1"]) == {
        "s1/1": (roles, {"epoch": 1, "match": "C", "reward": 1.0}),
        "s1/2": (roles, {"epoch": 2, "match": "I", "reward": 0.0}),
    }
    assert responses_of(tasks["7"]) == {"7/1": (roles, {"epoch": 1})}, "NaN is unscored"
    assert tasks["s1"].reference == "3\nthree"
    first = (tasks["7"].responses[0].messages or ())[0]
    assert (first.reasoning, first.text, first.tool_calls[0].arguments) == (
        "I count.",
        "Let me see.",
        {"what": "ships"},
    )
    results = [(one.messages or ())[1].content for task in tasks.values() for one in task.responses]
    assert results == ["3", "3", "Error: Too slow."]
    assert notes["scores"] == ["7/1: match"]
    assert notes["parts"][0] == "7/1: store, output"


def test_the_last_path_of_verifiers_graphs_is_read() -> None:
    tasks, notes = import_file("verifiers", ROWS / "verifiers.jsonl")
    ships = tasks["ships-0"]
    roles = ["assistant", "tool", "assistant"]
    assert responses_of(ships) == {
        "ships-0/ta": (roles, {"right": 1.0, "short": 0.5, "reward": 1.1}),
        "ships-0/tb": (roles, {"short": 0.5}),
    }
    assert (ships.reference, ships.responses[0].agent) == ("3", "solver")
    assert [m.role for m in ships.query if not isinstance(m, str)] == ["system", "user"]
    assert (ships.tools or ())[0]["function"] == {
        "name": "count",
        "description": "Counts.",
        "parameters": {"type": "object"},
    }
    assert notes == {"messages": ["ta", "tb"], "traces": ["tb"]}


RESULT = json.loads((ROWS / "taubench.json").read_text())[0]
UNLIKE = {"instruction": "You want to cancel order 1.", "actions": []}
EXAMPLE = {"id": "a", "inputs": {"messages": [{"role": "boss", "content": ""}]}}
TRACE = {"id": "t", "task": {"data": {}}, "nodes": [{"message": {"role": "user", "content": 3}}]}


@all_rows(
    ("form", "content", "words"),
    [
        (
            "taubench",
            json.dumps([RESULT, RESULT]),
            "in, field [1]: is the trial '0' of the task '0' again; keep one of",
        ),
        (
            "taubench",
            json.dumps([{**RESULT, "reward": "1"}]),
            "in, field [0].reward: is the text '1'; write a",
        ),
        (
            "taubench",
            json.dumps([RESULT, {**RESULT, "trial": 1, "info": {"task": UNLIKE}}]),
            "in, field [1]: has another reference_actions for the task '0' than an earlier one; import",
        ),
        ("taubench", '[{"task_id": 0}]', "in, field [0].reward: is missing; "),
        ("taubench", "null", "in: is null; write a list of results"),
        (
            "taubench",
            "[3\n}",
            "in, line 2: is not valid JSON (Expecting ',' delimiter); export the",
        ),
        ("langsmith", [EXAMPLE], "in, line 1, field inputs.messages[0].role: is the text 'boss'; "),
        (
            "verifiers",
            [{"traces": [TRACE]}],
            "in, line 1, field traces[0].messages[0].content: is the number 3; write ",
        ),
        (
            "verifiers",
            [{"prompt": "?"}],
            "in, line 1, field traces: is missing; write it: the episodes of 0.4 are read, and not its older rows",
        ),
        ("inspect", "{}\n{}", "in, line 2: is not valid JSON (Extra data); this form is one JSON"),
        (
            "inspect",
            '{"samples": [{"id": 1, "messages": [{"role": "tool", "content": "", "tool_call_id": "x"}]}]}',
            "in, field samples[0].messages[0].tool_call_id: names 'x', which no message before it",
        ),
        ("inspect", '{"samples": [{"id": 1}]}', "has nothing that makes a task (samples without"),
    ],
)
def test_an_error_names_file_line_and_field(
    form: str, content: Any, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "in"
    if isinstance(content, str):
        path.write_text(content)
    else:
        write_rows(path, *content)
    with pytest.raises(InputError) as raised:
        import_file(form, path)
    assert words in str(raised.value)


def test_what_is_left_out_of_a_file_without_a_task_is_counted_by_its_reason(
    tmp_path: Path,
) -> None:
    rows = [{"id": f"r{number}", "run_type": "llm", "parent_run_id": "p"} for number in range(7)]
    path = write_rows(tmp_path / "in.jsonl", *rows, {"id": "bare", "inputs": {}})
    with pytest.raises(InputError) as raised:
        import_file("langsmith", path)
    assert (
        "it has their messages: 7 (r0, r1, r2, r3, r4, 2 more); "
        "rows whose inputs are neither messages nor one text are left out: 1 (bare)"
    ) in str(raised.value)
    path.rename(tmp_path / "in.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"has their messages: 7 \("):
        import_file("langsmith", tmp_path / "in.json")


def test_a_packed_log_is_to_be_converted_by_inspect() -> None:
    with pytest.raises(
        InputError, match=r"log\.eval: is packed; write it as JSON: inspect log conv"
    ):
        import_file("inspect", Path("log.eval"))
