"""Tools by name, by dotted path and as objects: their arguments, results, versions, and what is refused."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, StateGraph
from pydantic import Field
from typing_extensions import TypedDict

from jurygraph.agents.registry import BUILTIN_TOOL_PATHS
from jurygraph.errors import ConfigError
from jurygraph.messages import Problem
from jurygraph.schema import Config, ToolUse
from jurygraph.sources.user_modules import FolderModules, importing_from
from jurygraph.tools.registry import load_tool, load_tools
from jurygraph.tools.tool import Tool, ToolArguments, ToolInput
from tests.rows import all_rows
from tests.tools.inputs import call_tool, tool_input

HERE = __name__


def price(item: str, copy: Annotated[int, Field(ge=1)] = 1, *, rate: float = 1.0) -> Any:
    """Return the price of copies of an item."""
    return {"item": item, "euro": copy * rate, "also": {"b", "a"} if item == "set" else None}


def cost(item: str, number: int = 1) -> dict[str, Any]:
    """Return the cost of items."""
    return {"item": item, "euro": number}


async def describe(inputs: ToolInput, words: list[str]) -> str:
    """Return the text of the response, and words."""
    return f"{inputs.responses[0].text}: {' '.join(words)}"


class GraphState(TypedDict):
    city: str


def _answer(state: GraphState) -> dict[str, str]:
    return {"city": state["city"].upper()}


def make_graph() -> Any:
    graph = StateGraph(GraphState)
    graph.add_node("answer", _answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile()


GRAPH = make_graph()


class Shout(Tool):
    """Return the response in capitals."""

    name = "shout"
    description = "Shout."
    Arguments = ToolArguments

    def __init__(self, mark: str = "!") -> None:
        super().__init__()
        self.mark = mark

    def run(self, inputs: ToolInput, arguments: ToolArguments) -> str:
        return inputs.responses[0].text.upper() + self.mark


def use(target: Any, **settings: Any) -> ToolUse:
    return ToolUse.model_validate({"use": target, **settings})


@pytest.mark.parametrize("is_path", [True, False])
def test_a_function_is_a_tool(is_path: bool) -> None:
    tool = load_tool(use(f"{HERE}.price" if is_path else price, params={"rate": 2.5}))
    assert (tool.name, tool.description) == ("price", "Return the price of copies of an item.")
    assert not tool.deterministic
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string"},
            "copy": {"type": "integer", "minimum": 1, "default": 1},
        },
        "required": ["item"],
        "additionalProperties": False,
    }
    result = call_tool(tool, tool_input(), item="tea", copy=2)
    assert result == '{"also":null,"euro":5.0,"item":"tea"}'
    for arguments in ({"item": "tea", "copy": 0}, {"item": "tea", "rate": 1.0}, {}):
        assert isinstance(tool.validate_arguments(arguments), Problem)
    assert tool.version != load_tool(use(price)).version == load_tool(use(f"{HERE}.price")).version


def test_an_async_function_gets_what_the_judge_sees() -> None:
    tool = load_tool(use(describe, name="say", deterministic=True, timeout=3.0))
    assert (tool.name, tool.deterministic, tool.timeout) == ("say", True, 3.0)
    assert list(tool.parameters["properties"]) == ["words"]
    assert call_tool(tool, tool_input("tea"), words=["is", "hot"]) == "tea: is hot"


def test_a_langchain_tool_is_a_tool() -> None:
    target = StructuredTool.from_function(cost)
    tool = load_tool(use(target))
    assert tool.spec.parameters["required"] == ["item"]
    assert tool.spec.parameters["additionalProperties"] is False
    assert json.loads(call_tool(tool, tool_input(), item="tea", number=2))["euro"] == 2
    assert isinstance(problem := tool.validate_arguments({"item": 1}), Problem)
    assert "is not of type 'string'" in str(problem)
    assert isinstance(tool.validate_arguments({"item": "tea", "other": 1}), Problem)
    changed = target.model_copy(update={"return_direct": True})
    assert load_tool(use(changed)).version != tool.version == load_tool(use(target)).version


def test_a_compiled_graph_is_a_tool() -> None:
    tool = load_tool(use(f"{HERE}:GRAPH"))
    assert tool.name == "GRAPH"
    assert list(tool.parameters["properties"]) == ["city"]
    assert call_tool(tool, tool_input(), city="cork") == '{"city":"CORK"}'
    assert load_tool(use(make_graph(), name="cities")).version == tool.version != "1"


def test_a_class_of_ones_own_is_a_tool() -> None:
    tools = [load_tool(use(f"{HERE}.Shout", params={"mark": "?"})), load_tool(use(Shout("?")))]
    assert [call_tool(tool, tool_input("tea")) for tool in tools] == ["TEA?", "TEA?"]
    assert tools[1].version != load_tool(use(Shout("!"))).version


def no_types(item) -> str:  # type: ignore[no-untyped-def]
    """Return it."""
    return str(item)


def no_words(item: str) -> str:
    return item


def many(*items: str) -> str:
    """Return them."""
    return str(items)


def no_json(item: pytest.MonkeyPatch) -> str:
    """Return it."""
    return str(item)


@all_rows(
    "tools, problem",
    [
        (["reed"], "tools[0]: unknown tool 'reed'; did you mean read?"),
        (["read", "read"], "tools[1]: 'read' is listed twice; give one of them a `name` of its own"),
        (["read", {"use": "search", "params": {"x": 1}}], "tools[1]: search: params.x: unknown"),
        ([{"use": "read", "deterministic": False}], "tools[0]: `deterministic` is for tools of your own"),
        ([f"{HERE}.pryce"], "did you mean price?"),
        ([{"use": f"{HERE}.price", "params": {"rite": 1}}], "no argument 'rite' for its params; did you mean rate?"),
        ([f"{HERE}.no_types"], "argument 'item' cannot be filled in by a model; give it a name and a type"),
        ([f"{HERE}.many"], "argument 'items' cannot be filled in by a model"),
        ([f"{HERE}.no_words"], "write a docstring"),
        ([f"{HERE}.no_json"], "its types are not for JSON"),
        ([f"{HERE}.HERE"], "is no tool: it is a str; write a function with a docstring"),
        ([f"{HERE}.GraphState"], "is no tool: it is a GraphState"),
        ([make_graph()], "is a graph without a name; add `name`"),
        ([lambda item: item], "set `name` to letters"),
        ([{"use": GRAPH, "params": {"a": 1}}], "takes no params"),
        (["jurygraph.judges.criteria.Criteria"], "is no tool: it is a Criteria"),
    ],
)  # fmt: skip
def test_what_is_no_tool_is_named(tools: list[Any], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_tools([ToolUse.model_validate(tool) for tool in tools])
    assert problem in str(error.value)


def test_tools_beside_the_config_are_found(tmp_path: Path) -> None:
    (tmp_path / "prices_of_ours.py").write_text(
        'def ask(item: str) -> str:\n    """Ask."""\n    return item\n'
    )
    config = Config.model_validate(
        {"evaluators": [{"use": "criteria", "tools": ["read", "prices_of_ours.ask"]}]}
    )
    with importing_from(FolderModules(tmp_path, config)):
        (read, ask) = load_tools(config.evaluators[0].tools).values()
    assert (read.name, call_tool(ask, tool_input(), item="tea")) == ("read", "tea")


def test_every_tool_of_ours_has_a_spec_and_a_version() -> None:
    for name in BUILTIN_TOOL_PATHS:
        params = {"checks": ["maths.format"]} if name == "run_check" else {}
        tool = load_tool(use(name, params=params))
        assert tool.spec.name == name
        assert tool.version.split(" ")[0] == "1"
        assert tool.deterministic
        assert all("title" not in field for field in tool.parameters["properties"].values())
