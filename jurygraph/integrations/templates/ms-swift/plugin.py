"""`swift rlhf --external_plugins plugin.py --reward_funcs jurygraph`; a failed row gets its group's mean."""

from pathlib import Path
from typing import Any

from swift.rewards import AsyncORM, orms

from jurygraph.integrations.trl import reward_function

reward = reward_function(
    Path(__file__).parent / "jury.yaml", reference="reference", failed="neutral"
)


class JuryReward(AsyncORM):
    async def __call__(self, completions: list[str], **columns: Any) -> list[float | None]:
        prompts = [messages[:-1] for messages in columns.pop("messages")]
        return await reward(prompts=prompts, completions=completions, **columns)


orms["jurygraph"] = JuryReward
