"""The maths example under MACRM's recipes: four models' real solutions rank as they are known to be right."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from jurygraph import Group, Jury, Trace
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "maths"
ALL = ROOT / "tests" / "data" / "gsm8k_solutions.jsonl.gz"
RULES = ["macrm-vanilla-2", "macrm-vanilla-3", "macrm-vanilla-4", "macrm-multi-head"]


def scored(recipe: Path | Mapping[str, Any], tasks: Path) -> tuple[list[Trace], dict[str, float]]:
    """The traces of all solutions, and how often each agent's are labelled right."""
    work = list(read_tasks(tasks))
    labels = defaultdict(list)
    for _, responses in work:
        for response in responses:
            labels[str(response.agent)].append(float(bool(response.metadata["is_correct"])))

    async def score(jury: Jury) -> list[Trace]:
        groups = [Group(task, responses, await jury.aprepare(task)) for task, responses in work]
        return [trace async for traces in jury.ascore_many(groups) for trace in traces]

    with Jury.from_config(recipe) as jury:
        return asyncio.run(score(jury)), {agent: fmean(own) for agent, own in labels.items()}


def refuse_other_ranks(traces: list[Trace], known: Mapping[str, float]) -> None:
    rewards = defaultdict(list)
    for trace in traces:
        assert trace.reward.status == "ok"
        assert trace.reward.value is not None
        rewards[str(trace.agent)].append(trace.reward.value)
    means = {agent: fmean(own) for agent, own in rewards.items()}
    assert len(means) == 4
    for one, other in combinations(sorted(known), 2):
        if known[one] != known[other]:
            assert (means[one] < means[other]) == (known[one] < known[other]), (means, known)


@pytest.mark.exhaustive
def test_the_example_has_every_component_that_needs_no_model_and_ranks_the_models_as_they_are_right() -> None:
    traces, known = scored(EXAMPLE / "macrm.yaml", EXAMPLE / "tasks.jsonl")
    refuse_other_ranks(traces, known)
    counted = {term.name for term in traces[0].reward.terms if term.weight}
    assert counted == {
        "accuracy", "format", "steps", "repetition", "concise", "sound", "enhanced", "efficient", "diverse",
    }  # fmt: skip
    changed = {change.name for trace in traces for change in trace.reward.adjustments}
    assert changed == {"precision gate", "repetition gate"}
    made = [trace for trace in traces if trace.material[0].variants]
    assert len(made) == round(sum(known.values()) * 100), "each right solution has contrasts, and no wrong one has"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*RULES, "the example"])
def test_over_all_problems_every_recipe_ranks_the_models_as_they_are_right(name: str) -> None:
    refuse_other_ranks(*scored(EXAMPLE / "macrm.yaml" if name == "the example" else {"preset": name}, ALL))
