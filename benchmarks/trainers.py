"""How fast TRL's reward function is against `score_many` on the same responses, which rules judge."""

import asyncio
from collections.abc import Iterator
from typing import Any

import jurygraph as jg
from benchmarks.figure import Figure, at_least, best_of
from jurygraph.integrations.trl import reward_function

GROUPS = 64
MEMBERS = 8
CONFIG: dict[str, Any] = {
    "evaluators": ["maths.accuracy", "maths.format", "maths.repetition"],
    "reward": {"accuracy": 1.0, "format": 0.5, "repetition": -0.2},
}
SHARE = 0.8


def make_samples() -> tuple[list[str], list[str], list[str]]:
    """Return prompts, completions and references as a trainer has them: group after group."""
    prompts = []
    completions = []
    references = []
    for group in range(GROUPS):
        for member in range(MEMBERS):
            steps = f"1. {group} + {member} is what it says. 2. So it is done."
            answer = group + member % 3
            prompts.append(f"What is {group} + 1?")
            completions.append(f"<think>{steps}</think><answer>{answer}</answer>")
            references.append(str(group + 1))
    return prompts, completions, references


def measure() -> Iterator[Figure]:
    prompts, completions, references = make_samples()
    items = []
    for first in range(0, len(prompts), MEMBERS):
        task = jg.Task(id=f"t{first}", query=prompts[first], reference=references[first])
        items.append((task, completions[first : first + MEMBERS]))
    function = reward_function(CONFIG, reference="reference")

    def call_function() -> list[float | None]:
        columns = {"reference": references}
        return asyncio.run(_call(function, prompts, completions, columns))

    with jg.Jury.from_config(CONFIG) as jury:
        direct = best_of(lambda: list(jury.score_many(items)), 5, 1)
        through = best_of(call_function, 5, 1)
    function.close()
    size = len(prompts)
    yield Figure("responses a second, score_many", size / direct, "1/s of CPU")
    yield at_least("TRL's reward function, against score_many", direct / through, "×", SHARE)


async def _call(
    function: Any, prompts: list[str], completions: list[str], columns: dict[str, Any]
) -> list[float | None]:
    rewards: list[float | None] = await function(
        prompts=prompts, completions=completions, **columns
    )
    return rewards
