"""`jurygraph score` of a table: its columns are named by options, also in the command that repeats failures."""

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from jurygraph.runs.run import Run
from tests.cli.conftest import CONFIG, EVALUATORS, Command

NAMED = ("--prompt-column", "question", "--response-column", "answer", "--id-column", "id")
TABLE = """\
id,question,answer,split
door,Ask for the door.,"please, the door",train
salt,Ask for the salt.,crash,test
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "manners.py").write_text(EVALUATORS)
    (tmp_path / "jury.yaml").write_text(CONFIG)
    (tmp_path / "data.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_table_is_scored_and_its_other_columns_come_back_as_labels(run: Command) -> None:
    dry = run("score", "data.csv", *NAMED, "--dry-run", "--json")
    assert json.loads(dry.out)["responses"] == 2
    done = run("score", "data.csv", *NAMED, "--out", "run")
    assert done.code == 1  # the crash
    traces = [json.loads(line) for line in run("export", "run", "--to", "jsonl").out.splitlines()]
    assert [(one["task_id"], one["response_id"], one["labels"]) for one in traces] == [
        ("door", "door", {"split": "train"}),
        ("salt", "salt", {"split": "test"}),
    ]
    assert run("score", "data.csv", *NAMED, "--out", "run").err.startswith("run is complete; ")
    (command,) = [line for line in done.err.splitlines() if "to repeat" in line]
    words = shlex.split(command.partition("jurygraph ")[2])
    assert words[:8] == ["score", "data.csv", *NAMED]
    assert run(*words).code == 1


@pytest.mark.usefixtures("folder")
def test_texts_that_answer_no_prompt_are_scored_where_the_user_says_so(run: Command) -> None:
    named = ("--response-column", "answer", "--id-column", "id")
    refused = run("score", "data.csv", *named, "--out", "run")
    assert (refused.code, "say so with --no-prompt" in refused.err) == (2, True), refused.err
    done = run("score", "data.csv", "--no-prompt", *named, "--group-by", "id", "--out", "run")
    assert done.code == 1, done.err  # the crash
    assert "--group-by id --no-prompt" in done.err, "the command that repeats it"
    with Run.open(Path("run")) as scored:
        assert scored.short_query("door") == ""
    both = run("score", "data.csv", "--no-prompt", *NAMED, "--out", "other")
    assert both.err == "error: --no-prompt: is given beside --prompt-column; remove one of them\n"


def test_a_bad_row_is_named_by_line_and_column_and_nothing_is_written(
    folder: Path, run: Command
) -> None:
    (folder / "data.csv").write_text(TABLE + 'gate," ",please,test\n')
    refused = run("score", "data.csv", *NAMED, "--out", "run")
    message = "error: data.csv, line 4, column question: is empty; fill it, or leave the row out\n"
    assert refused == (2, "", message)
    assert not (folder / "run").exists()


CHAT = '{"case": "a", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.jsonl", '{"case": broken', "bad.jsonl, line 1: is not valid JSON"),
        (
            "list.jsonl",
            f"[{CHAT}]\n",
            "list.jsonl, line 1: is a list, or begins one; name the file .json",
        ),
        ("pretty.jsonl", f"[\n{CHAT}\n]\n", "pretty.jsonl, line 1: is a list, or begins one; name"),
        (
            "chats.csv",
            "case,messages\na,[]\n",
            "chats.csv: is a table; add --messages-column messages; it has",
        ),
        (
            "texts.csv",
            "case,q\na,b\n",
            "texts.csv: is a table; name its columns with --prompt-column (or --no-prompt) and",
        ),
        (
            "tasks.jsonl",
            '{"id": "t", "query": "q", "responses": []}',
            "tasks.jsonl: has tasks, each with a `query`; leave out",
        ),
    ],
)
@pytest.mark.parametrize("option", ["--group-by", "--agent-column"])
def test_an_option_of_columns_does_not_hide_what_is_wrong_with_a_file(
    folder: Path, run: Command, name: str, text: str, message: str, option: str
) -> None:
    (folder / name).write_text(text)
    refused = run("score", name, option, "case", "--out", "run")
    assert refused.code == 2
    assert refused.err.startswith(f"error: {message}"), refused.err


LOOKING = """\
workspaces: files
model: openai-compatible:http://127.0.0.1:9/v1#tiny
evaluators:
  - use: criteria
    tools: [read_file]
    params: {criteria: {adds: It adds two numbers.}}
