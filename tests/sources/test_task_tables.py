"""Tables as tasks: the same ones in every file format, and every bad cell refused with file, line and column."""

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.schema import Message, Response, Rubric, Task
from jurygraph.sources import TableColumns, open_task_source, read_tasks
from jurygraph.sources.table_rows import read_rows
from jurygraph.sources.task_tables import add_columns_of_chats
from jurygraph.sources.tasks import TaskLinesFile
from tests.agents.facts.examples import SUFFIXES, write_table
from tests.rows import all_rows

Rows = list[dict[str, Any]]
COLUMNS = TableColumns(prompt="question", response=("answer",))
ROWS: Rows = [
    {
        "question": "2+2?",
        "answer": "four,\nof course",
        "key": "4",
        "item": "sum",
        "by": "ann",
        "source": "web",
    },
    {
        "question": "A colour?",
        "answer": 'say "green"',
        "key": "green",
        "item": "colour",
        "by": "ann",
        "source": "",
    },
    {"question": "2+2?", "answer": "five", "key": "4", "item": "sum", "by": "bo", "source": "book"},
]


def columns(**roles: Any) -> TableColumns:
    return COLUMNS.model_copy(update=roles)


def jsonl(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refusal(path: Path, named: TableColumns = COLUMNS) -> str:
    """Return the error, without the folder of the file."""
    with pytest.raises(InputError) as raised:
        read_tasks(path, columns=named)
    return str(raised.value).replace(f"{path.parent}/", "")


def save_spreadsheet(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".xlsx"])
def test_every_format_gives_the_same_tasks_and_responses(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{suffix}"
    if suffix == ".xlsx":
        save_spreadsheet(path, [list(ROWS[0]), *([*row.values()] for row in ROWS)])
    else:
        write_table(path, ROWS)
    named = columns(reference="key", agent="by", group_by="item")
    empty = None if suffix == ".xlsx" else ""  # a spreadsheet has no empty texts
    rest = [{"source": row["source"] or empty} for row in ROWS]
    texts = [row["answer"] for row in ROWS]
    assert read_tasks(path, columns=named) == [
        (
            Task(id="sum", query="2+2?", reference="4"),
            (
                Response(id="row-1", text=texts[0], agent="ann", labels=rest[0]),
                Response(id="row-3", text=texts[2], agent="bo", labels=rest[2]),
            ),
        ),
        (
            Task(id="colour", query="A colour?", reference="green"),
            (Response(id="row-2", text=texts[1], agent="ann", labels=rest[1]),),
        ),
    ]


def test_a_cover_sheet_is_said_to_be_what_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_spreadsheet(tmp_path / "t.xlsx", [["How to rate"]])
    book = openpyxl.load_workbook(path)
    book.create_sheet("ratings").append(["item", "label"])
    book.save(path)
    assert list(read_rows(path)) == []
    sheets = "of the sheets ['Sheet', 'ratings'] the first is read; move another one first, or save"
    assert caplog.messages == [f"{path}: {sheets} it as CSV"]


def test_a_spreadsheet_may_have_numbers_for_texts_empty_rows_and_more_columns_than_names(
    tmp_path: Path,
) -> None:
    rows = [
        ["question", "answer", "n", None],
        [2, 4, 7, "?"],
        [None, None, None, None],
        ["half of 5?", 2.5, 0.5, None],
    ]
    (first, given), (_, also) = read_tasks(
        save_spreadsheet(tmp_path / "t.xlsx", rows), columns=COLUMNS
    )
    assert (first.query, given[0].text, given[0].labels) == ("2", "4", {"n": 7})
    assert (also[0].text, also[0].labels) == ("2.5", {"n": 0.5})


@all_rows(
    ("rows", "problem"),
    [
        ([["question", "answer"], [None, "4"]], "t.xlsx, row 2, column question: is empty"),
        (
            [["question", "answer"], ["a", "=1+1"]],
            "t.xlsx, sheet 'Sheet', row 2, column 'answer': has a formula without a computed value; open",
        ),
        ([["question", "question"], ["a", "b"]], "t.xlsx, line 1: names column 'question' twice"),
        ([["prompt", "answer"], ["a", "b"]], "t.xlsx: has no column 'question'"),
        (
            None,
            "t.xlsx: cannot be read as Excel (BadZipFile: File is not a zip file); save it again as .xlsx",
        ),
    ],
)
def test_a_wrong_spreadsheet_is_refused_with_its_row(
    rows: Any, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.xlsx"
    if rows is None:
        path.write_text("question,answer")
    else:
        save_spreadsheet(path, rows)
    assert problem in refusal(path)


def rewrite_member(path: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Change a member of a zip file."""
    with zipfile.ZipFile(path) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)


SHEET = "xl/worksheets/sheet1.xml"
DAMAGED: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut off": (SHEET, lambda content: content[: len(content) // 2]),
    "no sheet": (
        "xl/_rels/workbook.xml.rels",
        lambda content: content.replace(b"sheet1", b"gone"),
    ),
    "no number": (
        SHEET,
        lambda content: content.replace(b"<v>7</v>", b"<v>seven</v>"),
    ),
}


@all_rows("kind", DAMAGED)
def test_a_damaged_spreadsheet_is_an_input_error(kind: str, tmp_path: Path) -> None:
    member, change = DAMAGED[kind]
    path = save_spreadsheet(
        tmp_path / "t.xlsx", [["question", "answer", "n"], ["a", "b", 7], ["c", "d", 7]]
    )
    rewrite_member(path, member, change)
    assert refusal(path).startswith("t.xlsx: cannot be read as Excel")


def test_the_tools_of_a_chat_are_those_of_its_task(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    rows = [{"messages": chat, "by": "ann"}, {"messages": chat, "tools": tools}]
    pairs = read_tasks(jsonl(tmp_path / "chats.jsonl", rows))
    assert [task.tools for task, _ in pairs] == [None, tuple(tools)]
    assert [response.labels for _, (response,) in pairs] == [{"by": "ann"}, {}]
    wrong = jsonl(tmp_path / "wrong.jsonl", [{"messages": chat, "tools": "look"}])
    with pytest.raises(InputError, match="line 1, column tools: is the text 'look'; write a list"):
        read_tasks(wrong)


CHAT = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


def test_a_chat_may_have_the_context_of_its_task(tmp_path: Path) -> None:
    """Passages are those of their rows; what is neither text nor list is a label, as it was in stored runs."""
    cells: list[Any] = [None, "Dogs pay.", [{"text": "7 to 9.", "source": "a"}], [], {"page": 3}]
    rows = [{"messages": CHAT}, *({"messages": CHAT, "context": cell} for cell in cells)]
    path = jsonl(tmp_path / "chats.jsonl", rows)
    read = read_tasks(path)
    found = [None if task.context is None else len(task.context) for task, _ in read]
    assert found == [None, None, 1, 1, 0, None]
    assert [response.labels for _, (response,) in read if response.labels] == [
        {"context": cells[-1]}
    ]
    table = [{"messages": json.dumps(CHAT), "passages": cell} for cell in ("", "Dogs pay.", "7")]
    named = TableColumns(messages="messages", context="passages")
    read = read_tasks(write_table(tmp_path / "c.csv", table), columns=named)
    assert [task.context and task.context[0].text for task, _ in read] == [None, "Dogs pay.", None]
    assert read[-1][1][0].labels == {"passages": 7}
    assert refusal(path, named).startswith("chats.jsonl: has no column 'passages'; ")


def test_every_line_of_chats_has_a_system_message_of_its_own_or_none(tmp_path: Path) -> None:
    """OpenAI's lines, whose system message is inside, come before Anthropic's, whose policy is outside."""
    inside = [{"role": "system", "content": "Be kind."}, *CHAT]
    policies = [None, "Be brief.", [{"type": "text", "text": "Be calm."}]]
    rows: list[dict[str, Any]] = [{"messages": inside}, {"messages": CHAT, "system": 7}]
    rows += [{"messages": CHAT, "system": policy} for policy in policies]
    pairs = read_tasks(jsonl(tmp_path / "chats.jsonl", rows))
    queries: list[Any] = [task.query for task, _ in pairs]
    texts = [[message.text for message in query] for query in queries]
    assert texts == [
        ["Be kind.", "Hi."],
        ["Hi."],
        ["Hi."],
        ["Be brief.", "Hi."],
        ["Be calm.", "Hi."],
    ]
    labels = [response.labels for _, (response,) in pairs]
    assert labels == [{}, {"system": 7}, {"system": None}, {}, {}]
    cells = [{"messages": json.dumps(CHAT), "system": cell} for cell in ("", "Be brief.")]
    cells.append({"messages": json.dumps(CHAT), "system": json.dumps(policies[2])})
    path = write_table(tmp_path / "chats.csv", cells)
    named = add_columns_of_chats(path, TableColumns(messages="messages"))
    queries = [task.query for task, _ in read_tasks(path, columns=named)]
    assert [[message.text for message in query] for query in queries] == texts[2:]


def test_a_single_word_that_is_called_system_is_no_system_message(tmp_path: Path) -> None:
    row = {"messages": json.dumps(CHAT), "system": "gpt-4o"}
    path = write_table(tmp_path / "chats.csv", [row])
    named = TableColumns(messages="messages")
    assert refusal(path, add_columns_of_chats(path, named)) == (
        "chats.csv, line 2, column system: is 'gpt-4o', and a single word is no system message for "
        "the prompt; rename it, to `agent` if it names the agent; or add --agent-column system"
    )
    lines = jsonl(tmp_path / "chats.jsonl", [{"messages": CHAT}, row | {"messages": CHAT}])
    with pytest.raises(InputError, match=r"chats.jsonl, line 2, column system: is 'gpt-4o', and"):
        read_tasks(lines)
    named = TableColumns(messages="messages", agent="system")
    ((task, (response,)),) = read_tasks(path, columns=add_columns_of_chats(path, named))
    assert (len(task.query), response.agent) == (1, "gpt-4o")
    spoken = jsonl(tmp_path / "zh.jsonl", [{"messages": CHAT, "system": "你是一个有用的助手。"}])
    ((task, _),) = read_tasks(spoken)
    assert len(task.query) == 2  # scripts without spaces write sentences in one word


def test_every_line_of_chats_has_an_id_and_an_agent_of_its_own_or_none(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"messages": CHAT, "agent": "a"}, {"messages": CHAT, "id": "b"}]
    rows.append({"messages": CHAT, "id": 3, "agent": {"name": "c"}})
    pairs = read_tasks(jsonl(tmp_path / "chats.jsonl", rows))
    found = [(task.id, one.id, one.agent, one.labels) for task, (one,) in pairs]
    assert found == [
        ("row-1", "row-1", "a", {}),
        ("b", "b", None, {}),
        ("3", "3", None, {"agent": {"name": "c"}}),
    ]


def test_a_later_line_of_chats_without_a_named_column_is_compared_with_the_first(
    tmp_path: Path,
) -> None:
    path = jsonl(tmp_path / "chats.jsonl", [{"messages": CHAT, "by": "a"}, {"messages": CHAT}])
    named = TableColumns(messages="messages", agent="by")
    assert refusal(path, named).endswith(
        "line 2: has no column 'by', and line 1 has it; give it one"
    )


def test_chats_of_one_case_that_end_differently_may_be_judged_as_a_whole(tmp_path: Path) -> None:
    start = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    chats = [[*start, {"role": "user", "content": text}] for text in ("Bye.", "And?")]
    last = {"role": "assistant", "content": "Bye."}
    path = jsonl(tmp_path / "t.jsonl", [{"case": "a", "messages": [*chat, last]} for chat in chats])
    with pytest.raises(InputError, match="--response-from first-reply judges all that an agent"):
        read_tasks(path, columns=TableColumns(messages="messages", group_by="case"))
    whole = TableColumns(messages="messages", group_by="case", response_from="first-reply")
    ((_, group),) = read_tasks(path, columns=whole)
    assert len(group) == 2


def test_a_blank_around_a_name_makes_no_other_group_task_or_agent(tmp_path: Path) -> None:
    rows = [
        {"question": "2+2?", "answer": "four", "item": "sum", "by": "ann"},
        {"question": "2+2? ", "answer": "five", "item": " sum\n", "by": "ann "},
    ]
    path = write_table(tmp_path / "table.csv", rows)
    compared = read_tasks(path, columns=columns(group="question", agent="by"))
    assert [task.query for task, _ in compared] == ["2+2?", "2+2? "]  # to the byte
    assert {task.group for task, _ in compared} == {"2+2?"}
    assert {response.agent for _, responses in compared for response in responses} == {"ann"}
    for row in rows:
        row["question"] = "2+2?"
    ((task, responses),) = read_tasks(
        write_table(tmp_path / "grouped.csv", rows), columns=columns(group_by="item")
    )
    assert (task.id, len(responses)) == ("sum", 2)


@pytest.mark.parametrize("column", ["question", "item"])
def test_a_blank_around_a_name_in_some_rows_of_a_task_is_no_contradiction(
    tmp_path: Path, column: str
) -> None:
    rows = [{"question": "2+2?", "answer": str(number), "item": "sum"} for number in range(2)]
    rows[1][column] += " "
    path = write_table(tmp_path / "table.csv", rows)
    ((task, responses),) = read_tasks(path, columns=columns(group_by=column, group="item"))
    assert (task.query, task.group, len(responses)) == ("2+2?", "sum", 2)


def test_a_blank_that_all_rows_have_stays_as_plans_of_runs_that_were_begun_have_it(
    tmp_path: Path,
) -> None:
    rows = [
        {"question": "2+2?", "answer": answer, "item": "sum ", "by": f"{answer} ", "part": " a"}
        for answer in ("four", "five")
    ]
    path = write_table(tmp_path / "table.csv", rows)
    named = columns(group_by="item", group="part", agent="by")
    ((task, responses),) = read_tasks(path, columns=named)
    assert (task.id, task.group) == ("sum ", " a")
    assert [response.agent for response in responses] == ["four ", "five "]


def test_without_groups_each_row_is_a_task_and_ids_are_row_numbers(tmp_path: Path) -> None:
    found = read_tasks(write_table(tmp_path / "t.csv", ROWS), columns=COLUMNS)
    assert [(task.id, [one.id for one in group]) for task, group in found] == [
        (f"row-{number}", [f"row-{number}"]) for number in (1, 2, 3)
    ]


def test_each_of_several_response_columns_is_an_agent(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "t.csv", [{"id": "q7", "question": "?", "gpt": "a", "qwen": "b", "n": "1"}]
    )
    ((task, group),) = read_tasks(path, columns=columns(response=("gpt", "qwen"), id="id"))
    assert task.id == "q7"
    assert [(one.id, one.agent, one.text, one.labels) for one in group] == [
        ("q7/gpt", "gpt", "a", {"n": 1}),
        ("q7/qwen", "qwen", "b", {"n": 1}),
    ]


def test_rows_with_the_same_prompt_are_one_task_named_by_its_first_row(tmp_path: Path) -> None:
    found = read_tasks(write_table(tmp_path / "t.csv", ROWS), columns=columns(group_by="question"))
    assert [(task.id, [one.id for one in group]) for task, group in found] == [
        ("row-1", ["row-1", "row-3"]),
        ("row-2", ["row-2"]),
    ]


def test_rows_with_other_passages_for_one_question_are_tasks_of_one_group(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("question,answer,found\nHigh?,330 m,One.\nHigh?,300 m,Two.\n")
    found = read_tasks(table, columns=columns(context="found", group="question"))
    assert [(task.id, task.group) for task, _ in found] == [("row-1", "High?"), ("row-2", "High?")]


def test_prompts_may_be_chats_and_names_and_references_whole_numbers(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "2+2?"}]
    rows = [
        {"question": chat, "answer": "4", "key": 4, "n": number, "score": 0.5}
        for number in (10, 11)
    ]
    named = columns(reference="key", id="n", group_by="question")
    ((task, group),) = read_tasks(jsonl(tmp_path / "t.jsonl", rows), columns=named)
    assert task == Task(id="10", query=(Message(role="user", content="2+2?"),), reference="4")
    assert [(one.id, one.labels) for one in group] == [
        ("10", {"score": 0.5}),
        ("11", {"score": 0.5}),
    ]


RUBRICS = {
    "lines": "It is right.\n\n  It is kind. \n",
    "a list of texts": '["It is right.", "It is kind."]',
    "a list of criteria": '[{"id": "c1", "text": "It is right.", "weight": 1}, "It is kind."]',
}


@pytest.mark.parametrize("cell", RUBRICS.values(), ids=RUBRICS)
def test_a_column_may_have_rubrics(cell: str, tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": answer, "needs": cell} for answer in "ab"]
    given = [(write_table(tmp_path / "t.csv", rows), columns(rubric="needs", group_by="question"))]
    if cell.startswith("["):
        lists = [{**row, "needs": json.loads(cell)} for row in rows]
        given.append(
            (jsonl(tmp_path / "t.jsonl", lists), columns(rubric="needs", group_by="question"))
        )
    for path, named in given:
        ((task, group),) = read_tasks(path, columns=named)
        assert task.rubric is not None
        found = [(one.id, one.text, one.weight) for one in task.rubric.criteria]
        assert found == [("c1", "It is right.", 1.0), ("c2", "It is kind.", 1.0)]
        assert [one.labels for one in group] == [{}, {}]


def test_criteria_in_parquet_lack_the_fields_that_are_null(tmp_path: Path) -> None:
    criteria = [
        {"id": "a", "text": "x", "weight": 1.0},
        {"id": "b", "text": "y", "weight": -2.0, "role": "penalty"},
    ]
    path = write_table(
        tmp_path / "t.parquet", [{"question": "q", "answer": "a", "needs": criteria}]
    )
    ((task, _),) = read_tasks(path, columns=columns(rubric="needs"))
    assert task.rubric == Rubric.model_validate({"criteria": criteria})


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("", "column needs: is empty; fill it, or leave the row out"),
        (
            "[x",
            "column needs: is not valid JSON (expected value at line 1 column 2); write a list of criteria, or a",
        ),
        ("[3]", "column needs.criteria[0]: is the number 3; write an object"),
        ('[{"id": "a", "text": "x"}]', "column needs.criteria[0].weight: is missing"),
        (
            "one\none",
            "column needs.criteria[1].text: is the same for 'c1' and 'c2'; leave one of them out",
        ),
    ],
)
def test_a_wrong_rubric_is_refused_with_its_column(cell: str, problem: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{"question": "q", "answer": "a", "needs": cell}])
    assert refusal(path, columns(rubric="needs")).startswith(f"t.csv, line 2, {problem}")


@given(
    rows=st.lists(
        st.tuples(st.sampled_from("abc"), st.text("xy\n,\"'= ", min_size=1).map("t".__add__)),
        min_size=1,
    )
)
def test_no_row_is_lost_and_groups_keep_the_order_of_the_file(
    rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("table") / "t.csv"
    write_table(path, [{"question": question, "answer": answer} for question, answer in rows])
    found = read_tasks(path, columns=columns(group_by="question"))
    assert [task.query for task, _ in found] == list(
        dict.fromkeys(question for question, _ in rows)
    )
    for task, group in found:
        numbers = [number for number, row in enumerate(rows, start=1) if row[0] == task.query]
        assert [(one.id, one.text) for one in group] == [
            (f"row-{n}", rows[n - 1][1]) for n in numbers
        ]


@pytest.mark.parametrize(
    ("content", "named", "message"),
    [
        (
            "question,anwser\nq,a\n",
            COLUMNS,
            "t.csv, line 1: has no column 'answer'; did you mean anwser?",
        ),
        (
            "question,answer, question \nq,a,b\n",
            COLUMNS,
            "t.csv, line 1: names column 'question' twice; the first line names each column once",
        ),
        (
            "question,a,b\nq,c,d\n",
            columns(response=("a, b",)),
            "t.csv, line 1: has no column 'a, b'; repeat the option for each",
        ),
        ("question,answer\n", COLUMNS, "t.csv: has no rows; name a table with one row at least"),
        (
            'question,answer\n"a\nb",c\n ,d\n',
            COLUMNS,
            "t.csv, line 4, column question: is empty; fill it, or leave the row out",
        ),
        (
            "question,answer,id\na,b,x\n\nc,d,x\n",
            columns(id="id"),
            "t.csv, line 4, column id: is 'x', as in line 2; give each row an id of its own, such as 'x/v1', or name "
            "the column with --group-by instead where its rows are one task, with responses row-1, row-2, …",
        ),
        (
            "question,answer,g\na,b,x\nc,d,x\n",
            columns(group_by="g"),
            "t.csv, line 3, column question: is not that of line 2, which is the same task by --group-by; "
            "write the same, or make them two tasks, compared as one by --group-column g in place of --group-by",
        ),
        (
            "question,answer,g,key\na,b,x,1\na,d,x,2\n",
            columns(group_by="g", reference="key"),
            "t.csv, line 3, column key: is not that of line 2, which is the same task by --group-by; "
            "write the same, or make them two tasks, compared as one by --group-column g in place of --group-by",
        ),
        (
            f"question,answer,id\na,b,{'x' * 513}\n",
            columns(id="id"),
            "t.csv, line 2, column id: has 513 characters; write at most 512",
        ),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_column(
    content: str, named: TableColumns, message: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert refusal(tmp_path / "t.csv", named) == message


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"question": 5, "answer": "a"}, ", column question: is the number 5; write text"),
        (
            {"question": "q", "answer": ["a"]},
            ", column answer: is a list; write text, one response a row, and",
        ),
        (
            {"question": None, "answer": "a"},
            ", column question: is empty; fill it, or leave the row out",
        ),
        (
            {"question": [{"role": "me", "content": "q"}], "answer": "a"},
            ", column question[0].role: is the text 'me';",
        ),
        ({"question": "q"}, ": has no column 'answer', and line 1 has it; give it one"),
        (
            {"question": "q", "anser": "a"},
            ": has no column 'answer', and line 1 has it; did you mean anser?",
        ),
    ],
)
def test_a_cell_that_is_not_text_is_refused(
    row: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    assert refusal(jsonl(tmp_path / "t.jsonl", [ROWS[0], row])).startswith(
        f"t.jsonl, line 2{problem}"
    )


def test_an_empty_response_cell_is_an_empty_response(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("question,answer\nq,\nr, \n")
    assert [group[0].text for _, group in read_tasks(tmp_path / "t.csv", columns=COLUMNS)] == [
        "",
        " ",
    ]
    ((_, group),) = read_tasks(
        jsonl(tmp_path / "t.jsonl", [{"question": "q", "answer": None}]), columns=COLUMNS
    )
    assert group[0].text == ""


def test_a_response_that_its_line_ends_before_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("question,answer,note\nq,a\nr\n")
    problem = "line 3, column answer: is missing, as the line ends before it; write the cell"
    with pytest.raises(InputError, match=problem):
        list(read_tasks(tmp_path / "t.csv", columns=COLUMNS))


@all_rows("cell", ["NaN", "nan"])
def test_a_missing_value_of_a_program_is_no_text(cell: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{"question": "q", "answer": cell}])
    problem = f"line 2, column answer: is {cell}, as programs write a missing value; leave the cell"
    with pytest.raises(InputError, match=problem):
        read_tasks(path, columns=COLUMNS)
    spoken = jsonl(
        tmp_path / "t.jsonl", [{"question": "What is 0/0 in JavaScript?", "answer": cell}]
    )
    assert read_tasks(spoken, columns=COLUMNS)[0][1][0].text == cell


def test_plain_numbers_in_other_columns_of_csv_are_numbers(tmp_path: Path) -> None:
    cells = {"3": 3, "-2": -2, "0.50": 0.5, "1234567890123456": "1234567890123456"}
    cells |= {text: text for text in ("", "007", "1e5", "3;5", "+1", ".5", "nan", "²")}
    rows = [{"question": "q", "answer": "1", "n": cell, "key": "4"} for cell in cells]
    found = read_tasks(write_table(tmp_path / "t.csv", rows), columns=columns(reference="key"))
    assert [one.labels["n"] for _, group in found for one in group] == list(cells.values())
    assert (found[0][0].reference, found[0][1][0].text) == ("4", "1")


def test_cells_may_be_longer_than_the_limit_of_the_csv_module(tmp_path: Path) -> None:
    text = "long " * 100_000
    ((_, (response,)),) = read_tasks(
        write_table(tmp_path / "t.csv", [{"question": "q", "answer": text}]), columns=COLUMNS
    )
    assert response.text == text


def test_a_task_is_found_by_the_line_or_row_of_its_table(tmp_path: Path) -> None:
    for suffix, place in ((".csv", "line 4"), (".parquet", "row 2")):
        with open_task_source(
            write_table(tmp_path / f"t{suffix}", ROWS), columns=columns(id="answer")
        ) as work:
            assert (work.place('say "green"'), work.extent()) == (place, (3, 3))


def test_a_table_without_named_columns_and_one_with_separate_responses_are_refused(
    tmp_path: Path,
) -> None:
    path = write_table(tmp_path / "t.csv", ROWS)
    with pytest.raises(
        InputError,
        match=r"t\.csv: is a table; name its .* or --messages-column; it has question, .*",
    ):
        read_tasks(path)
    line = (
        r'write \{"task": "t1", "text": "…"\} for each response, or score it as it is: `jurygraph '
    )
    with pytest.raises(
        InputError, match=rf"t\.csv: is a table, and JSON lines are read here; {line}"
    ):
        read_tasks(tmp_path / "tasks.jsonl", path)
    with pytest.raises(
        InputError, match=r"t\.csv: .*; write \{\"id\": \"t1\", \"query\": \"…\"\} for"
    ):
        TaskLinesFile(path)
    with pytest.raises(InputError, match=r"ok\.yaml: is YAML, as a config is, and not tasks; name"):
        read_tasks(tmp_path / "ok.yaml")
    with pytest.raises(
        InputError, match="a table holds the responses to its tasks; leave out --responses"
    ):
        read_tasks(path, jsonl(tmp_path / "r.jsonl", []), columns=COLUMNS)
    with pytest.raises(InputError, match="standard input: a table is read from a file"):
        read_tasks("-", columns=COLUMNS)
