"""What the tools of texts, tables and checks show, and what none of them may show."""

import json
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
import jurygraph.testing
from jurygraph.agents.registry import BUILTIN_TOOL_PATHS
from jurygraph.errors import ConfigError, InputError, PlanError
from jurygraph.schema import Response, TaskView, ToolUse
from jurygraph.tools.reading import ReadDocumentTool
from jurygraph.tools.registry import load_tool, load_tools
from jurygraph.tools.tool import Tool, ToolError, ToolInput
from jurygraph.tools.workspace import open_workspace
from tests.rows import all_rows
from tests.tools.inputs import call_tool, tool_input

PRICES = [
    {"name": "Tea", "city": "Cork", "euro": 2.5},
    {"name": "Tea", "city": "Rome", "euro": "3"},
    {"name": "Cake", "city": "Rome", "euro": 1200, "note": "for\nall"},
]
FACTS: dict[str, Any] = {"tables": {"prices": {"key": ["name", "city"], "rows": PRICES}}}
TASK = TaskView(id="t", query="Where is tea?", facts=FACTS, context=["The first.\nGuide", "A map"])


def run_check(*checks: Any) -> Tool:
    return load_tool(ToolUse(use="run_check", params={"checks": list(checks)}))


@all_rows(
    "arguments, rows",
    [
        ({}, ['{"columns":["city","euro","name","note"],"key":["name","city"],"rows":3,"table":"prices"}']),
        ({"table": "prices", "where": {"name": " TEA", "euro": 3}},
         ["[1 matching rows]", '{"city":"Rome","euro":"3","name":"Tea"}']),
        ({"table": "prices", "where": {"euro": "1,200"}},
         ["[1 matching rows]", '{"city":"Rome","euro":1200,"name":"Cake","note":"for\\nall"}']),
        ({"table": "prices", "where": {"name": "a name that is quoted"}}, ["[0 matching rows]"]),
        ({"table": "prices", "first_row": 3},
         ["[3 matching rows]", '{"city":"Rome","euro":1200,"name":"Cake","note":"for\\nall"}']),
    ],
)  # fmt: skip
def test_rows_are_looked_up(arguments: dict[str, Any], rows: list[str]) -> None:
    assert call_tool("look_up", tool_input(task=TASK), **arguments).split("\n") == rows


@all_rows(
    "facts, arguments, problem",
    [
        (None, {}, "no tables"),
        (FACTS, {"table": "price"}, "did you mean prices"),
        (FACTS, {"table": "prices", "where": {"nam": 1}}, "did you mean name"),
        (FACTS, {"table": "prices", "first_row": 4}, "last matching row is number 3"),
        ({"tables": {"a": {"key": ["k"], "tool": "web"}}}, {"table": "a"}, "another tool"),
    ],
)
def test_what_cannot_be_looked_up_is_named(
    facts: Any, arguments: dict[str, Any], problem: str
) -> None:
    task = TASK.model_copy(update={"facts": facts})
    with pytest.raises(ToolError, match=problem):
        call_tool("look_up", tool_input(task=task), **arguments)


def test_a_table_that_is_gone_is_no_answer_of_the_tool() -> None:
    facts = {"tables": {"a": {"key": ["k"], "file": "gone.csv"}}}
    task = TASK.model_copy(update={"facts": facts})
    with pytest.raises(InputError, match=r"gone\.csv: there is no such file"):
        call_tool("look_up", tool_input(task=task), table="a")