"""


def test_files_that_are_missing_are_named_before_a_judge_is_asked(
    folder: Path, run: Command
) -> None:
    (folder / "files" / "a").mkdir(parents=True)
    (folder / "jury.yaml").write_text(LOOKING)
    named = ("--prompt-column", "task", "--response-column", "answer", "--workspace-column", "at")
    table = folder / "programs.csv"
    table.write_text("task,answer,at\nAdd.,See the files.,a\nAdd.,There are none.,\n")
    dry = run("score", "programs.csv", *named, "--dry-run", "--json")
    assert json.loads(dry.out)["responses"] == 2
    table.write_text("task,answer,at\nAdd.,See the files.,b\n")
    refused = run("score", "programs.csv", *named, "--out", "run")
    assert refused.code == 2
    assert "programs.csv, line 2, response 'row-1': workspace: 'b' is not there" in refused.err
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ((), {"model": "m7"}),
        (("--response-from", "1"), {"model": "m7"}),
        (("--messages-column", "messages"), {"model": "m7"}),
        (("--agent-column", "model"), {}),
        (("--id-column", "id"), {"model": "m7"}),
    ],
)
def test_options_of_a_file_of_chats_leave_it_its_ids_and_its_tools(
    options: tuple[str, ...], labels: dict[str, str], folder: Path, run: Command
) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    tools = [{"type": "function", "function": {"name": "look"}}]
    row = {"id": "salt", "messages": chat, "tools": tools, "model": "m7"}
    (folder / "chats.jsonl").write_text(json.dumps(row) + "\n")
    assert run("score", "chats.jsonl", *options, "--out", "run").code == 0
    (trace,) = [json.loads(line) for line in run("export", "run", "--to", "jsonl").out.splitlines()]
    assert (trace["task_id"], trace["labels"]) == ("salt", labels)
    assert "run is complete; " in run("score", "chats.jsonl", *options, "--out", "run").err


def test_calls_in_a_prompt_are_not_said_to_be_unjudged(folder: Path, run: Command) -> None:
    """No response of such a table could begin with them."""
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "look"}}]}
    row = {"prompt": [{"role": "user", "content": "Salt!"}, call], "answer": "no"}
    (folder / "table.jsonl").write_text(json.dumps(row) + "\n")
    named = ("--prompt-column", "prompt", "--response-column", "answer")
    told = run("score", "table.jsonl", *named, "--dry-run")
    assert (told.code, "--response-from" in told.err) == (0, False), told.err


def test_messages_by_another_name_in_a_later_line_are_named_too(folder: Path, run: Command) -> None:
    chat = [{"role": "user", "content": "Salt?"}, {"role": "assistant", "content": "No."}]
    rows = [{"messages": chat}, {"message": chat}]
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, rows)))
    refused = run("score", "chats.jsonl", "--dry-run")
    assert "line 2, field message: is a list of messages by another name" in refused.err
    (folder / "chats.jsonl").write_text(json.dumps({"messages": chat}))
    refused = run("score", "chats.jsonl", "--messages-column", "chat", "--dry-run")
    assert "has no column 'chat'; name one that is there: messages" in refused.err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            {"traj": [{"role": "user", "content": "Salt!"}], "reward": 1},
            "line 1, field traj: is a list of messages by another name; call it `messages`, each",
        ),
        (
            {"id": "1", "mesages": [{"role": "user", "content": "Salt!"}], "tools": []},
            "line 1, field mesages: is a list of messages by another name; call it `messages`, each",
        ),
        (
            {"message": [{"role": "user", "content": "Salt!"}]},
            "line 1, field message: is a list of messages by another name; call it `messages`, each",
        ),
        (
            {"dialogue": [{"from": "human", "value": "Salt!"}]},
            "; call it `messages`, each an object with `role` and `content`, or add --messages-column dialogue\n",
        ),
        (
            {"run_type": "llm", "inputs": {"messages": []}, "outputs": {}},
            "line 1: is a row of LangSmith's; make tasks of it: jurygraph import langsmith chats.jsonl --out",
        ),
        ([{"messages": []}], "`jq -c '.[]'` makes lines of a list"),
        (
            [{"role": "user", "content": "Salt!"}],
            "line 1: is a list; a chat is {\"messages\": […]}: `jq -c '{messages: .}'` makes one of each list",
        ),
    ],
)
def test_chats_in_another_form_are_named_with_the_way_to_ours(
    content: Any, problem: str, folder: Path, run: Command
) -> None:
    (folder / "chats.jsonl").write_text(json.dumps(content) + "\n")
    refused = run("score", "chats.jsonl", "--out", "run")
    assert (refused.code, problem in refused.err) == (2, True), refused.err


@pytest.mark.parametrize("name", ["chats.jsonl", "chats.json"])
def test_messages_by_another_name_are_read_by_their_option_with_what_stands_beside_them(
    name: str, folder: Path, run: Command
) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    row = {"id": "salt", "agent": "ann", "conversation": chat, "system": "Be brief."}
    (folder / name).write_text(json.dumps([row] if name.endswith(".json") else row))
    named = (name, "--messages-column", "conversation")
    assert run("score", *named, "--out", "run").code == 0
    (trace,) = [json.loads(line) for line in run("export", "run", "--to", "jsonl").out.splitlines()]
    assert (trace["task_id"], trace["agent"], trace["labels"]) == ("salt", "ann", {})
    assert "run is complete; " in run("score", *named, "--out", "run").err


def test_a_chat_may_have_an_agent_and_a_number_as_its_id(folder: Path, run: Command) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    row = {"agent": "ann", "messages": chat}
    lines = [json.dumps({"id": number, **row}) for number in (7, 12)]
    (folder / "chats.jsonl").write_text("\n".join(lines))
    assert run("score", "chats.jsonl", "--out", "run").code == 0
    shown = run("show", "run").out.splitlines()
    assert [line.split()[:2] for line in shown[2:]] == [["7", "ann"], ["12", "ann"]]
    assert run("import", "chats", "chats.jsonl", "--out", "tasks.jsonl").code == 0
    assert run("score", "tasks.jsonl", "--out", "imported").code == 0
    shown = run("show", "imported").out.splitlines()
    assert [line.split()[:2] for line in shown[2:]] == [["7/answer", "ann"], ["12/answer", "ann"]]


def test_a_chat_has_its_reference_actions_and_so_has_a_table_of_messages_with_its_tools(
    folder: Path, run: Command
) -> None:
    tool = {"function": {"name": "look", "parameters": {}}}
    call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "Salt!"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    row = {"messages": chat, "tools": [tool], "reference_actions": [{"name": "look"}]}
    row["system"] = [{"type": "text", "text": "Be brief."}]
    # not every chat has them, and the first one has not
    other_row = {"id": "row-3", "messages": chat, "tools": [tool], "reference_messages": chat[1:]}
    lines = [json.dumps(line) for line in ({"messages": chat}, row, other_row)]
    (folder / "chats.jsonl").write_text("\n".join(lines))
    with (folder / "chats.csv").open("w") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow({name: json.dumps(value) for name, value in row.items()})
        writer.writerow({**dict.fromkeys(row, ""), "messages": json.dumps(chat)})
    reward = {"reward": {"match": 0.5, "valid": 0.5}}
    (folder / "calls.yaml").write_text(
        json.dumps({"evaluators": ["tools.match", "tools.valid"], **reward})
    )
    run("score", "chats.jsonl", "--config", "calls.yaml", "--out", "lines")
    assert run("import", "chats", "chats.jsonl", "--out", "tasks.jsonl").code == 0
    run("score", "tasks.jsonl", "--config", "calls.yaml", "--out", "imported")
    named = (
        "chats.csv",
        "--messages-column",
        "messages",
        "--config",
        "calls.yaml",
        "--out",
        "cells",
    )
    assert "match" in run("score", *named).out
    for name, folder_name in (("row-2", "lines"), ("row-3", "lines"), ("row-1", "cells")):
        assert f"{name}     -      ok      1.0000" in run("show", folder_name).out
        assert "Be brief." not in run("export", folder_name, "--to", "jsonl").out  # no label
    assert run("show", "imported").out.count(" ok      1.0000") == 2


def test_a_component_that_does_not_apply_has_no_value_in_the_table(
    folder: Path, run: Command
) -> None:
    assert run("init", "own", "--template", "agent").code == 0
    words = ("--config", "own/jury.yaml", "--set", "reward={match: 1, grounded: 0.2}")
    shown = run("score", "own/tasks.jsonl", *words, "--out", "own/run").out
    assert "+ 2 not applicable" in shown
    table = [line.split() for line in run("show", "own/run").out.splitlines()]
    columns = {name: [row[index] for row in table[2:]] for index, name in enumerate(table[0])}
    assert columns["best"][columns["grounded"].index("-")] < max(columns["best"])
    named = run("show", "own/run", "--columns", "best", "--sort", "best").out.splitlines()[2:]
    assert [line.split()[1] for line in named] == sorted(columns["best"])


def test_chats_in_the_form_of_sharegpt_are_read(folder: Path, run: Command) -> None:
    said = [{"from": "human", "value": "Salt!"}, {"from": "gpt", "value": "please"}]
    (folder / "chats.jsonl").write_text(json.dumps({"conversations": said}) + "\n")
    for options in ((), ("--response-from", "first-reply")):
        told = run("score", "chats.jsonl", *options, "--dry-run")
        assert told.code == 0, told.err


def test_replies_before_the_last_user_are_said_to_be_unjudged_and_first_reply_judges_them(
    folder: Path, run: Command
) -> None:
    call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "Salt!"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "there"},
        {"role": "assistant", "content": "There."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "You are welcome."},
    ]
    chats = [
        chat,
        [{"role": "system", "content": "Help."}, *chat[:1], *chat[3:]],
        [chat[0], chat[3]],
    ]
    (folder / "chats.jsonl").write_text("\n".join(json.dumps({"messages": it}) for it in chats))
    remedy = "score the chats with --response-from first-reply to judge them"
    said = "replies of the assistant in 2 of 3 tasks stand before the last message of a user: "
    said += f"they are not judged; {remedy}\n"
    for options in (("--dry-run",), ("--out", "run")):
        assert said in run("score", "chats.jsonl", *options).err
    imported = run("import", "chats", "chats.jsonl", "--out", "tasks.jsonl")
    assert (
        "leave out the import, and score this file with --response-from first-reply" in imported.err
    )
    whole = run("score", "chats.jsonl", "--response-from", "first-reply", "--out", "whole")
    assert (whole.code, remedy in whole.err) == (0, False)
    for start, problem in (
        ("first", "'--response-from': is 'first'; write the index of a message, or first-reply\n"),
        (
            "2",
            "message 2 of the chat answers '1', a call of message 1, before the response; begin the response",
        ),
    ):
        refused = run("score", "chats.jsonl", "--response-from", start, "--out", "other")
        assert (refused.code, problem in refused.err) == (2, True), refused.err


def test_an_array_of_chats_and_anthropics_system_are_read_like_lines(
    folder: Path, run: Command
) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    row = {"id": "salt", "agent": "ann", "system": "Be brief.", "messages": chat}
    (folder / "chats.json").write_text(f"\n\n {json.dumps([row], indent=1)}")
    (folder / "chats.jsonl").write_text(json.dumps(row) + "\n")
    named = ("--messages-column", "messages")
    shown = []
    for number, words in enumerate((["chats.json"], ["chats.json", *named], ["chats.jsonl"])):
        out = f"run{number}"
        assert run("score", *words, "--out", out).code == 0
        (trace,) = run("export", out, "--to", "jsonl").out.splitlines()
        shown.append({name: json.loads(trace)[name] for name in ("task_id", "agent", "labels")})
    assert shown == [{"task_id": "salt", "agent": "ann", "labels": {}}] * 3
    assert run("import", "chats", "chats.jsonl", "--out", "tasks.jsonl").code == 0
    query = json.loads((folder / "tasks.jsonl").read_text())["query"]
    assert [message["role"] for message in query] == ["system", "user"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("score", "chats.json", "--agent-column", "agent"),
            "chats.json: there is no such file; did you mean chats.jsonl?",
        ),
        (
            ("score", "empty.jsonl", "--agent-column", "agent"),
            "empty.jsonl: has no rows; name a file with one at least",
        ),
        (
            ("score", "chats.csv"),
            "chats.csv: is a table; add --messages-column messages; it has messages\n",
        ),
        (
            ("import", "chats", "chats.csv"),
            "score it as it is: jurygraph score chats.csv --messages-column COLUMN\n",
        ),
        (
            ("score", "array.jsonl"),
            ", or `jq -c '.[]'` of an array\n",
        ),
    ],
)
def test_a_file_that_is_no_chats_says_how_it_is_read(
    words: tuple[str, ...], problem: str, folder: Path, run: Command
) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    (folder / "chats.jsonl").write_text(json.dumps({"messages": chat}))
    (folder / "chats.csv").write_text("messages\n[]\n")
    (folder / "empty.jsonl").touch()
    (folder / "array.jsonl").write_text(json.dumps([{"messages": chat}], indent=1))
    refused = run(*words, "--out", "out")
    assert (refused.code, problem in refused.err) == (2, True), refused.err


def test_a_chat_without_a_reply_is_to_be_left_out(folder: Path, run: Command) -> None:
    chat = [{"role": "user", "content": "Salt!"}]
    (folder / "chats.jsonl").write_text(json.dumps({"id": "salt", "messages": chat}) + "\n")
    refused = run("score", "chats.jsonl", "--out", "run")
    assert refused.err == (
        "error: chats.jsonl, line 1, column messages: has no reply to judge: its last message is the user's; leave the "
        "chat out, or say where the response starts with --response-from\n"
    )


def test_a_column_that_an_evaluator_probably_needs_is_said_to_be_a_label(
    folder: Path, run: Command
) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    labels = {"tool": "x", "kind": "y", "bot": "b", "system": 1}
    row = {"messages": chat, "reference_action": [], **labels}
    (folder / "chats.jsonl").write_text(json.dumps(row))
    names = ("tools.match", "tools.valid", "maths.accuracy")
    words = ("--set", f"evaluators=[{', '.join(names)}]", "--set", "reward={valid: 1}")
    notes = [
        "column 'bot' is a label of 1 responses; if it names their agents, add --agent-column bot",
        "column 'reference_action' is a label of 1 responses; if it is the reference_actions that tools.match needs, "
        "call it reference_actions",
        "column 'tool' is a label of 1 responses; if it is the tools that tools.valid needs, call it tools",
    ]
    for how in (("--dry-run",), ("--out", "run")):
        printed = run("score", "chats.jsonl", *words, *how).err.splitlines()
        assert [line for line in printed if " is a label of " in line] == notes
    (folder / "chats.jsonl").write_text(json.dumps({**row, "context": "web"}))
    told = run("score", "chats.jsonl", *words, "--dry-run").err
    assert "column 'context' has the passages of 1 tasks; rename it if it is a label\n" in told
    (folder / "data.csv").write_text("question,answer,gold\n1 + 1?,2,2\n")
    told = run("score", "data.csv", *NAMED[:4], *words, "--dry-run").err
    assert "the reference that maths.accuracy needs, name it with --reference-column\n" in told
    named = (*NAMED[:4], "--reference-column", "gold")
    assert " is a label " not in run("score", "data.csv", *named, *words, "--dry-run").err


def test_what_breaks_the_pairing_of_agents_is_said_before_anything_is_judged(
    folder: Path, run: Command
) -> None:
    columns = (*NAMED[:4], "--agent-column", "system", "--group-column", "question", "--dry-run")
    pairs = [(question, system) for question in "abcde" for system in ("dense", "bm25")]

    def notes(answers: list[tuple[str, str, str]]) -> list[str]:
        rows = [f"{question}?,{system},{answer}\n" for question, system, answer in answers]
        (folder / "data.csv").write_text("question,system,answer\n" + "".join(rows))
        printed = run("score", "data.csv", *columns).err
        return printed.partition("dry run")[0].splitlines()

    answers = [(*pair, "yes") for pair in pairs]
    assert notes(answers) == ["10 responses to 5 groups"]
    assert notes([("a", "Dense ", "yes"), *answers[1:]])[1:] == [
        "'Dense ' and 'dense' differ only in case, spaces or Unicode form, and count as two; "
        "write one name if they are one"
    ]
    for again in (["bm25"], ["bm25", "dense"]):
        assert notes([*answers, *(("c", system, "no") for system in again)])[1:] == [
            "tasks, or groups, with several answers of one agent: 1 ('c?')"
        ]
    assert notes(answers[1:])[1:] == ["tasks, or groups, that only some agents answered: 1 ('a?')"]
    assert notes([*answers[:-1], ("e", "bm25", " ")])[1:] == ["empty answers: 1 ('row-10')"]
    # what most groups have was meant: several samples of each agent, or agents with questions of their own
    assert notes(answers * 2) == ["20 responses to 5 groups"]
    assert notes(answers[::3]) == []


def test_all_bad_rows_of_a_table_are_told_at_once_and_nothing_is_written(
    folder: Path, run: Command
) -> None:
    rows = [{"messages": [{"role": "user", "content": "Salt?"}, {"role": "bot", "content": "No."}]}]
    rows += [{"messages": [{"role": "user", "content": "Salt?"}]}] * 22
    lines = [*map(json.dumps, rows), '{"messages": [']
    (folder / "chats.jsonl").write_text("\n".join(lines))
    ended = run("score", "chats.jsonl", "--out", "run")
    assert (ended.code, (folder / "run").exists()) == (2, False)
    first, second, last = ended.err.splitlines()
    assert first.startswith(
        "error: chats.jsonl, line 1, column messages[1].role: is the text 'bot'"
    )
    assert second.startswith("chats.jsonl, line 24: ends within its JSON: the file was cut off")
    assert last.startswith("chats.jsonl, line 2, column messages: has no reply to judge: ")
    assert last.endswith(" (and 21 more: line 3, line 4, line 5, line 6, line 7, 16 more)")
    (folder / "chats.jsonl").write_text("\n".join(lines[:2] + lines[-1:]))
    assert (
        "chats.jsonl, line 3: ends within its JSON" in run("score", "chats.jsonl", "--dry-run").err
    )
    (folder / "data.csv").write_text("question,anwser\na,b\nc,d\n")  # of a header once
    assert len(run("score", "data.csv", *NAMED[:4], "--dry-run").err.splitlines()) == 1


def test_conversations_that_end_before_the_user_is_answered_are_counted(
    folder: Path, run: Command
) -> None:
    call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    found = {"role": "tool", "tool_call_id": "1", "content": "there"}
    says = {"role": "assistant", "content": "There."}
    chats = [[asks], [asks, found], [asks, found, says], [{**asks, "content": "I look."}]]
    words = ("--set", "evaluators=[trajectory.loops]", "--set", "reward={loops: 1}")
    said = "so that the user got no answer: 2 ('r0', 'r1')\n"
    rows = [{"id": f"r{n}", "messages": chat} for n, chat in enumerate(chats)]
    (folder / "tasks.jsonl").write_text(json.dumps({"id": "t", "query": "?", "responses": rows}))
    first = {"role": "user", "content": "Salt?"}
    rows = [{**row, "messages": [first, *chat]} for row, chat in zip(rows, chats, strict=True)]
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name, out in (("tasks.jsonl", "--dry-run"), ("chats.jsonl", "--out=run")):
        told = run("score", name, out, *words).err
        assert told.startswith("conversations that end in a call of a tool or its result, " + said)


def test_a_dry_run_counts_the_tasks_of_which_all_that_counts_is_left_out(
    folder: Path, run: Command
) -> None:
    evaluators = "evaluators=[{use: maths.accuracy, if_missing: not_applicable}, trajectory.loops]"
    (folder / "data.csv").write_text("question,answer\n1 + 1?,2\n1 + 2?,3\n")
    words = ("score", "data.csv", *NAMED[:4], "--set", evaluators)
    told = run(*words, "--set", "reward={accuracy: 1, loops: 0}", "--dry-run").err
    assert "rewards of 2 of 2 tasks will fail: they lack what each question that counts" in told
    counted = run(*words, "--set", "reward={accuracy: 1, loops: 0.1}", "--dry-run").err
    assert "will fail" not in counted


def test_an_evaluator_that_lacks_something_of_every_chat_is_named_with_the_way_out(
    folder: Path, run: Command
) -> None:
    chat = [{"role": "user", "content": "Salt!"}, {"role": "assistant", "content": "please"}]
    (folder / "chats.jsonl").write_text(json.dumps({"messages": chat}))
    words = ("score", "chats.jsonl", "--set", "evaluators=[tools.match]", "--set", "reward={}")
    lacks = "tools.match: 1 of 1 tasks lack what it needs ("
    fields = "reference_messages or reference_actions); give it to them, or take tools.match out\n"
    dry_run = run(*words, "--dry-run").err
    assert f"{lacks}{fields}".rstrip() in dry_run
    assert (
        "out; or leave them out: `if_missing: not_applicable`; else their rewards may fail\n"
        in dry_run
    )
    scored = run(*words, "--out", "run")
    assert scored.code == 1
    cause = (
        "tools.match: abstained on 1 of 1 tasks (first row-1: the task has neither reference_messages nor "
        "reference_actions); give them what it needs, or let it not apply where they lack that (`if_missing: "
        "not_applicable`), "
    )
    assert cause in scored.out
    assert f"1 of 1 rewards failed and have no value; {cause}" in scored.err


def test_a_table_of_a_run_has_the_group_of_each_task(folder: Path, run: Command) -> None:
    rows = [{"case": case, "q": "Salt?", "a": "Yes."} for case in ("soup", "cake")]
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    columns = ("--prompt-column", "q", "--response-column", "a", "--group-column", "case")
    (folder / "jury.yaml").write_text("evaluators: [maths.length]\n")
    options = ("--config", "jury.yaml", "--out", "run")
    assert run("score", "data.jsonl", *columns, *options).code == 0
    table = list(csv.DictReader(run("export", "run", "--to", "csv").out.splitlines()))
    assert [(row["task"], row["group"]) for row in table] == [("row-1", "soup"), ("row-2", "cake")]
    assert "group" in run("export", "run", "--to", "verdicts").out.splitlines()[0].split(",")


def test_an_exception_that_data_caused_names_the_row(folder: Path, run: Command) -> None:
    (folder / "checks.py").write_text(
        "import jurygraph as jg\n\n\n@jg.evaluator\ndef last(task, response):\n"
        "    return task.reference[3] == 'x'\n"
    )
    (folder / "jury.yaml").write_text("evaluators: [checks.last]\n")
    (folder / "data.csv").write_text("q,a,wanted\n?,yes,abcx\n?,no,ab\n")
    columns = ("--prompt-column", "q", "--response-column", "a", "--reference-column", "wanted")
    ended = run("score", "data.csv", *columns, "--config", "jury.yaml", "--out", "run")
    where = "(checks.py, line 6, in last), of response 'row-2' to task 'row-2'"
    assert f"string index out of range {where}" in ended.err
