"""The deriver that looks claims up, and the evaluator that counts what was confirmed."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar, get_args

from jurygraph.agents import notation
from jurygraph.agents.facts.lookup import Finding, look_up, same_claim, told
from jurygraph.agents.facts.opening import facts_of
from jurygraph.agents.facts.tables import Table, ToolTable
from jurygraph.agents.roles import Ask, Deriver, DeriverAsk, Evaluator, Params
from jurygraph.errors import ConfigError, InputError, PlanError
from jurygraph.schema import Audience, Evidence, Material, Question, TaskView, Verdict
from jurygraph.sources.complaint import nearest, quoted

T = TypeVar("T")
CLAIMS = "claims"


class Claims(Deriver):
    """Every claim that the task's `facts` tell how to read in a response's data, looked up in the task's tables.

    Args:
        tools: langchain-core tools by the names that tasks have for them, each as package.module.tool: a task is data,
            so it cannot name code by itself.
    """

    name = "facts.claims"
    gives = CLAIMS
    reads_data = True

    def __init__(self, tools: Mapping[str, str] | None = None) -> None:
        self._tools = {name: _tool(name, path) for name, path in (tools or {}).items()}

    def params_for(self, view: TaskView) -> Params:
        if view.facts is None:
            return self.params
        facts = facts_of(view)
        for name, table in facts.tables.items():
            if table.stated.tool is not None and table.stated.tool not in self._tools:
                hint = nearest(table.stated.tool, self._tools) or "list it in the params of facts.claims"
                tool = f"there is no tool {quoted(table.stated.tool)} in the config; {hint}"
                raise PlanError(f"task {view.id!r}: facts.tables.{name}.tool: {tool}, as tools: {{name: package.tool}}")
        return {**self.params, **facts.marks}

    async def derive(self, ask: DeriverAsk) -> Material:
        facts, data = facts_of(ask.task), ask.response.data
        tables = {name: self._with_tool(table) for name, table in facts.tables.items()}
        found: Any = {kind: await look_up(stated, tables, data) for kind, stated in facts.claims.items()}
        marks = facts.marks.get("files", {})
        files = tuple(Evidence(quote=sha256, source=table) for table, sha256 in marks.items())
        return Material.model_construct(name=CLAIMS, data=found, evidence=files)  # the machine validates it

    def _with_tool(self, table: Table) -> Table:
        tool = table.stated.tool
        return table if tool is None else ToolTable(table.name, table.stated, self._tools.get(tool))


def _tool(name: str, path: str) -> Any:
    try:
        tool = notation.code(path)
    except ValueError as error:
        raise ConfigError(f"facts.claims: tools.{name}: {error}") from error
    if not hasattr(tool, "ainvoke"):
        wrong = f"{path!r} is a {type(tool).__name__}; name a langchain-core tool, such as one made with @tool"
        raise ConfigError(f"facts.claims: tools.{name}: {wrong}")
    return tool


def findings(ask: Ask) -> Mapping[str, Sequence[Finding]]:
    """What became of the claims, by their kind. Raises InputError where another file was looked into than was planned
    with: then it is not of this question."""
    planned: Any = ask.question.params.get("files", {})
    material = ask.material[0][CLAIMS]
    used = {one.source: one.quote for one in material.evidence}
    for table, sha256 in planned.items():
        if used.get(table) != sha256:
            raise InputError(f"facts.tables.{table}.file: changed since the plan was made; prepare the task again")
    found: Any = material.data
    return found  # type: ignore[no-any-return]


def _row(one: Finding) -> dict[str, Any]:
    return {column: value for column, value in one["values"].items() if column not in one["own"]}


_MOST_WRONG, _FEW_RIGHT = 20, 1
"""Claims that a verdict tells, with their evidence; the material has all of them."""

_ROW = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


class Confirmed(Evaluator):
    """Share of the claims of a kind that are confirmed, each counted once however often it is repeated.

    A response that claims nothing of the kind, or has no data, is not judged; data that claims nothing at all has
    nothing confirmed.

    Args:
        audience: `task`, or `stakeholder` where each one's utility is to rest on the facts too.
        kinds: the kinds of claims to ask about, all unless given.
    """

    name = "facts.confirmed"
    layer = "fact"
    quick = True
    reads_data = True
    needs = (CLAIMS,)

    def __init__(self, audience: Audience = "task", kinds: Sequence[str] | None = None) -> None:
        if audience not in get_args(Audience):
            raise ConfigError(f"facts.confirmed: audience is one of {', '.join(get_args(Audience))}, not {audience!r}")
        if kinds is not None and (isinstance(kinds, str) or not kinds):
            raise ConfigError(f"facts.confirmed: kinds is a list of kinds of claims, such as [meals], not {kinds!r}")
        self.audience = audience
        self._kinds = None if kinds is None else sorted(set(kinds))

    def questions(self, view: TaskView) -> Sequence[Question]:
        facts = facts_of(view)
        kinds = sorted(facts.claims) if self._kinds is None else self._kinds
        for kind in kinds:
            if kind not in facts.claims:
                hint = nearest(kind, facts.claims) or f"there are {', '.join(facts.claims) or 'none'}"
                raise PlanError(f"task {view.id!r}: facts.claims has no kind {quoted(kind)} to confirm; {hint}")
        return [self.question(view, kind, params={**self.params, "kind": kind, **facts.marks}) for kind in kinds]

    def answer(self, ask: Ask) -> Verdict:
        kind = str(ask.question.params["kind"])
        claimed = findings(ask)
        if not claimed[kind] and (ask.response.data is None or any(claimed.values())):
            return Verdict.abstained(f"the response's data claims no {kind}")
        return _confirmed(Itself(ask.material[0][CLAIMS]), kind)


class Itself(Generic[T]):
    """Something that is the same as itself alone, so that what every member of an audience asks of it is kept."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.it is self.it


@lru_cache(maxsize=1024)
def _confirmed(claims: Itself[Material], kind: str) -> Verdict:
    data: Any = claims.it.data
    found = list({same_claim(one): one for one in reversed(data[kind])}.values())[::-1]
    if not found:
        return Verdict(score=0.0, met=False, reason="the response's data claims nothing that could be looked up")
    wrong = [one for one in found if one["found"] != "confirmed"]
    right = len(found) - len(wrong)
    shown = wrong[:_MOST_WRONG] or found[:_FEW_RIGHT]
    reasons = [f"{right} of {len(found)} {kind} are confirmed", *map(told, wrong[:_MOST_WRONG])]
    if len(wrong) > _MOST_WRONG:
        reasons.append(f"and {len(wrong) - _MOST_WRONG} more")
    return Verdict(
        score=right / len(found),
        met=not wrong,
        native=right,
        scale=(0, len(found)),
        reason="; ".join(reasons),
        evidence=tuple(part for one in shown for part in both_sides(one)),
    )


def both_sides(one: Finding) -> list[Evidence]:
    """Where a claim stands in the response's data, and the row that it was compared with, as the table has it."""
    claim = Evidence(quote=one["text"], source=f"data {', '.join(one['at'])}", verified=True)
    if one["row"] is None:
        return [claim]
    return [
        claim,
        Evidence(quote=_ROW.encode(_row(one)), source=f"{one['table']}, row {one['row']}", verified=True),
    ]
