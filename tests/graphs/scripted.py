"""The cast of these tests: evaluators and derivers that do as a response tells them, and short ways to set a scene.

A response's `data` is the script: what each question is answered with, by the question's id (or its evaluator's name).
So every verdict of a test stands in the test, and everything between it and the reward is the real machine.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import jurygraph as jg
from jurygraph.agents.registry import BUILTIN_COMBINER_PATHS, load_combiner
from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
from jurygraph.decision.combiners import Combiner
from jurygraph.decision.decide import compute_rewards
from jurygraph.graphs.routing import make_stamp, sort_responses_by_content
from jurygraph.schema import (
    Criterion,
    Failure,
    Material,
    Plan,
    Question,
    RecordedVerdict,
    Response,
    Reward,
    Rubric,
    Task,
    TaskView,
    Trace,
    Variant,
    Verdict,
)
from jurygraph.schema.verdict import VerdictKey

COMBINERS: dict[str, Combiner] = {name: load_combiner(name) for name in BUILTIN_COMBINER_PATHS}

SCRIPTED = "tests.graphs.scripted:ScriptedEvaluator"
DATA_READER = "tests.graphs.scripted:DataReader"

NO_MODEL = Verdict(
    status="abstained", reason="none", failure=Failure(cause="infrastructure", kind="no-model")
)
ABSTENTION = Verdict.abstain("it cannot tell")
RESPONSE_FAILURE = Verdict.fail("refused", "provoked by the response", cause="response")
INFRASTRUCTURE_FAILURE = Verdict.fail(
    "timeout", "the server did not answer", cause="infrastructure"
)
UNJUDGED = {
    "abstained": ABSTENTION,
    "no-model": NO_MODEL,
    "response": RESPONSE_FAILURE,
    "infrastructure": INFRASTRUCTURE_FAILURE,
}


class Broken(BaseException):
    """An exception that no `except Exception` catches."""


EXCEPTIONS: dict[str, type[BaseException]] = {
    "Exception": RuntimeError,
    "TimeLimitExceeded": jg.TimeLimitExceeded,
    "SystemExit": SystemExit,
    "CancelledError": asyncio.CancelledError,
    "BaseException": Broken,
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
}


def scripted_verdict(line: Any) -> Any:
    """One line of a script: a score, a word for how a judgement goes missing, or the fields of a verdict."""
    if isinstance(line, str):
        return UNJUDGED[line]
    return Verdict.model_validate(line) if isinstance(line, Mapping) else line


class ScriptedEvaluator(Evaluator):
    """Answers as the response's script says; a pair by its two scores, a group by everyone's own.

    It asks about all members of its audience, or about these `members` alone.
    """

    version = "1"
    members: Sequence[str] | None = None

    def __init__(
        self, subjects: Sequence[str] = (), whens: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.subjects = subjects
        self.whens = dict(whens or {})
        self.fields = {
            k: settings.pop(k) for k in ("material", "pairs", "samples", "when") if k in settings
        }
        for name, value in settings.items():
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

    def questions(self, view: TaskView) -> Sequence[Question]:
        if self.members is not None and view.member not in self.members:
            return []
        return [self._question(view, subject) for subject in self.subjects or (None,)]

    def _question(self, view: TaskView, subject: str | None) -> Question:
        plain = self.question(view, subject)
        gate = self.whens.get(subject or view.member or "", self.fields.get("when"))
        return Question.model_validate(plain.model_dump() | self.fields | {"when": gate})

    def answer(self, inputs: EvaluatorInput) -> Any:
        lines = [self._line(inputs, response) for response in inputs.responses]
        if self.scope == "group":
            return [scripted_verdict(line) for line in lines]
        if self.scope == "pair":
            first, second = lines
            return (
                0.5 + (first - second) / 2
                if not isinstance(first, str)
                else scripted_verdict(first)
            )
        line = lines[0]
        return scripted_verdict(line[inputs.sample] if isinstance(line, list) else line)

    def _line(self, inputs: EvaluatorInput, response: Response) -> Any:
        assert response.agent is None
        assert not response.labels
        script = response.data
        assert isinstance(script, dict)
        return script[inputs.question.id] if inputs.question.id in script else script[self.name]


class DataReader(Evaluator):
    """Scores the material that it needs: the number in each one's data, averaged."""

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

    def answer(self, inputs: EvaluatorInput) -> Any:
        found = [one.data for each in inputs.material for one in each.values()]
        verdict = Verdict(
            score=float(np.mean(found)), reason=f"{[sorted(each) for each in inputs.material]}"
        )
        return [verdict] * len(inputs.responses) if self.scope == "group" else verdict


