"""The evaluator that decides the constraints of stakeholders by the checks that the task states."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from pydantic import JsonValue, ValidationError

from jurygraph.agents import notation
from jurygraph.agents.checks.decided import Decided
from jurygraph.agents.checks.deciding import decide_check
from jurygraph.agents.checks.items import Item
from jurygraph.agents.checks.stated import Check
from jurygraph.agents.checks.tensions import contradictions
from jurygraph.agents.facts.evaluators import CLAIMS, Itself, both_sides, findings
from jurygraph.agents.facts.names import shown
from jurygraph.agents.facts.opening import Facts, facts_of
from jurygraph.agents.facts.stated import ClaimsStated
from jurygraph.agents.functions import source_version
from jurygraph.agents.roles import Answer, Ask, Evaluator
from jurygraph.errors import ConfigError, PlanError
from jurygraph.schema import Constraint, Evidence, Material, Question, Response, Stakeholder, TaskView, Verdict
from jurygraph.sources.complaint import complaint, nearest, quoted

_MOST_EVIDENCE = 10
_SHOWN = 200


class Constraints(Evaluator):
    """Each constraint of a stakeholder that states a `check`.

    One that states none is asked and abstains, unless somebody else, such as `preferences`, is asked about it.

    Args:
        functions: Python functions (task, response, **params) by the names that checks have for them, each as
            package.module.function: a task is data, so it cannot name code by itself.
    """

    name = "checks.constraints"
    audience = "stakeholder"
    layer = "check"
    reads_data = True
    needs = (CLAIMS,)

    def __init__(self, functions: Mapping[str, str] | None = None) -> None:
        self._functions = {name: _function(name, path) for name, path in (functions or {}).items()}
        versions = [source_version(function) for _, function in sorted(self._functions.items())]
        self.version = " ".join(["1", *versions])
        self.quick = not self._functions  # nobody knows how long those take

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        if view.about.profile and not view.about.constraints:
            raise PlanError(
                f"task {view.id!r}: stakeholder {view.member!r} has a profile in text alone, and no model is there to "
                "read it; state its `constraints`, or leave the profile out"
            )
        asked = [self._question(view, constraint) for constraint in view.about.constraints]
        for pull in contradictions(view.about.constraints):
            both = f"hard constraints {pull.one!r} and {pull.other!r} of {view.member!r}"
            raise PlanError(f"task {view.id!r}: {both} cannot both be met: {pull.why}; make one soft, or leave one out")
        return asked

    def _question(self, view: TaskView, constraint: Constraint) -> Question:
        where = f"task {view.id!r}: constraint {constraint.id!r} of {view.member!r}"
        marks: Mapping[str, Any] = {}
        needs: tuple[str, ...] = ()
        if constraint.check is not None:
            check = _read(where, constraint.check)
            if check.function is not None:
                self._check_call(where, check.function, check.params)
            if any(not source.startswith("$") for source, _ in check.items):
                marks, needs = self._look(where, view, check), self.needs
        standby = constraint.check is None
        return self.question(view, constraint.id, params={**self.params, **marks}, needs=needs, standby=standby)

    def _check_call(self, where: str, name: str, params: Mapping[str, JsonValue]) -> None:
        """Refuse a function that the config does not list, or that cannot be called so."""
        if name not in self._functions:
            hint = nearest(name, self._functions) or "list it in the params of checks.constraints"
            raise PlanError(f"{where}, field check.function: there is no {quoted(name)}; {hint}")
        try:
            inspect.signature(self._functions[name]).bind(None, None, **params)
        except TypeError as error:
            called = f"{quoted(name)} is called as (task, response, **params): {error}"
            raise PlanError(f"{where}, field check.params: {called}; change the params, or the function") from error

    def _look(self, where: str, view: TaskView, check: Check) -> Mapping[str, Any]:
        """Refuse kinds and columns that no claim has."""
        facts = facts_of(view)
        for kind, columns in check.items:
            if kind.startswith("$"):
                continue
            if kind not in facts.claims:
                hint = nearest(kind, facts.claims) or f"there are {', '.join(facts.claims) or 'none'}"
                raise PlanError(f"{where}, field check.{check.measure}: facts.claims has no {quoted(kind)}; {hint}")
            for column in sorted(columns):
                _check_column(where, facts, kind, column)
        return facts.marks

    def answer(self, ask: Ask) -> Answer | Any:
        assert isinstance(ask.task.about, Stakeholder)
        stated = next(c for c in ask.task.about.constraints if c.id == ask.question.subject)
        if stated.check is None:
            return Verdict.abstained("the constraint states no check, and nobody else is asked about it")
        check = _read(f"constraint {stated.id!r}", stated.check)
        if check.function is not None:
            return self._functions[check.function](ask.task, ask.response, **deepcopy(check.params))
        said = stated.text or stated.id
        return _text(said, check.text, ask.response) if check.text is not None else _verdict(said, check, ask)


def _function(name: str, path: str) -> Callable[..., Any]:
    try:
        found = notation.code(path)
    except ValueError as error:
        raise ConfigError(f"checks.constraints: functions.{name}: {error}") from error
    if not callable(found):
        raise ConfigError(f"checks.constraints: functions.{name}: {path!r} is no function")
    return found  # type: ignore[no-any-return]


def _read(where: str, stated: Mapping[str, JsonValue]) -> Check:
    """The check that a constraint states. Raises PlanError naming the field."""
    return _parsed(where, json.dumps(stated, sort_keys=True))


@lru_cache(maxsize=4096)
def _parsed(where: str, text: str) -> Check:
    stated = json.loads(text)
    try:
        return Check.model_validate(stated)
    except ValidationError as error:
        wrong = complaint(error, Check, stated)
        raise PlanError(f"{where}, field check{f'.{wrong.field}' if wrong.path else ''}: {wrong}") from error


def _check_column(where: str, facts: Facts, kind: str, column: str) -> None:
    stated = facts.claims[kind]
    tables = [facts.tables[form.table] for form in stated.forms]
    known = {*_own(stated), *(name for form in stated.forms for name in form.states)}
    known |= {name for table in tables for name in table.columns or ()}
    if column not in known and all(table.columns is not None for table in tables):
        hint = nearest(column, sorted(known)) or f"there are {', '.join(sorted(known))}"
        raise PlanError(f"{where}, field check: {kind} have no column {quoted(column)}; {hint}")


def _own(stated: ClaimsStated) -> set[str]:
    """The columns that the response gives itself: what stands beside a claim, and how often it is repeated."""
    return {*stated.beside, *([stated.merged] if stated.merged else [])}


def _empty(data: JsonValue) -> bool:
    """Whether there is nothing in it."""
    if isinstance(data, dict | list):
        return all(map(_empty, data.values() if isinstance(data, dict) else data))
    return data is None or data == ""


def _items(source: str, ask: Ask) -> Sequence[Item]:
    """The items of a source: claims that were looked up, or what a JSONPath finds, in the order of their paths."""
    if source.startswith("$"):
        nodes = sorted(notation.path(source).find(ask.response.data), key=lambda node: notation.place(node.location))
        found = [(node.path(), node.value) for node in nodes]
        return [Item(at, value if isinstance(value, dict) else {"value": value}) for at, value in found]
    findings(ask)  # which are of the files that the question was planned with
    return _looked_up(Itself(ask.material[0][CLAIMS]), source, Itself(facts_of(ask.task)))


@lru_cache(maxsize=1024)
def _looked_up(claims: Itself[Material], kind: str, facts: Itself[Facts]) -> Sequence[Item]:
    found: Any = claims.it.data
    lists = {name: table.stated.lists for name, table in facts.it.tables.items()}
    return [Item(one["text"], one["values"], one, lists.get(one["table"] or "", {}), one["own"]) for one in found[kind]]


def _text(said: str, pattern: str, response: Response) -> Verdict:
    found = notation.pattern(pattern).search(response.text)
    if found is None:
        return Verdict(score=0.0, met=False, reason=f"{said}: the text has nothing like {pattern}")
    quote = Evidence(quote=found.group(), start=found.start(), end=found.end())
    return Verdict(score=1.0, met=True, reason=f"{said}: the text has something like {pattern}", evidence=(quote,))


def _verdict(said: str, check: Check, ask: Ask) -> Verdict:
    decided = _decided(check, ask)
    reason = f"{said}: {decided.reason}"
    if decided.holds is None:
        return Verdict.abstained(reason)
    score = 1.0 if decided.holds else decided.share if check.partial else 0.0
    at = [] if decided.holds else decided.at[:_MOST_EVIDENCE]
    evidence = tuple(part for item in at for part in _evidence(item))
    return Verdict(score=score, met=decided.holds, reason=reason, evidence=evidence)


def _decided(check: Check, ask: Ask) -> Decided:
    """What names nothing that is there breaks no rule, and gets nothing for that."""
    if _empty(ask.response.data):
        return Decided(False, 0.0, "the response has no data in which this could be looked for")
    decided = decide_check(check, {source: _items(source, ask) for source, _ in check.items})
    looked_up = all(not source.startswith("$") for source, _ in check.items)
    if decided.holds and looked_up and not any(one["row"] for kind in findings(ask).values() for one in kind):
        return Decided(False, 0.0, "nothing that the response's data claims is there")
    return decided


def _evidence(item: Item) -> list[Evidence]:
    if item.finding is not None:
        return both_sides(item.finding)
    return [Evidence(quote=shown(dict(item.values))[:_SHOWN], source=f"data {item.text}", verified=True)]
