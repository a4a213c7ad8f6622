"""Evaluators, derivers, combiners and models that are objects of a program, where a config file has names."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langgraph.graph import StateGraph

import jurygraph as jg
from jurygraph.errors import ConfigError
from jurygraph.schema import Config
from tests.rows import all_rows

TASK = jg.Task(id="letter", query="Write a letter.")
HERE = __name__


@jg.evaluator(layer="check")
def half(task: jg.TaskView, response: jg.Response) -> float:
    return 0.5


def share(task: jg.TaskView, response: jg.Response, of: int = 10) -> float:
    return min(1.0, len(response.text) / of)


class Short(jg.Evaluator):
    def __init__(self, most: Any = 3) -> None:
        self.most = most

    def answer(self, inputs: jg.EvaluatorInput) -> bool:
        return len(inputs.response.text) <= self.most


class Words(jg.Deriver):
    gives = "words"

    def derive(self, inputs: jg.DeriverInput) -> jg.Material:
        return jg.Material(name="words", data=inputs.response.text.split())


@jg.evaluator(needs=["words"])
def wordy(task: jg.TaskView, response: jg.Response, words: jg.Material) -> float:
    assert isinstance(words.data, list)
    return len(words.data) / 10


class Power(jg.Combiner):
    def __init__(self, exponent: int = 2) -> None:
        self.exponent = exponent

    def combine(
        self, matrices: Mapping[str, jg.ScoreMatrix], params: Mapping[str, Any]
    ) -> jg.Component:
        ((value, present),) = (matrix.mean() for matrix in matrices.values())
        return jg.Component(np.prod([value] * self.exponent, axis=0), present, {})


def score(text: str = "four", **settings: Any) -> jg.Trace:
    with jg.Jury(**settings) as jury:
        (trace,) = jury.score(TASK, [text])
    return trace


def versions(*evaluators: Any) -> list[str]:
    with jg.Jury(evaluators=evaluators, reward={"Short": 1.0}) as jury:
        return [question.version for question in jury.prepare(TASK).survey.questions]


def test_every_kind_of_object_takes_the_place_of_a_name() -> None:
    settings: dict[str, Any] = {
        "derivers": [Words],
        "evaluators": [
            half,
            {"use": share, "params": {"of": 8}},
            Short(most=4),
            {"use": Short, "name": "shorter", "params": {"most": 2}},
            wordy,
            {"use": RunnableLambda(lambda state: {"score": 0.25}), "name": "quarter"},
            "maths.length",
        ],
        "components": {"squared": {"combiner": Power, "inputs": {"a": "half"}}},
        "reward": {"squared": 1.0},
    }
    by_keyword = score(**settings)
    found = {verdict.question: verdict.score for verdict in by_keyword.verdicts}
    found.pop("maths.length")
    assert found == {
        "half": 0.5,
        "share": 0.5,
        "Short": 1.0,
        "shorter": 0.0,
        "wordy": 0.1,
        "quarter": 0.25,
    }
    assert by_keyword.reward.value == 0.25
    with jg.Jury.from_config(settings) as jury:
        assert jury.score(TASK, ["four"])[0].digest == by_keyword.digest
        assert {use.use for use in jury.config.evaluators} >= {
            "half",
            "share",
            "Short",
            "wordy",
            "maths.length",
        }


def test_a_function_has_the_version_and_the_plan_that_its_name_has() -> None:
    digests = set()
    for use in ({"use": half, "name": "x"}, {"use": f"{HERE}:half", "name": "x"}):
        with jg.Jury.from_config({"evaluators": [use]}) as jury:
            digests.add(jury.prepare(TASK).digest)
    assert len(digests) == 1


def test_the_attributes_of_an_instance_are_part_of_its_version() -> None:
    (three,), (four,), (named,) = versions(Short(3)), versions(Short(4)), versions({"use": Short})
    assert three == versions(Short(3))[0]
    assert len({three, four, named}) == 3
    assert all(version.startswith(named) for version in (three, four))
    changed = Short(3)
    changed.most = 4
    assert versions(changed) == [four]


UNPLAIN = '[{1, 2}, np.float64(3.0), Path("a"), share, jg.Evidence(quote="a"), [share, {3: None}]]'


@pytest.mark.landing
def test_an_attribute_that_is_no_plain_data_has_a_stable_part_in_it() -> None:
    show = f"[versions(Short(one)) for one in {UNPLAIN}]"
    code = f"import sys; sys.path[:0] = ['.']; from {HERE} import *; print({show})"
    root = Path(__file__).parents[1]
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert other.stdout.strip() == str(eval(show))


def test_an_instance_is_copied_so_that_two_juries_do_not_share_its_name() -> None:
    shared = Short(4)
    assert score(evaluators=[{"use": shared, "name": "a"}]).reward.components == {"a": 1.0}
    assert score(evaluators=[{"use": shared, "name": "b"}]).reward.components == {"b": 1.0}
    assert not hasattr(shared, "name")


def test_a_combiner_object_may_be_used_twice_and_has_its_attributes_in_its_version() -> None:
    power = Power(3)
    components = {name: {"combiner": power, "inputs": {"a": "half"}} for name in "ab"}
    with jg.Jury(evaluators=[half], components=components, reward={"a": 1.0, "b": 1.0}) as jury:
        specs = jury.prepare(TASK).decision.specs
        assert jury.score(TASK, ["four"])[0].reward.value == 0.25
    assert len({spec.version for spec in specs if spec.combiner == "Power"}) == 1
    assert " with " in specs[0].version


@all_rows(
    ("settings", "message"),
    [
        (
            {"evaluators": [half, half]},
            "evaluators[1]: 'half' is listed twice; give one of them a `name` of its own, such as `name: half_2`",
        ),
        (
            {"evaluators": [half, half, {"use": half, "name": "half_2"}]},
            "evaluators[1]: 'half' is listed twice; give one of them a `name` of its own, such as `name: half_3`",
        ),
        (
            {"evaluators": [lambda task, response: 1.0]},
            "evaluators[0]: is a lambda, which has no name; write",
        ),
        ({"evaluators": half}, "config, key evaluators: is a FunctionEvaluator; write a list"),
        (
            {"evaluators": [3]},
            "config, key evaluators[0]: is the number 3; write a name in quotes, or in Python give",
        ),
        (
            {"evaluators": [half], "model": 3},
            "config, key model: is the number 3; write a name in quotes, or in",
        ),
        (
            {"evaluators": [Words]},
            "evaluators[0]: 'Words' is not an evaluator: it is a deriver; move it to `derivers`",
        ),
        (
            {"evaluators": [StateGraph(dict)]},
            "evaluators[0]: 'StateGraph' is not an evaluator: it is a graph to be compiled; give what its `.comp",
        ),
        (
            {"evaluators": [jg.criteria]},
            'evaluators[0]: `criteria` is to be called: jg.criteria({"polite": "It is polite."})',
        ),
        (
            {"evaluators": [{"use": Short(), "params": {"most": 1}}]},
            "evaluators[0]: evaluator 'Short' is already set up",
        ),
        ({"evaluators": [half], "derivers": [Short]}, "derivers[0]: 'Short' is not a deriver"),
        (
            {"evaluators": [half], "derivers": [Words, Words]},
            "derivers[1]: 'Words' is listed twice",
        ),
        (
            {"evaluators": [half], "model": None},
            "config, key model: is null; write 'none', or leave it out",
        ),
        (
            {"evaluators": [half], "model": jg.testing.ScriptedJudge},
            "model: is the class ScriptedJudge; give an instance, ScriptedJudge(…)",
        ),
        (
            {"evaluators": [half], "reward": {half: 1}},
            "config, key reward: has a key that is a FunctionEvaluator; write its name, in quotes",
        ),
        (
            {"evaluators": [half], "model": half},
            "model: 'langchain:FunctionEvaluator' is a FunctionEvaluator",
        ),
        ({"evaluaters": [half]}, "config, key evaluaters: unknown; did you mean evaluators?"),
        (
            {
                "evaluators": [half],
                "components": {
                    n: {"combiner": Power(n == "a"), "inputs": {"x": "half"}} for n in "ab"
                },
            },
            "components.b.combiner: another combiner is called 'Power'; set `name` on this one",
        ),
        (
            {
                "evaluators": [half],
                "components": {
                    "a": {"combiner": type("mean", (Power,), {}), "inputs": {"x": "half"}}
                },
            },
            "components.a.combiner: another combiner is called 'mean'",
        ),
        (
            {
                "evaluators": [half],
                "components": {"a": {"combiner": lambda: 1, "inputs": {"x": "half"}}},
            },
            "components.a.combiner: '<lambda>' is no combiner: it is a function; subclass jurygraph.Combiner",
        ),
        (
            {"evaluators": [half], "components": {"a": {"inputs": {"x": half}}}},
            "config, key components.a.inputs.x: is a FunctionEvaluator; write a name, in quotes, or an object",
        ),
    ],
)
def test_an_object_that_does_not_fit_is_refused_with_its_key(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        jg.Jury(**settings)
    assert str(refused.value).startswith(message)


def test_a_chat_model_may_be_the_model() -> None:
    reply = (
        '{"criterion_1": {"reason": "so", "quotes": ["four"], "met": true, "probability": 0.75}}'
    )
    trace = score(
        model=FakeListChatModel(responses=[reply]), evaluators=[jg.criteria(["It is polite."])]
    )
    assert trace.reward.value == 0.75
    assert trace.calls[0].provider == "langchain:FakeListChatModel"


def test_a_file_a_mapping_or_a_config_takes_a_model_that_is_an_object(tmp_path: Path) -> None:
    file = tmp_path / "jury.yaml"
    file.write_text("evaluators: [criteria]\nmodel: none\n")
    judge = jg.testing.ScriptedJudge({"polite": True})
    rubric = jg.Rubric(criteria=[jg.Criterion(id="polite", text="It is polite.", weight=1.0)])
    for source in (
        file,
        {"evaluators": ["criteria"]},
        Config.model_validate({"evaluators": ["criteria"]}),
    ):
        with jg.Jury.from_config(source, model=judge) as jury:
            (trace,) = jury.score(TASK.model_copy(update={"rubric": rubric}), ["Dear Ann"])
        assert trace.reward.value == 1.0
    assert len(judge.requests) == 3


CRITERIA: list[tuple[Any, dict[str, float]]] = [
    (["It is polite.", "It is long."], {"c1": 1.0, "c2": 1.0}),
    (
        {"polite": "It is polite.", "long": {"text": "It is long.", "weight": 3.0}},
        {"polite": 1.0, "long": 3.0},
    ),
    (
        [jg.Criterion(id="long", text="It is long.", weight=2.0), {"text": "polite"}],
        {"long": 2.0, "c2": 1.0},
    ),
]


@pytest.mark.parametrize(("criteria", "weights"), CRITERIA)
def test_criteria_of_ones_own_are_judged_and_weighted(
    criteria: Any, weights: Mapping[str, float]
) -> None:
    judge = jg.testing.ScriptedJudge({"polite": True, "long": False})
    trace = score(model=judge, evaluators=[jg.criteria(criteria, name="style")])
    assert {verdict.subject for verdict in trace.verdicts} == weights.keys()
    polite = next(
        weight
        for name, weight in weights.items()
        if name not in ("long",) and not _is_long(criteria, name)
    )
    assert trace.reward.components == {"style": pytest.approx(polite / sum(weights.values()))}
    assert len(judge.requests) == 1


def test_a_file_may_have_them_too(tmp_path: Path) -> None:
    file = tmp_path / "jury.yaml"
    file.write_text("evaluators: [{use: criteria, params: {criteria: {polite: It is polite.}}}]\n")
    with jg.Jury.from_config(file, model=jg.testing.ScriptedJudge({"polite": 0.75})) as jury:
        assert jury.score(TASK, ["Dear Ann"])[0].reward.components == {"criteria": 0.75}
    file.write_text("evaluators: [{use: criteria, params: {criteria: polite}}]\n")
    with pytest.raises(
        ConfigError,
        match=r"^jury.yaml, line 1, key evaluators\[0\]: criteria: params.criteria: is the text 'polite'; write an",
    ):
        jg.Jury.from_config(file)


def _is_long(criteria: Any, name: str) -> bool:
    texts = (
        dict(zip(("c1", "c2"), criteria, strict=False))
        if isinstance(criteria, Sequence)
        else criteria
    )
    return "long" in str(texts.get(name, ""))


def test_a_changed_criterion_leaves_the_questions_of_the_others() -> None:
    def questions(**criteria: Any) -> dict[str, str]:
        with jg.Jury(
            model=jg.testing.ScriptedJudge({}), evaluators=[jg.criteria(criteria)]
        ) as jury:
            return {
                question.subject: question.digest
                for question in jury.prepare(TASK).survey.questions
            }

    before = questions(a="One.", b="Two.")
    after = questions(a={"text": "One.", "weight": 5.0}, b="Three.")
    assert before["a"] == after["a"]
    assert before["b"] != after["b"]


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ([3], "evaluators[0]: criteria: params.criteria[0]: is the number 3; write an object"),
        ([object()], "config, key evaluators[0].params.criteria"),
        ({"a": None}, "evaluators[0]: criteria: params.criteria.a: is null; write an object"),
        (
            [{"text": "a", "weight": -1.0}],
            "evaluators[0]: criteria: params.criteria[0].weight: is negative; give a fault an "
            "evaluator of its own, whose component has a negative weight under `reward`, such as",
        ),
        ({"a/b": "x"}, "evaluators[0]: criteria: params.criteria.a/b: has a slash; leave it out"),
        (
            {"a": "x", "b": {"txt": "a"}},
            "evaluators[0]: criteria: params.criteria.b.txt: unknown; did you mean text?",
        ),
        (
            [{"id": "a", "text": "x"}] * 2,
            "evaluators[0]: criteria: params.criteria[1].id: is 'a' again",
        ),
        (
            ["x", "y", "x"],
            "evaluators[0]: criteria: params.criteria[2].text: is the same for 'c1' and 'c3'; leave one",
        ),
    ],
)
def test_criteria_that_cannot_be_judged_are_refused(criteria: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        jg.Jury(evaluators=[jg.criteria(criteria)])
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ("polite", "criteria: is a str; write {"),
        (
            jg.Rubric(criteria=[jg.Criterion(id="a", text="a", weight=1.0)]),
            'criteria: is a Rubric; write {"polite": "It is polite."}, or a list of texts or criteria, such as `ru',
        ),
        ({}, "criteria: is empty; write {"),
    ],
)
def test_what_cannot_be_criteria_is_refused_at_once(criteria: Any, message: str) -> None:
    with pytest.raises(jg.InputError) as refused:
        jg.criteria(criteria)
    assert str(refused.value).startswith(message)
