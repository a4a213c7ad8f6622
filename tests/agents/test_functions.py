"""Functions, Runnables and compiled graphs as evaluators, called as the state machine calls them."""

import asyncio
import copy
import inspect
import linecache
import pickle
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

import jurygraph as jg
from jurygraph import ConfigError, EvaluatorInput, Material, Response, TaskView, Verdict
from jurygraph.agents.functions import (
    REGISTERED_EVALUATORS,
    AdaptedSettings,
    CallableEvaluator,
    adapt_to_evaluator,
    source_version,
    to_evaluator_answer,
)
from jurygraph.agents.registry import load_evaluator
from jurygraph.schema import EvaluatorUse
from tests.rows import all_rows

VIEW = TaskView(id="t", query="How long?")
SHORT, LONG = Response(id="s", text="ab"), Response(id="l", text="abcdef")


@pytest.fixture(autouse=True)
def _restore_registry() -> Iterator[None]:
    before = dict(REGISTERED_EVALUATORS)
    REGISTERED_EVALUATORS.clear()
    yield
    REGISTERED_EVALUATORS.clear()
    REGISTERED_EVALUATORS.update(before)


def answer(made: CallableEvaluator, *responses: Response, material: tuple[Any, ...] = ()) -> Any:
    (question,) = made.questions(VIEW)
    result = made.answer(
        EvaluatorInput(question, VIEW, responses, material or ({},) * len(responses))
    )
    return asyncio.run(_await(result)) if inspect.isawaitable(result) else result


async def _await(result: Any) -> Any:
    return await result


def short(task: TaskView, response: Response) -> float:
    return 1.0 if len(response.text) < 4 else 0.0


@jg.evaluator(layer="check")
def capped(task: TaskView, response: Response, most: int = 3) -> float:
    return 1.0 if len(response.text) < most else 0.0


# The decorator


def test_a_decorated_function_is_pickled_by_its_path_and_another_one_with_its_state() -> None:
    config = pickle.loads(pickle.dumps(jg.Config(evaluators=[capped])))
    assert config.evaluators[0].target is capped
    renamed = pickle.loads(pickle.dumps(jg.evaluator(short, name="renamed")))
    assert (renamed.name, renamed.target) == ("renamed", short)
    with_params = copy.copy(capped)
    with_params.set_params({"most": 9})
    assert (answer(capped, LONG), answer(with_params, LONG)) == (0.0, 1.0)
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(with_params)


def test_a_bare_decorator_registers_the_function_by_its_name() -> None:
    @jg.evaluator
    def brief(task: TaskView, response: Response) -> float:
        return 0.25

    assert REGISTERED_EVALUATORS["brief"] is brief
    assert (brief.name, brief.layer, brief.scope, brief.audience) == (
        "brief",
        "check",
        "response",
        "task",
    )
    assert answer(brief, SHORT) == 0.25


def test_an_unnamed_function_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="has no name of its own"):
        jg.evaluator(partial(short))
    assert answer(jg.evaluator(partial(short), name="partly"), SHORT) == 1.0
    with pytest.raises(
        jg.InputError, match="evaluator: is an int; give a function, a Runnable or a compiled graph"
    ):
        jg.evaluator(5)


@all_rows(
    ("settings", "message"),
    [
        (
            {"uses_model": True},
            "uses_model: a function has no such setting; subclass jg.Evaluator, which has it",
        ),
        ({"layr": "check"}, "evaluator 'short', layr: unknown; did you mean layer?"),
        ({"zzz": 1}, "evaluator 'short', zzz: unknown; known here: version, layer, "),
        (
            {"layer": "nobody"},
            "evaluator 'short', layer: is the text 'nobody'; write 'fact', 'check', ",
        ),
        (
            {"scope": "nobody"},
            "evaluator 'short', scope: is the text 'nobody'; write 'response', 'pair' ",
        ),
        ({"needs": "words"}, "evaluator 'short', needs: is the text 'words'; write a list"),
        ({"samples": "two"}, "evaluator 'short', samples: is the text 'two'; write a whole number"),
        ({"name": 3}, "name: is an int; write text"),
        ({"version": 3}, "evaluator 'short', version: is the number 3; write text"),
        ({"needs": ["words", 5]}, "evaluator 'short', needs[1]: is the number 5; write text"),
    ],
)
def test_a_setting_that_a_function_cannot_have_is_refused_where_it_is_written(
    settings: Any, message: str
) -> None:
    with pytest.raises((ConfigError, jg.InputError)) as refused:
        jg.evaluator(**{"name": "short", **settings})(lambda task, response: 1.0)
    assert str(refused.value).startswith(message)
    assert "short" not in REGISTERED_EVALUATORS


