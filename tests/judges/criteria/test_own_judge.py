"""A judge of one's own: what it needs of its prompt, and what its version hangs on."""

import pytest

import jurygraph as jg
from jurygraph.agents.functions import source_version
from jurygraph.errors import ConfigError
from jurygraph.prompts import parse_prompt
from jurygraph.testing import ScriptedJudge

FRONT = 'id: own\nversion: "3"\npurpose: p\nvariables: []\n'
PROMPT = parse_prompt(f"---\n{FRONT}extends: items\n---\n## user\nRead.\n")


class Kind(jg.JudgeEvaluator):
    prompt = PROMPT

    def item(self, inputs: jg.EvaluatorInput) -> jg.Item:
        return jg.Item("It is kind.", jg.Binary())


class Versioned(Kind):
    version = "5"


class Blind(Kind):
    prompt = parse_prompt(f"---\n{FRONT}extends: judge\n---\n## user\nRead.\n")


def test_the_version_combines_those_of_module_and_prompt() -> None:
    assert Kind().version == f"{source_version(Kind)} prompt 3 in items 2 in judge 1"
    assert Versioned().version == "5 prompt 3 in items 2 in judge 1"


def test_a_prompt_that_shows_no_items_is_refused() -> None:
    with pytest.raises(ConfigError, match="prompt 'own' shows no items; write `extends: items`"):
        Blind()


class Reading(Kind):
    prompt = parse_prompt(
        f"---\n{FRONT.replace('[]', '[passages]')}extends: items\n---\n## user\nRead.\n\n"
        '{{ passages | fenced("passage") }}\n'
    )


def test_passages_that_are_fenced_as_one_text_are_refused_with_the_line_and_what_to_write() -> None:
    task = jg.Task(id="t", query="q", context=["A passage."])
    with jg.Jury(model=ScriptedJudge({"kind": True}), evaluators=[Reading()]) as jury:
        (trace,) = jury.score(task, ["An answer."])
    assert trace.verdicts[0].reason.startswith(
        "prompt 'own', line 3 of its section ## user: `fenced('passage')` gets a tuple, not a text; "
        "write `{% for name, text in passages %}`"
    )
