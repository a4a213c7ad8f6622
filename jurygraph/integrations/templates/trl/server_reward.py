"""The reward by a server, for `reward_funcs=server_reward`: ranks may have parts of a group, or plans be made before.

First `jurygraph serve --config jury.yaml --out run`. A failed reward is null there: its row is left out, where TRL has
no other function, else start the server with `--failed neutral`.
"""

import asyncio
from typing import Any

from jurygraph.integrations.client import RewardClient

GENERATIONS = 8  # as num_generations: the server waits for so many samples of a prompt
client = RewardClient("http://127.0.0.1:7577")


async def server_reward(
    prompts: list[Any],
    completions: list[Any],
    task_id: list[str],
    reference: list[str | None],
    trainer_state: Any,
    **columns: Any,
) -> list[float | None]:
    async def ask(index: int) -> float | None:
        # with `--tasks plans.jsonl`: task_id=task_id[index] alone, in place of task
        task = {"id": task_id[index], "query": prompts[index], "reference": reference[index]}
        reply = await client.score(
            [completions[index][-1]["content"]],  # of chats; of texts: completions[index]
            task=task,
            step=trainer_state.global_step + 1,  # in an evaluation give policy="eval", too
            cohort_size=GENERATIONS,
        )
        return reply.rewards[0]

    return await asyncio.gather(*map(ask, range(len(prompts))))
