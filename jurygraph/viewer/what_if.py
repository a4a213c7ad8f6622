"""What-if: a response decided again with other settings, scores or edges by the code of `rescore`, without a call."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, NamedTuple, Self
from urllib.parse import urlencode

from multidict import MultiMapping
from pydantic import Field, TypeAdapter, ValidationError

from jurygraph.decision.decide import compute_rewards
from jurygraph.decision.recipe import check_recipe
from jurygraph.errors import InputError
from jurygraph.explanation import Explanation
from jurygraph.explanation.changes import distinct_verdicts, revise
from jurygraph.messages import quote
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import (
    make_decision_finder,
    refuse_changed_questions,
    refuse_unknown_member_names,
)
from jurygraph.schema import Config, RecordedVerdict, Task
from jurygraph.sources.config import apply_settings


class EdgeRetentionChange(NamedTuple):
    """Another retention of an edge of the rubric graph, in [0, 1]; None removes the edge."""

    parent: str
    child: str
    retention: Annotated[float, Field(ge=0.0, le=1.0)] | None


_EDGE_RETENTION_CHANGE_ADAPTER = TypeAdapter(EdgeRetentionChange)


@dataclass(frozen=True, kw_only=True)
class WhatIfChanges:
    """Changes to be tried, as they stand in a URL.

    Attributes:
        settings: `key=value`, as for `rescore --set`.
        scores: of questions, `question=score`.
        edges: of the task's rubric graph, `["parent","child",retention]` in JSON, with null for an edge that goes.
    """

    settings: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    edges: tuple[EdgeRetentionChange, ...] = ()

    @classmethod
    def from_url(cls, parameters: MultiMapping[str]) -> Self:
        """Return the changes in a URL; empty ones are left out. Raises `InputError` for a value out of [0, 1]."""
        settings = [text for text in parameters.getall("set", ()) if text.rpartition("=")[2]]
        scores = {}
        for text in parameters.getall("score", ()):
            question, _, number = text.rpartition("=")
            if number:
                scores[question] = _parse_score(text, number)
        edges = [
            _parse_edge_retention_change(text) for text in parameters.getall("edge", ()) if text
        ]
        return cls(settings=tuple(settings), scores=scores, edges=tuple(edges))

    def to_url(self) -> str:
        """Return the changes as the part of a URL after the id of the response."""
        pairs = [("set", setting) for setting in self.settings]
        pairs += [("score", f"{question}={score!r}") for question, score in self.scores.items()]
        pairs += [("edge", text) for text in self.edge_texts]
        return urlencode(pairs)

    def settings_url(self) -> str:
        """Return the settings alone as the part of a URL."""
        return replace(self, scores={}, edges=()).to_url()

    @property
    def has_no_changes(self) -> bool:
        return not (self.settings or self.scores or self.edges)

    @property
    def edge_texts(self) -> list[str]:
        """Return the changed edges as they stand in a URL."""
        return [edge_to_url_text(*edge) for edge in self.edges]

    def value_of(self, key: str) -> str:
        """Return the value that a setting is tried with; empty if it is not."""
        return dict(setting.partition("=")[::2] for setting in self.settings).get(key, "")

    def make_changed_config(self, run: Run) -> Config:
        """Return the config of a run with the settings. Raises `ConfigError` and `InputError` as `rescore` does."""
        config = apply_settings(run.config, self.settings)
        refuse_changed_questions(run, config)
        check_recipe(config, run.header.evaluators)
        if config.criteria.keys() - run.config.criteria.keys():
            refuse_unknown_member_names(run, config, list(run.decisions()))
        return config


def _parse_score(text: str, number: str) -> float:
    try:
        score = float(number)
    except ValueError:
        score = -1.0
    if not 0.0 <= score <= 1.0:
        raise InputError(f"score {text!r}: expected a number from 0 to 1 after the last `=`")
    return score


def edge_to_url_text(parent: str, child: str, retention: float | None) -> str:
    return json.dumps([parent, child, retention], ensure_ascii=False, separators=(",", ":"))


def _parse_edge_retention_change(text: str) -> EdgeRetentionChange:
    try:
        return _EDGE_RETENTION_CHANGE_ADAPTER.validate_json(text)
    except ValidationError:
        raise InputError(
            f"edge {text!r}: "
            'expected ["parent","child",retention], with a retention from 0 to 1, or null'
        ) from None


def _revise_edges(task: Task, changes: Sequence[EdgeRetentionChange]) -> Task:
    """Return the task with changed edges in its rubric. Raises `InputError` for an edge that it does not have."""
    rubric = task.rubric
    edges = {} if rubric is None else {(edge.parent, edge.child): edge for edge in rubric.edges}
    for parent, child, retention in changes:
        edge = edges.get((parent, child))
        if edge is None:
            raise InputError(f"edge: the rubric has none from {quote(parent)} to {quote(child)}")
        if retention is None:
            del edges[parent, child]
        else:
            edges[parent, child] = edge.model_copy(update={"retention": retention})
    if rubric is None:
        return task
    revised_rubric = rubric.model_copy(update={"edges": tuple(edges.values())})
    return task.model_copy(update={"rubric": revised_rubric})


def is_verdict_about_response(verdict: RecordedVerdict, response: str) -> bool:
    """Return whether a verdict judges a response, alone or with another one; that of a pair scores its first."""
    return verdict.about == response or response in verdict.responses


def explain_with_changes(run: Run, response: str, changes: WhatIfChanges) -> Explanation:
    """Return the explanation of a response as it would be decided with the changes.

    The bits are those of `rescore`, where only settings change. Raises `InputError` for an unknown response, and as
    `rescore` does.
    """
    group = [scored.trace for scored in run.group_of_response(response)]
    trace = next(member for member in group if member.response_id == response)
    config = changes.make_changed_config(run)
    combiners = run.load_combiners(config)
    revise_task_edges = partial(_revise_edges, changes=changes.edges) if changes.edges else None
    decision = make_decision_finder(run, config, combiners, revise_task_edges)(trace.task_id)
    if (changes.edges or config != run.config) and run.task(trace.task_id) is None:
        raise InputError("the texts of its task were erased, its weights with them")
    questions = run.survey_without_texts_of(trace.task_id).questions
    for name in changes.scores:
        if name not in {question.id for question in questions}:
            raise InputError(f"score: the response has no question {quote(name)}")

    def try_score(verdict: RecordedVerdict) -> RecordedVerdict:
        score = changes.scores.get(verdict.question)
        if score is None or not is_verdict_about_response(verdict, response):
            return verdict
        return revise(verdict, score)

    names = [member.response_id for member in group]
    verdicts = list(map(try_score, distinct_verdicts(group)))
    rewards = compute_rewards(decision, questions, names, verdicts, combiners)
    what_if_verdicts = tuple(map(try_score, trace.verdicts))
    reward = rewards[names.index(response)]
    what_if_trace = trace.model_copy(update={"verdicts": what_if_verdicts, "reward": reward})
    return Explanation(what_if_trace, decision, questions)
