"""The ready rubric for answers from retrieved passages: faithful to the context, an answer, and context enough."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from jurygraph.agents.roles import EvaluatorInput
from jurygraph.judges.criteria import Binary, Item, JudgeEvaluator, NonEmptySentence
from jurygraph.prompts import load_prompt
from jurygraph.schema import Question, TaskView, Verdict

CONTEXT_ITEM_BY_NAME: Mapping[str, Item] = MappingProxyType(
    {
        "faithful": Item(
            "Everything that the response claims is borne out by the passages, and nothing in it goes against them.",
            Binary(),
            needs=("response", "context"),
        ),
        "answers": Item("The response answers what was asked, and all of it.", Binary()),
        "sufficient": Item(
            "The passages have all that is needed to answer what was asked, whatever the response makes of them.",
            Binary(),
            needs=("context",),
        ),
    }
)


def find_question_texts(new_words: Any) -> Mapping[str, str]:
    """Return the words of the questions by their names, new ones in place of the ready ones."""
    return {name: item.text for name, item in CONTEXT_ITEM_BY_NAME.items()} | dict(new_words)


class ContextJudge(JudgeEvaluator):
    """Score whether a response is faithful to the task's `context`, answers, and had enough context to answer from.

    `faithful` needs quotations from response and context, `answers` from the response, and `sufficient` from the
    context; evidence names the passage, also where the response has the same words. It abstains for a task without
    context; where the context is an empty list, because nothing was found, only `answers` is judged.
    """

    class Params(JudgeEvaluator.Params):
        questions: dict[Literal["faithful", "answers", "sufficient"], NonEmptySentence] = Field({})
        """Questions in your own words, by name."""

    name = "context"
    version = "3"
    task_fields = ("context",)
    prompt = load_prompt("context")
    shares = MappingProxyType(dict.fromkeys(CONTEXT_ITEM_BY_NAME, 1.0))

    settings: Params

    def questions(self, view: TaskView) -> Sequence[Question]:
        # each has its own new words alone in its params, so that it stays the same question where others change
        new_words: Mapping[Any, str] = self.settings.questions
        questions = []
        for name in CONTEXT_ITEM_BY_NAME:
            params = {key: value for key, value in self.params.items() if key != "questions"}
            if name in new_words:
                params["question"] = new_words[name]
            questions.append(self.question(view, name, params=params))
        return questions

    def item(self, inputs: EvaluatorInput) -> Item:
        item = CONTEXT_ITEM_BY_NAME[inputs.question.subject]
        return replace(item, text=str(inputs.question.params.get("question", item.text)))

    def describe_missing_fields(self, view: TaskView, subject: str) -> str | None:
        needs_passages = "context" in CONTEXT_ITEM_BY_NAME[subject].needs
        if view.context == () and needs_passages:
            return "passages in its context"
        return super().describe_missing_fields(view, subject)

    async def answer_all(self, batch: Sequence[EvaluatorInput]) -> list[Verdict]:
        missing_texts = [
            self.describe_missing_fields(inputs.task, inputs.question.subject) for inputs in batch
        ]
        judged_inputs = [
            inputs for inputs, missing in zip(batch, missing_texts, strict=True) if missing is None
        ]
        judged_verdicts = iter(await super().answer_all(judged_inputs))
        return [
            next(judged_verdicts)
            if missing is None
            else Verdict.abstain(f"the task has no {missing}")
            for missing in missing_texts
        ]