class Measure(Deriver):
    """Gives the number that the script holds under `measure`; a word there is an exception."""

    gives = "measure"

    def derive(self, inputs: DeriverInput) -> Material:
        number = script_of(inputs.response)["measure"]
        if isinstance(number, str):
            raise EXCEPTIONS[number]("the deriver broke")
        return Material(name="measure", data=number)


class Half(Deriver):
    """Half of the measure: material made from material, by a coroutine."""

    gives = "half"
    needs = ("measure",)

    async def derive(self, inputs: DeriverInput) -> Material:
        await asyncio.sleep(0)
        number = inputs.material["measure"].data
        assert isinstance(number, float)
        return Material(name="half", data=number / 2)


class Versions(Deriver):
    """Variants of a response, each with the script that the parent's holds for it under `versions`."""

    gives = "versions"

    def derive(self, inputs: DeriverInput) -> Material:
        scripts = script_of(inputs.response)["versions"]
        if isinstance(scripts, str):
            raise EXCEPTIONS[scripts]("the deriver broke")
        made = [
            Variant(
                response=Response(id=name, text=f"{inputs.response.text} ({name})", data=script),
                edit=name,
            )
            for name, script in scripts
        ]
        return Material(name="versions", variants=tuple(made))


def script_of(response: Response) -> dict[str, Any]:
    assert isinstance(response.data, dict)
    return response.data


def evaluator_use(name: str, **params: Any) -> dict[str, Any]:
    """A config's line for a `Told` of that name."""
    return {"use": SCRIPTED, "name": name, "params": params}


def response(
    name: str, text: str = "a response", agent: str | None = None, **script: Any
) -> Response:
    return Response(id=name, text=text, data=script, agent=agent)


def response_with(name: str, script: Mapping[str, Any]) -> Response:
    return Response(id=name, text="a response", data=dict(script))


def criterion(name: str, weight: float = 1.0) -> Criterion:
    return Criterion(id=name, text=f"criterion {name}", weight=weight)


def task(*criteria: Criterion, edges: Sequence[Any] = (), **fields: Any) -> Task:
    """A task, with a rubric of these criteria if there are any; an edge is (parent, child, kind or retention)."""
    stated = [
        {"parent": p, "child": c, "kind": how}
        if isinstance(how, str)
        else {"parent": p, "child": c, "kind": "weak", "retention": how}
        for p, c, how in edges
    ]
    rubric = Rubric.model_validate({"criteria": criteria, "edges": stated}) if criteria else None
    return Task.model_validate({"id": "task", "query": "What is right?", "rubric": rubric} | fields)


def jury(*evaluators: Any, **config: Any) -> jg.Jury:
    return jg.Jury.from_config({"evaluators": list(evaluators), **config})


def score_responses(config: Mapping[str, Any], about: Task, *responses: Response) -> list[Trace]:
    with jg.Jury.from_config(config) as made:
        return made.score(about, responses)


def reward_responses(config: Mapping[str, Any], about: Task, *responses: Response) -> list[Reward]:
    return [trace.reward for trace in score_responses(config, about, *responses)]


def make_plan(config: Mapping[str, Any], about: Task) -> Plan:
    with jg.Jury.from_config(config) as made:
        return made.prepare(about)


def decide_rewards(
    plan: Plan, answers: Mapping[tuple[str, str], Verdict | float], *names: str
) -> dict[str, Reward]:
    """Rewards straight from `decide`: an answer for every (question, response) of scope response."""
    questions = {question.id: question for question in plan.survey.questions}
    verdicts = []
    for (question, name), answer in answers.items():
        stamp = make_stamp(questions[question], plan.survey.views[questions[question].view])
        verdict = answer if isinstance(answer, Verdict) else Verdict(score=answer)
        shown = (name,) if verdict.status != "not_applicable" else ()
        verdicts.append(stamp(verdict, VerdictKey(question, name, shown, 0)))
    rewards = compute_rewards(plan.decision, plan.survey.questions, names, verdicts, COMBINERS)
    return dict(zip(names, rewards, strict=True))


def ordered_ids(*responses: Response) -> list[str]:
    return [one.id for one in sort_responses_by_content(responses)]


def find_verdict(trace: Trace, question: str) -> RecordedVerdict:
    """The one verdict on that question."""
    (found,) = (verdict for verdict in trace.verdicts if verdict.question == question)
    return found


def by_id(traces: Sequence[Trace]) -> dict[str, Trace]:
    return {trace.response_id: trace for trace in traces}
