"""Rewards for OpenRLHF: the function of a Python file that `--remote_rm_url` names.

    from functools import partial
    from jurygraph.integrations import openrlhf

    reward_func = partial(openrlhf.reward_func, config="jury.yaml")

OpenRLHF (0.11.2, agent.py) calls it in a thread, one sample a call, and takes a missing reward for that of a reward
model, which ends the run. A reward that failed is therefore an error, which it logs before it ends. The server speaks
its HTTP protocol, too: `--remote_rm_url http://HOST:PORT/get_reward` needs no code.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jurygraph.concurrency import gather_all
from jurygraph.errors import InputError
from jurygraph.integrations.lazy_jury import find_shared_jury
from jurygraph.integrations.samples import read_label_fields, read_response, read_task
from jurygraph.integrations.single_samples import judge_sample, read_components
from jurygraph.schema import Response, Task

_FIELDS_HINT = "a label is the reference, or the JSON of an object with `reference` or `rubric`"


def reward_func(
    queries: Sequence[str],
    prompts: Sequence[str],
    labels: Sequence[Any],
    *,
    config: str | Path = "jury.yaml",
    record: str | Path | None = None,
    failed: str | float = "auto",
) -> dict[str, Any]:
    """Return `rewards`, the same as `scores`, and the components as `extra_logs`, of queries that follow their prompts.

    A label is the reference of its prompt, or a JSON object with parts of the task, such as `id` and `rubric`. `failed`
    is `raise` (`auto`) or a number. Raises `NoRewardError` for a failed reward, `InputError` for wrong samples.
    """
    if not len(queries) == len(prompts) == len(labels) or not queries:
        counts = f"{len(queries)} queries, {len(prompts)} prompts and {len(labels)} labels"
        raise InputError(f"there are {counts}; give each sample one of each")
    jury = find_shared_jury(config, record)
    samples = [read_sample(*sample) for sample in zip(queries, prompts, labels, strict=True)]

    opened_jury = jury.open()
    judged = opened_jury.run(
        gather_all(judge_sample(jury, *sample, failed, _FIELDS_HINT) for sample in samples)
    )
    rewards = [value for _, value in judged]
    rows = [read_components(opened_jury, trace) for trace, _ in judged]
    logged_values = {name: [row[name] for row in rows] for name in rows[0]}
    return {"rewards": rewards, "scores": rewards, "extra_logs": logged_values}


def read_sample(query: str, prompt: str, label: Any) -> tuple[Task, Response]:
    """Return the task and the response of a query, which begins with its prompt. Raises `InputError` if it does not."""
    if not query.startswith(prompt):
        problem = "a query does not begin with its prompt, so that the response cannot be told"
        raise InputError(f"{problem}; decode both with the same special tokens")
    parts = read_label_fields(label)
    return read_task(parts.pop("query", prompt), parts), read_response(query[len(prompt) :])
