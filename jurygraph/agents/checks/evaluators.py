"""The evaluators that decide stakeholders' constraints by the task's checks, and look up the preferences collected."""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from jurygraph.agents import notation
from jurygraph.agents.checks.decide import CheckResult, ListedItem, decide_check
from jurygraph.agents.checks.spec import Check
from jurygraph.agents.checks.tensions import find_contradictions
from jurygraph.agents.facts.evaluators import CLAIMS, claim_evidence, claim_findings
from jurygraph.agents.facts.loader import Facts, load_facts, require_known
from jurygraph.agents.facts.values import to_text
from jurygraph.agents.functions import source_version
from jurygraph.agents.roles import Answer, CodeEvaluator, Evaluator, EvaluatorInput
from jurygraph.errors import PlanError
from jurygraph.messages import describe_validation_error, did_you_mean, quote
from jurygraph.schema import Constraint, Evidence, Question, Response, Stakeholder, TaskView, Verdict
from jurygraph.schema.frozen_model import ParamsModel

COLLECTED = "collected"
_TABLE = "preferences"


class Constraints(Evaluator):
    """Decide each constraint of a stakeholder by its `check`.

    A constraint without one abstains, unless another evaluator, such as `preferences`, has a question about it.
    """

    class Params(ParamsModel):
        functions: dict[str, str] = Field(default_factory=dict)
        """Python functions (task, response, **params) by the names that checks use for them, each as
        package.module.function: a task is data, so it cannot name code by itself."""

    name = "checks.constraints"
    version = "1"
    audience = "stakeholder"
    layer = "check"
    reads_data = True
    needs = (CLAIMS,)
    bounds_its_time = True

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        paths = self.settings.functions
        self._functions = notation.import_named("checks.constraints: params.functions", paths, "__call__", "a function")
        versions = [source_version(function) for _, function in sorted(self._functions.items())]
        self.version = " ".join(["1", *versions])
        self.runs_inline = not self._functions  # functions of the config may be slow

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        if view.about.profile and not view.about.constraints:
            raise PlanError(
                f"task {view.id!r}: stakeholder {view.member!r} has a profile in text alone, and no model is there to "
                "read it; state its `constraints`, or leave the profile out"
            )
        questions = [self._question(view, constraint) for constraint in view.about.constraints]
        for contradiction in find_contradictions(view.about.constraints):
            pair = f"hard constraints {contradiction.first!r} and {contradiction.second!r} of {view.member!r}"
            problem = f"{pair} cannot both be met: {contradiction.why}"
            raise PlanError(f"task {view.id!r}: {problem}; make one soft, or leave one out")
        return questions

    def _question(self, view: TaskView, constraint: Constraint) -> Question:
        where = f"task {view.id!r}: constraint {constraint.id!r} of {view.member!r}"
        marks: Mapping[str, Any] = {}
        needs: tuple[str, ...] = ()
        if constraint.check is not None:
            check = _parse_check(where, json.dumps(constraint.check, sort_keys=True))
            if check.function is not None:
                self._check_call(where, check.function, check.params)
            if any(not source.startswith("$") for source, _ in check.items):
                facts = load_facts(view)
                _check_sources(where, facts, check)
                marks = facts.marks
                needs = self.needs
        standby = constraint.check is None
        return self.question(view, constraint.id, params={**self.params, **marks}, needs=needs, standby=standby)

    def _check_call(self, where: str, name: str, params: Mapping[str, JsonValue]) -> None:
        if name not in self._functions:
            hint = did_you_mean(name, self._functions) or "list it in the params of checks.constraints"
            raise PlanError(f"{where}, field check.function: there is no {quote(name)}; {hint}")
        try:
            inspect.signature(self._functions[name]).bind(None, None, **params)
        except TypeError as error:
            called = f"{quote(name)} is called as (task, response, **params): {error}"
            raise PlanError(f"{where}, field check.params: {called}; change the params, or the function") from error

    def answer(self, inputs: EvaluatorInput) -> Answer | Any:
        assert isinstance(inputs.task.about, Stakeholder)
        constraint = next(c for c in inputs.task.about.constraints if c.id == inputs.question.subject)
        if constraint.check is None:
            return Verdict.abstain("the constraint states no check, and nobody else is asked about it")
        check = _parse_check(f"constraint {constraint.id!r}", json.dumps(constraint.check, sort_keys=True))
        if check.function is not None:
            return self._functions[check.function](inputs.task, inputs.response, **deepcopy(check.params))
        label = constraint.text or constraint.id
        if check.text is not None:
            return _match_text(label, check.text, inputs.response)
        decided = _decide(check, inputs)
        reason = f"{label}: {decided.reason}"
        if decided.holds is None:
            return Verdict.abstain(reason)
        score = 1.0 if decided.holds else decided.share if check.partial else 0.0
        at = [] if decided.holds else decided.items[:10]
        evidence = tuple(part for item in at for part in _evidence(item))
        return Verdict(score=score, met=decided.holds, reason=reason, evidence=evidence)


@lru_cache(maxsize=4096)
def _parse_check(where: str, text: str) -> Check:
    """Return the check of a constraint from canonical JSON. Raises PlanError naming the field."""
    check = json.loads(text)
    try:
        return Check.model_validate(check)
    except ValidationError as error:
        problem = describe_validation_error(error, Check, check)
        field = f"check.{problem.field}" if problem.path else "check"
        raise PlanError(f"{where}, field {field}: {problem}") from error


