"""Items as checks look at them: the response's own data, claims with a row, and claims without one."""

from typing import Any

from jurygraph.agents.checks.evaluators import CheckResult, ListedItem, decide_check
from jurygraph.agents.checks.spec import Check
from jurygraph.agents.facts.evaluators import FactFinding


def own_item(text: str = "$[0]", /, **values: Any) -> ListedItem:
    """A record of the response's own data."""
    return ListedItem(text, values)


def row_item(
    text: str = "Curry House", /, lists: dict[str, str] | None = None, own: str = "", **values: Any
) -> ListedItem:
    """A claim that the tables have a row for; `own` are its columns that come from the response."""
    return ListedItem(text, values, _finding(text, 1, values, own), lists or {})


def invented_item(text: str = "Nowhere", /, own: str = "", **values: Any) -> ListedItem:
    """A claim that no table has, with what it says of itself."""
    return ListedItem(text, values, _finding(text, None, values, own))


def _finding(text: str, number: int | None, values: dict[str, Any], own: str) -> FactFinding:
    return FactFinding(
        at=["$[0]"],
        text=text,
        found="confirmed" if number else "unknown",
        table="meals",
        row=number,
        values=values,
        own=own.split(),
        claimed={},
        differs=[],
        places=[],
    )


def decide(fields: dict[str, Any], *items: ListedItem) -> CheckResult:
    """A check of items that all come from one source."""
    check = Check.model_validate(fields)
    return decide_check(check, {source: items for source, _ in check.items})
