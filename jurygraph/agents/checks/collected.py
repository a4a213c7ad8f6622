"""The evaluator that looks up which preferences of the stakeholders a response recorded, as GroupTravelBench does."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from jurygraph.agents.facts.values import to_text
from jurygraph.agents.roles import CodeEvaluator, EvaluatorInput
from jurygraph.schema import Question, Stakeholder, TaskView, Verdict

COLLECTED = "collected"
_TABLE = "preferences"


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