def _check_sources(where: str, facts: Facts, check: Check) -> None:
    for kind, columns in check.items:
        if kind.startswith("$"):
            continue
        require_known(f"{where}, field check.{check.measure}: facts.claims", [kind], facts.claims, "kind")
        claims = facts.claims[kind]
        table_columns = [facts.tables[form.table].columns for form in claims.forms]
        if all(known is not None for known in table_columns):
            known = {*claims.beside, *filter(None, [claims.merged])}
            known.update(*filter(None, table_columns), *(form.states for form in claims.forms))
            require_known(f"{where}, field check: {kind}", sorted(columns), known)


def _is_empty(data: JsonValue) -> bool:
    if isinstance(data, dict | list):
        return all(map(_is_empty, data.values() if isinstance(data, dict) else data))
    return data is None or data == ""


def _claimed_items(check: Check, inputs: EvaluatorInput) -> Mapping[str, Sequence[ListedItem]]:
    if not check.claimed_kinds:
        return {}
    findings = claim_findings(inputs)
    lists = {name: table.spec.lists for name, table in load_facts(inputs.task).tables.items()}
    return {
        kind: [ListedItem(one["text"], one["values"], one, lists.get(one["table"] or "", {})) for one in findings[kind]]
        for kind in check.claimed_kinds
    }


def _matches(path: str, data: JsonValue) -> Sequence[ListedItem]:
    nodes = notation.compile_jsonpath(path).find(data)
    return [
        ListedItem(node.path(), node.value if isinstance(node.value, dict) else {"value": node.value})
        for node in sorted(nodes, key=lambda node: notation.location_sort_key(node.location))
    ]


def _match_text(label: str, pattern: str, response: Response) -> Verdict:
    match = notation.compile_pattern(pattern).search(response.text)
    if match is None:
        return Verdict(score=0.0, met=False, reason=f"{label}: the text has nothing like {pattern}")
    evidence = Evidence(quote=match.group(), start=match.start(), end=match.end())
    return Verdict(score=1.0, met=True, reason=f"{label}: the text has something like {pattern}", evidence=(evidence,))


def _decide(check: Check, inputs: EvaluatorInput) -> CheckResult:
    """Decide a check; a response whose data contains nothing that exists fails, though it breaks no rule."""
    if _is_empty(inputs.response.data):
        return CheckResult(False, 0.0, "the response has no data in which this could be looked for")
    claimed = _claimed_items(check, inputs)
    listed = {path: _matches(path, inputs.response.data) for path in check.paths}
    decided = decide_check(check, {**claimed, **listed})
    has_a_row = listed or any(finding["row"] for kind in claim_findings(inputs).values() for finding in kind)
    if decided.holds and not has_a_row:
        return CheckResult(False, 0.0, "nothing that the response's data claims is there")
    return decided


def _evidence(item: ListedItem) -> Sequence[Evidence]:
    if item.finding is not None:
        return claim_evidence(item.finding)
    return [Evidence(quote=to_text(dict(item.values))[:200], source=f"data {item.text}", verified=True)]


class Collected(CodeEvaluator):
    """Look up each constraint of a stakeholder in the table of preferences that the response recorded.

    An agent that talks with its users writes down what they want. GroupTravelBench compares that table with the users'
    profiles, and calls the recall over all of them preference completeness (arXiv 2605.25200; DecompR, Table 6). Here
    the table is `preferences` in the response's data: for each stakeholder, nested objects whose leaves are lists or
    single values. It has a constraint whose id is the path of a leaf and one value there: `transport.must: train` is in
    `{"transport": {"must": ["train"]}}`. A constraint that is not there is not collected, also without any table.

    The verdicts do not count in a utility: what an agent knows of a person is not what its plan does for the person.
    The component `stakeholders` reports them as `preference completeness`.
    """

    name = "checks.collected"
    audience = "stakeholder"
    layer = "check"
    reads_data = True
    shares = MappingProxyType({COLLECTED: 0.0})

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        return [self.question(view, f"{COLLECTED}/{constraint.id}") for constraint in view.about.constraints]

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        data = inputs.response.data
        wanted = inputs.question.subject.partition("/")[2]
        tables = data.get(_TABLE) if isinstance(data, dict) else None
        table = tables.get(str(inputs.task.member)) if isinstance(tables, dict) else None
        if table is None:
            reason = f"the response's data has no `{_TABLE}` of {inputs.task.member}"
            return Verdict(score=0.0, met=False, reason=reason)
        is_collected = wanted in set(flatten_preferences(table))
        words = "is" if is_collected else "is not"
        return Verdict(score=float(is_collected), met=is_collected, reason=f"{wanted} {words} among its preferences")


def flatten_preferences(table: JsonValue, path: str = "") -> Iterator[str]:
    """Yield `path: value` for every value of nested preferences; the entries of a list share the path of the list."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from flatten_preferences(value, f"{path}.{key}" if path else key)
    elif isinstance(table, list):
        for value in table:
            yield from flatten_preferences(value, path)
    elif table not in (None, ""):
        yield f"{path}: {to_text(table)}"