def test_a_name_that_two_functions_share_is_refused() -> None:
    def other(task: TaskView, response: Response) -> float:
        return 0.0

    first, second = jg.evaluator(short, name="tone"), jg.evaluator(other, name="tone")
    assert REGISTERED_EVALUATORS["tone"] is None
    assert (answer(first, SHORT), answer(second, SHORT)) == (1.0, 0.0)
    with pytest.raises(
        ConfigError, match="several evaluators are registered as 'tone': write the path of one"
    ):
        load_evaluator(EvaluatorUse(use="tone"))
    jg.evaluator(short, name="tone")
    assert REGISTERED_EVALUATORS["tone"] is None, "the other one still has the name"


def test_defining_a_function_again_replaces_it() -> None:
    def define(score: float) -> None:
        @jg.evaluator(name="tone")
        def tone(task: TaskView, response: Response) -> float:
            return score

    define(0.1)
    define(0.9)
    assert answer(REGISTERED_EVALUATORS["tone"], SHORT) == 0.9


# Signatures


def no_response(task: TaskView) -> float:
    return 0.0


def three(task: TaskView, first: Response, second: Response) -> float:
    return 0.0


def named_only(*, task: TaskView, response: Response) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("function", "settings", "called_as"),
    [
        (no_response, {}, r"of scope response is called as \(task, response\)"),
        (no_response, {"scope": "group"}, r"of scope group is called as \(task, responses\)"),
        (short, {"scope": "pair"}, r"of scope pair is called as \(task, first, second\)"),
        (named_only, {}, "too many positional"),
        (
            short,
            {"needs": ("steps",)},
            "with steps as keywords: got an unexpected keyword argument 'steps'",
        ),
        (three, {"needs": ("first",)}, "multiple values for argument 'first'"),
    ],
)
def test_a_function_with_an_unsuitable_signature_is_refused(
    function: Callable[..., Any], settings: dict[str, Any], called_as: str
) -> None:
    with pytest.raises(ConfigError, match=called_as):
        adapt_to_evaluator(function, "mine", **settings)


# Params


def within(task: TaskView, response: Response, *, limit: int, unit: str = "characters") -> float:
    return float(len(response.text) <= limit)


def test_params_of_the_config_are_keywords_and_part_of_the_question() -> None:
    made = adapt_to_evaluator(within, "within")
    made.set_params({"limit": 3})
    assert made.questions(VIEW)[0].params == {"limit": 3}
    assert (answer(made, SHORT), answer(made, LONG)) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "missing a required (keyword-only )?argument: 'limit'"),
        ({"limit": 1, "unti": "words"}, "unexpected keyword argument 'unti'"),
        ({"limit": 1, "response": "x"}, "multiple values for argument 'response'"),
        ({"limit": "many"}, r"params\.limit: is the text 'many'; write a whole number"),
    ],
)
def test_params_that_do_not_fit_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        adapt_to_evaluator(within, "within").set_params(params)


def test_a_param_may_have_an_annotation_of_any_kind() -> None:
    def near(task: TaskView, response: Response, *, limits: [1, 2], weight: float) -> float:  # type: ignore[valid-type]
        return 1.0

    evaluator = adapt_to_evaluator(near, "near")
    evaluator.set_params({"limits": "x", "weight": 1})
    assert evaluator.params == {"limits": "x", "weight": 1}


# Arguments of functions


def test_a_pair_comes_as_two_responses_and_a_group_as_one_tuple() -> None:
    def pair(task: TaskView, first: Response, second: Response) -> float:
        return float(len(first.text) < len(second.text))

    def group(task: TaskView, responses: tuple[Response, ...]) -> list[float]:
        return [len(r.text) / 10 for r in responses]

    assert answer(adapt_to_evaluator(pair, "pair", scope="pair"), SHORT, LONG) == 1.0
    assert answer(adapt_to_evaluator(group, "group", scope="group"), SHORT, LONG) == [0.2, 0.6]


def test_needed_material_comes_by_name_one_for_each_response() -> None:
    steps = Material(name="steps", data=["1", "2"])

    def count_steps(task: TaskView, response: Response, steps: Material) -> Any:
        return steps.data

    def compare_steps(
        task: TaskView, first: Response, second: Response, steps: tuple[Material, Material]
    ) -> Any:
        return [one.data for one in steps]

    other = Material(name="steps", data=["3"])
    assert answer(
        adapt_to_evaluator(count_steps, "c", needs=["steps"]), SHORT, material=({"steps": steps},)
    ) == ["1", "2"]
    shown = answer(
        adapt_to_evaluator(compare_steps, "c", scope="pair", needs=["steps"]),
        SHORT,
        LONG,
        material=({"steps": steps}, {"steps": other}),
    )
    assert shown == [["1", "2"], ["3"]]