@all_rows(
    "table, problem",
    [
        ({"key": ["k"], "file": "gone.csv"}, r"a.file: gone.csv: there is no such file"),
        ({"key": ["k"], "file": "empty.csv"}, r"a.file: empty.csv: holds no rows"),
        ({"rows": []}, r"a.key: is missing"),
        ({"key": ["k"], "row": [{"k": 1}]}, r"a.row: unknown; did you mean rows"),
        ({"key": ["nme"], "rows": [{"name": 1}]}, r"a.key: .*'nme'; did you mean name"),
    ],
)
def test_tables_are_checked_when_a_task_is_planned(
    table: Any, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").touch()
    judge = jg.criteria(["The prices are right."], tools=["look_up"])
    with (
        jg.Jury(model=jg.testing.ScriptedJudge([]), evaluators=[judge]) as jury,
        pytest.raises(PlanError, match=f"task 't': facts.tables.{problem}"),
    ):
        jury.prepare(
            jg.Task(id="t", query="Where is tea?", facts={"tables": {"a": table}, "own": 1})
        )


def test_facts_with_a_name_like_tables_are_refused() -> None:
    judge = jg.criteria(["The prices are right."], tools=["look_up"])
    with (
        jg.Jury(model=jg.testing.ScriptedJudge([]), evaluators=[judge]) as jury,
        pytest.raises(PlanError, match=r"facts\.table: .*did you mean tables\?"),
    ):
        jury.prepare(jg.Task(id="t", query="Where is tea?", facts={"table": {}}))


def test_a_table_may_be_a_file_and_large(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("name,euro\n" + "".join(f"{'tea' * 200}{n},{n}\n" for n in range(300)))
    facts = {"tables": {"prices": {"key": ["name"], "file": str(path)}}}
    inputs = tool_input(task=TASK.model_copy(update={"facts": facts}))
    result = call_tool("look_up", inputs, table="prices")
    assert result.startswith("[300 matching rows]\n{")
    seen = result.count("\n{")
    assert result.endswith(f"[more follow: read on with first_row={seen + 1}]")
    following = call_tool("look_up", inputs, table="prices", first_row=seen + 1)
    assert f'"name":"{"tea" * 200}{seen}"' in following.split("\n")[1]


@all_rows(
    "texts, document, words, number",
    [
        (["one"], "response", "1| one", 1),
        (["one"], "response_1", "1| one", 1),
        (["one", "two"], "response_2", "1| two", 2),
        (["one"], "query", "1| Where is tea?", None),
        (["one"], "context_1", "2| Guide", None),
        (["one"], "context", "3| Guide\n4| passage 2:\n5| A map", None),
    ],
)
def test_documents_are_read(
    texts: list[str], document: str, words: str, number: int | None
) -> None:
    result = call_tool("read", tool_input(*texts, task=TASK), document=document)
    assert words in result
    arguments = ReadDocumentTool.Arguments.model_validate({"document": document})
    assert ReadDocumentTool().response_number_of_call(arguments) == number


@all_rows(
    "texts, document, names",
    [
        (["one"], "response_2", "response, query, context, context_1, context_2"),
        (
            ["one", "two"],
            "response",
            "response_1, response_2, query, context, context_1, context_2",
        ),
        (["one"], "reference", "response, query, context, context_1, context_2"),
    ],
)
def test_other_documents_are_not_there(texts: list[str], document: str, names: str) -> None:
    for tool, arguments in (("read", {}), ("search", {"text": "x"})):
        with pytest.raises(ToolError, match=f"there are {names}$"):
            call_tool(tool, tool_input(*texts, task=TASK), document=document, **arguments)


def test_checks_are_run() -> None:
    tool = run_check(
        "maths.format", {"use": "quality.arithmetic", "name": "sums"}, "trajectory.loops"
    )
    inputs = tool_input("2 + 2 = 5", "<think>a</think><answer>b</answer>")
    row = json.loads(call_tool(tool, inputs, check="sums"))
    assert (row["score"], row["met"]) == (0.0, False)
    assert "2 + 2 = 5" in row["reason"]
    for number, score in ((1, 0.0), (2, 1.0)):
        row = json.loads(call_tool(tool, inputs, check="maths.format", response=number))
        assert row["score"] == score
    for arguments in ({"check": "x"}, {"check": "sums", "response": 3}):
        with pytest.raises(ToolError):
            call_tool(tool, inputs, **arguments)
    assert run_check("maths.format").version != tool.version
    with pytest.raises(ConfigError, match=r"`{use: run_check, params: {checks: \[mine.check\]}}`"):
        load_tool(ToolUse(use="run_check"))
    tool.close()


@all_rows(
    "check, problem",
    [
        ("criteria", "asks a model"),
        ("facts.confirmed", "needs claims of a deriver"),
        ("pairwise", "asks a model"),
        ("checks.constraints", "scope 'response' and the audience 'stakeholder'"),
        ("maths.formt", "did you mean maths.format"),
        ({"use": "maths.format", "samples": 2}, "samples: unknown"),
    ],
)
def test_what_is_no_check_is_named(check: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"^tools\\[0\\]: run_check: params.checks.*{problem}"):
        load_tools([ToolUse(use="run_check", params={"checks": [check]})])


def test_no_result_has_what_a_judge_may_not_see(tmp_path: Path) -> None:
    """Each tool, also where what is asked for is hidden, or is what the judge would like to quote."""
    hidden = {
        name: f"canary-{name}" for name in ("reference", "labels", "agent", "metadata", "other")
    }
    task = TASK.model_copy(
        update={
            "reference": hidden["reference"],
            "metadata": {"note": hidden["metadata"]},
            "facts": {**FACTS, "claims": {hidden["metadata"]: {}}},
        }
    )
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "notes.txt").write_text("plain")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.txt").write_text(hidden["other"])
    response = Response(
        id="r",
        text="an answer",
        agent=hidden["agent"],
        labels={"gold": hidden["labels"]},
        metadata={"note": hidden["metadata"]},
    )
    inputs = ToolInput(task, (response.without_metadata(),), (open_workspace(str(tmp_path), "ws"),))
    sought = [*hidden.values(), "canary-"]
    calls: list[tuple[Tool | str, dict[str, Any]]] = []
    for words in sought:
        for document in ("response", "query", "context"):
            calls += [("search", {"text": words, "document": document})]
        calls += [
            ("look_up", {"table": "prices", "where": {"name": words}}),
            ("list_files", {"pattern": words}),
            ("grep", {"text": words}),
        ]
    calls += [("read", {"document": document}) for document in ("response", "query", "context")]
    calls += [("look_up", {}), ("look_up", {"table": "prices"}), ("calculate", {"expression": "1"})]
    calls += [("list_files", {}), ("read_file", {"path": "notes.txt"})]
    checks = ("maths.accuracy", "maths.format", "tools.match", "trajectory.loops")
    tool = run_check(*checks)
    calls += [(tool, {"check": check}) for check in checks]
    assert {called if isinstance(called, str) else called.name for called, _ in calls} == set(
        BUILTIN_TOOL_PATHS
    )
    for called, arguments in calls:
        result = call_tool(called, inputs, **arguments)
        assert not [words for words in sought if words in result], (called, arguments, result)
    tool.close()
