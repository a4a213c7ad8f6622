"""verl's own functions give the advantages of `conformance`, and its calls reach the reward function.

Needs the files of verl and torch, since verl itself needs ray: `pip install --no-deps verl torch`, then `-m heavy`.
"""

import ast
import importlib.util
import inspect
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest

from jurygraph.arrays import Floats
from jurygraph.integrations.verl import compute_score
from tests.integrations.trainer_arithmetic import unmasked_advantages

pytestmark = pytest.mark.heavy
REWARDS = [np.array([[0.2], [0.9], [0.64], [0.4]]), np.array([[0.1], [0.5], [0.3], [0.8]])]


def read_function(module: str, name: str, **names: Any) -> Callable[..., Any]:
    """Return a function of verl from its file, without its decorators and the imports of its module."""
    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs the files of verl: pip install --no-deps verl")
    path = Path(found.submodule_search_locations[0]) / module
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    function.decorator_list = []
    exec(compile(ast.Module([function], []), str(path), "exec"), names)
    result: Callable[..., Any] = names[name]
    return result


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("grpo", {"norm_adv_by_std_in_grpo": True}, unmasked_advantages(REWARDS, "std", 1e-6)),
        ("grpo", {"norm_adv_by_std_in_grpo": False}, unmasked_advantages(REWARDS, "none")),
        ("rloo", {}, unmasked_advantages(REWARDS, "leave-one-out")),
    ],
)
def test_its_advantages_are_those_of_the_table(
    name: str, settings: dict[str, Any], expected: list[Floats]
) -> None:
    torch = pytest.importorskip("torch", reason="needs torch: pip install torch")
    compute = read_function(
        "trainer/ppo/core_algos.py",
        f"compute_{name}_outcome_advantage",
        torch=torch,
        np=np,
        defaultdict=defaultdict,
        Optional=Optional,
        AlgoConfig=Any,
    )
    rewards = torch.tensor(np.concatenate(REWARDS))
    prompts = np.array(["a"] * 4 + ["b"] * 4, dtype=object)
    got, _ = compute(rewards, torch.ones_like(rewards), prompts, **settings)
    assert got[:, 0].numpy() == pytest.approx(np.concatenate(expected), abs=1e-9)


def test_it_takes_the_function_with_its_reward_kwargs_for_asynchronous() -> None:
    call = read_function("trainer/ppo/reward.py", "_call_with_kwargs_async")
    wrapped = partial(call, compute_score, {"config": "jury.yaml"})
    assert inspect.iscoroutinefunction(wrapped)
    inspect.signature(compute_score).bind(
        data_source="x", solution_str="x", ground_truth="4", extra_info={}, config="jury.yaml"
    )