# Versions


def define_function(source: str) -> Callable[..., Any]:
    """A function whose source can be looked up."""
    name = f"<made {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


def test_the_version_changes_with_the_source_and_with_nothing_else() -> None:
    source = "def f(task, response):\n    return 0.5\n"
    versions = [
        source_version(define_function(text))
        for text in (source, source, source.replace("0.5", "0.6"))
    ]
    assert versions[0] == versions[1] != versions[2]
    assert adapt_to_evaluator(define_function(source), "f").version == versions[0]


# Models


@pytest.mark.parametrize(
    ("layer", "own_model", "uses_model"),
    [
        ("check", None, False),
        ("fact", None, False),
        ("human", None, False),
        ("model", None, True),
        ("residual", None, True),
        ("model", True, False),
        ("residual", True, False),
    ],
)
def test_a_function_uses_the_configs_model_unless_it_has_its_own(
    layer: Any, own_model: Any, uses_model: bool
) -> None:
    assert (
        adapt_to_evaluator(short, "short", layer=layer, own_model=own_model).uses_model
        is uses_model
    )


# Runnables and graphs


@pytest.mark.parametrize(
    "given",
    [
        0.5,
        Verdict(score=0.5),
        {"score": 0.5},
        {"verdict": 0.5},
        {"verdict": {"score": 0.5}, "score": 0.1},
    ],
    ids=["number", "verdict", "score", "verdict inside", "mapping inside"],
)
def test_a_runnable_gives_a_number_a_verdict_or_a_mapping(given: Any) -> None:
    read = answer(adapt_to_evaluator(RunnableLambda(lambda state: given), "r"), SHORT)
    assert (read.score if isinstance(read, Verdict) else read) == 0.5


@pytest.mark.parametrize("given", [{}, {"scroe": 1.0}])
def test_a_mapping_without_a_score_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="expected `verdict` or `score` in the result"):
        to_evaluator_answer(given)


def test_a_mapping_cannot_forge_the_identity_of_a_verdict() -> None:
    forged = {
        "score": 0.5,
        "reason": "kind",
        "question": "another",
        "about": "another",
        "layer": "human",
        "sample": 4,
    }
    assert to_evaluator_answer(forged) == Verdict(score=0.5, reason="kind")


class OneState(TypedDict, total=False):
    text: str
    score: float
    reason: str


class GroupState(TypedDict, total=False):
    responses: tuple[Response, ...]
    verdicts: list[Any]


def graph(state: type, work: Callable[[Any], dict[str, Any]]) -> Any:
    made = StateGraph(state)
    made.add_node("judge", work)
    made.add_edge(START, "judge")
    made.add_edge("judge", END)
    return made.compile()


def test_a_compiled_graph_judges_a_response() -> None:
    made = adapt_to_evaluator(
        graph(OneState, lambda state: {"score": len(state["text"]) / 10, "reason": "its length"}),
        "g",
    )
    assert answer(made, LONG) == Verdict(score=0.6, reason="its length")


def test_a_compiled_graph_judges_a_group_by_its_verdicts() -> None:
    def judge(state: GroupState) -> dict[str, Any]:
        return {"verdicts": [{"score": len(r.text) / 10} for r in state["responses"]]}

    judged = answer(adapt_to_evaluator(graph(GroupState, judge), "g", scope="group"), SHORT, LONG)
    assert judged == [Verdict(score=0.2), Verdict(score=0.6)]


def test_the_help_of_the_decorator_lists_every_setting() -> None:
    listed = re.findall(r"^    (\w+): ", inspect.getdoc(jg.evaluator) or "", re.MULTILINE)
    assert sorted(listed) == sorted(AdaptedSettings.model_fields)


def test_a_function_of_layer_model_that_abstains_says_how_to_declare_a_model_of_its_own() -> None:
    tone = adapt_to_evaluator(lambda task, response: 0.5, "tone", layer="model", version="1")
    assert tone.uses_model
    assert tone.no_model_message.endswith("if the function brings its own, declare own_model=True")
    assert not adapt_to_evaluator(
        lambda task, response: 0.5, "tone", layer="model", own_model=True, version="1"
    ).uses_model
