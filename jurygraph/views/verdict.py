"""The view of a question: the verdicts on it about one response, and the calls of models behind them."""

from collections.abc import Sequence
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.judges.context import find_question_texts
from jurygraph.messages import suggest_known_name
from jurygraph.runs.calls import RecordedCall, read_calls
from jurygraph.runs.run import Run
from jurygraph.schema import Constraint, Criterion, RecordedVerdict
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.views.rewards import find_question_id


class QuestionView(NamedTuple):
    """The verdicts on a question about a response; the calls behind them, those for material first."""

    task_id: str
    response_id: str
    question: str
    verdicts: Sequence[RecordedVerdict]
    calls: Sequence[RecordedCall]

    def to_json(self, should_list_calls: bool) -> JsonFields:
        """Return the calls as a JSON object, or the verdicts, with what they are about."""
        content: JsonFields = {
            "task_id": self.task_id,
            "response_id": self.response_id,
            "question": self.question,
        }
        if should_list_calls:
            content["calls"] = [call.to_json() for call in self.calls]
        else:
            content["verdicts"] = [verdict.model_dump(mode="json") for verdict in self.verdicts]
        return content


def build_question_view(run: Run, response: str, name: str) -> QuestionView:
    """Return the view of a question by its name, or the last part of it.

    Raises:
        InputError: the run has no such response, or the response no such question.
        TraceMismatch: a stored text is not the one that was written.
    """
    trace = run.find_trace(response)
    questions = dict.fromkeys(verdict.question for verdict in trace.verdicts)
    question = find_question_id(name, questions)
    verdicts = [
        verdict.model_copy(update={"calls": tuple(verdict.calls_with_purpose)})
        for verdict in trace.verdicts
        if verdict.question == question
    ]
    if not verdicts:
        hint = suggest_known_name(question, questions)
        raise InputError(
            f"{run.folder}: response {response!r} has no question {question!r}; {hint}"
        )
    return QuestionView(
        task_id=trace.task_id,
        response_id=response,
        question=question,
        verdicts=verdicts,
        calls=read_calls(run, trace, verdicts),
    )


def find_question_words(run: Run, view: QuestionView) -> str:
    """Return the words of the criterion or constraint of a question; empty if it has none or they were erased."""
    verdict = view.verdicts[0]
    words = find_words_by_question(run, view.task_id)
    task = run.task(view.task_id)
    if verdict.question in words or task is None:
        return words.get(verdict.question, "")
    items: Sequence[Criterion | Constraint] = ()
    if task.rubric is not None and run.header.evaluators[verdict.evaluator].audience == "criterion":
        items = task.rubric.criteria
    for person in task.stakeholders:
        if person.id == verdict.stakeholder:
            items = person.constraints
    return next((item.text for item in items if item.id == verdict.subject), "")


def find_words_by_question(run: Run, task_id: str) -> dict[str, str]:
    """Return the words of the questions of a task that are those of all tasks."""
    context_texts = {
        use.known_as: find_question_texts(use.params.get("questions", {}))
        for use in run.config.evaluators
        if use.use == "context"
    }
    words = {}
    for question in run.survey_without_texts_of(task_id).questions:
        criterion = question.params.get("criterion")
        if isinstance(criterion, dict):
            words[question.id] = str(criterion["text"])
        elif question.evaluator in context_texts:
            words[question.id] = context_texts[question.evaluator][question.subject]
    return words
