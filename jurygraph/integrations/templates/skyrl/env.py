"""An environment of SkyRL: `skyrl_gym.envs.register(id="jury", entry_point="env:JuryEnv")`."""

import json
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv

from jurygraph.integrations.client import RewardClient

# of `jurygraph serve --config jury.yaml --failed neutral`
client = RewardClient("http://127.0.0.1:7577")


class JuryEnv(BaseTextEnv):
    def __init__(self, env_config: Any, extras: dict[str, Any]) -> None:
        super().__init__()
        self.task = json.loads(extras["task"])  # a line of tasks.jsonl
        self.size = int(extras["n"])  # samples of a prompt

    def step(self, action: str) -> dict[str, Any]:
        # the server answers 503 where it has no reward, which is an error here
        (reward,) = client.score_blocking([action], task=self.task, cohort_size=self.size).rewards
        return {"observations": [], "reward": reward, "done": True, "metadata": {}}
