"""Explanation of a reward: the points of every term and part, in order of cost, and the changes that would matter."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from pydantic_core import to_jsonable_python

from jurygraph.agents.registry import load_combiner
from jurygraph.decision.combiners import Combiners
from jurygraph.display import ShortRepr, draw_notebook_html
from jurygraph.errors import ConfigError, InputError
from jurygraph.explanation.changes import Change, change_sentences, find_what_if_changes
from jurygraph.explanation.points import (
    PointsLine,
    build_term_line,
    feedback_texts,
    points_line_sort_key,
    reward_sentences,
)
from jurygraph.explanation.terms import ExplainedTrace
from jurygraph.messages import escape_hidden_characters
from jurygraph.schema import (
    ComponentSpec,
    Constraint,
    Criterion,
    Decision,
    Plan,
    Question,
    Survey,
    Trace,
)
from jurygraph.schema.frozen_model import JsonFields, require_argument_type


class Explanation(ShortRepr):
    """The explanation of one response's reward; `str` of it is readable text.

        explanation = trace.explain()
        print(explanation)
        for line in explanation.lines:
            print(line.component, line.points, line.lost, line.reason)
        explanation.what_if()[0].condition

    Attributes:
        trace: the trace.
        explained: its terms and verdicts, from the side of the response.
        questions: those of its survey.

    `group` returns the traces of all responses to the task, and `combiners` those of the decision by name; both are
    only called by `what_if`. `survey` returns the survey with its texts, for `feedback` alone.
    """

    def __init__(
        self,
        trace: Trace,
        decision: Decision,
        questions: Sequence[Question],
        group: Callable[[], Sequence[Trace]] = tuple,
        combiners: Callable[[], Combiners] | None = None,
        survey: Callable[[], Survey] | None = None,
    ) -> None:
        self.trace = trace
        self.explained = ExplainedTrace(trace, decision, questions)
        self.questions = questions
        self._group = group
        self._combiners = combiners or partial(_find_combiners, decision.all_specs)
        self._survey = survey

    @cached_property
    def lines(self) -> tuple[PointsLine, ...]:
        """Return a line for every term that counts, those that lost most first; each has the lines of its parts.

        The points are those before gates, scale and clip.
        """
        lines = [
            build_term_line(component)
            for component in self.explained.terms
            if component.term.contribution is not None and component.term.weight
        ]
        return tuple(sorted(lines, key=points_line_sort_key))

    def what_if(self) -> list[Change]:
        """Return all single changes of a verdict or gate with the reward they lead to, those that gain most first.

        Each is decided again from the stored verdicts; no model is called. Raises InputError if other responses of the
        group, or a combiner, are needed and not known; TraceMismatch if the verdicts do not give the reward.
        """
        return list(self._what_if_changes)

    @cached_property
    def _what_if_changes(self) -> Sequence[Change]:
        return find_what_if_changes(self.explained, self.questions, self._group, self._combiners())

    def feedback(self) -> list[str]:
        """Return what to mend in the response, for a redraft: each criterion's words, the judge's answer and reason.

        What costs most comes first. What was not judged is left out. Raises InputError where the texts were erased.
        """
        texts = {} if self._survey is None else _question_texts(self._survey())
        return feedback_texts(self.explained, texts)

    def sentences(self, what_if: bool = False) -> list[str]:
        """Return the explanation as sentences, and on request the changes that would raise or lower the reward."""
        changes = (
            change_sentences(self._what_if_changes, self.trace.reward.value is not None)
            if what_if
            else ()
        )
        return [*reward_sentences(self.explained, self.lines), *changes]

    def to_dict(self, what_if: bool = False) -> JsonFields:
        """Return the explanation as a JSON value: lines, gates and sentences, and on request all changes."""
        reward = self.trace.reward
        content: JsonFields = {
            "task_id": self.trace.task_id,
            "response_id": self.trace.response_id,
            "reward": reward.value,
            "lines": self.lines,
            "gates": reward.gates,
            "sentences": self.sentences(what_if),
        }
        if what_if:
            content["what_if"] = self._what_if_changes
        return dict(to_jsonable_python(content))

    def __str__(self) -> str:
        return "\n".join(map(escape_hidden_characters, self.sentences()))

    def _repr_html_(self) -> str:
        return draw_notebook_html("draw_explanation", self)

    def _repr_parts(self) -> Iterable[tuple[str, Any]]:
        reward = self.trace.reward
        return [
            ("response", self.trace.response_id),
            ("reward", reward.value),
            ("terms", len(reward.terms)),
        ]


def _question_texts(survey: Survey) -> dict[str, str]:
    """Return the words of what each question judges, by its id: of a criterion, or of a stakeholder's constraint."""
    texts = {}
    for question in survey.questions:
        criterion = question.params.get("criterion")
        if isinstance(criterion, Mapping):
            texts[question.id] = str(criterion["text"])
        about = survey.views[question.view].about
        for item in (about, *getattr(about, "constraints", ())):
            if isinstance(item, Criterion | Constraint) and item.id == question.subject:
                texts[question.id] = item.text
    return texts


def _find_combiners(specs: Sequence[ComponentSpec]) -> Combiners:
    """Return the combiners of specs, or else those of their names. Raises InputError if there is none."""
    combiners = {}
    for spec in specs:
        try:
            combiners[spec.combiner] = spec.implementation or load_combiner(spec.combiner)
        except ConfigError as error:
            raise InputError(
                f"the plan was made elsewhere, and here its combiner is missing: {error}; "
                "give `plan=jury.prepare(task)`, from a jury that has this combiner"
            ) from error
    return combiners


_WHOLE_GROUP_HINT = "give all traces of jury.score(task, responses)"


def explain(trace: Trace, plan: Plan | None = None, *, group: Sequence[Trace] = ()) -> Explanation:
    """Return the explanation of a trace; `trace.explain()` is the same, and `Run.explain` is for stored runs.

    Args:
        trace: a trace from `Jury.score`, or any other together with its plan.
        plan: the plan of its task, by default `trace.plan`.
        group: the traces of all responses to the task, which `what_if` needs if responses are compared.

    Raises:
        InputError: the trace has no plan and none is given, or another one than that of the trace is given; a trace in
            `group` is of another group; or an argument has a wrong type.
    """
    require_argument_type("trace", trace, Trace, "give one of jury.score(task, responses)")
    require_argument_type("plan", plan, Plan | None, "give jury.prepare(task), or none")
    require_argument_type("group", group, Sequence, _WHOLE_GROUP_HINT)
    for index, member in enumerate(group):
        require_argument_type(f"group[{index}]", member, Trace, _WHOLE_GROUP_HINT)
        if member.group != trace.group:
            raise InputError(
                f"group[{index}]: belongs to another group of responses; {_WHOLE_GROUP_HINT}"
            )
    name = repr(trace.response_id)
    plan = trace.plan if plan is None else plan
    if plan is None:
        raise InputError(
            f"the trace of response {name} has no plan, which JSON and checkpoints leave out; keep its `trace.plan` "
            "(`jury.as_node(plan=KEY)` puts it into the state of a graph) and give it to `explain`, or use "
            f"`run.explain({name})` for a stored run"
        )
    if plan.digest != trace.plan_digest:
        raise InputError(
            f"the trace of response {name} has another plan than the one given; give the plan of its task"
        )
    survey = plan.survey
    return Explanation(
        trace, plan.decision, survey.questions, partial(tuple, group), survey=lambda: survey
    )
