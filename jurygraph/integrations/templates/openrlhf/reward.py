"""The reward of OpenRLHF: `--remote_rm_url reward.py --prompt_data train.jsonl --input_key input --label_key label`."""

from functools import partial
from pathlib import Path

from jurygraph.integrations import openrlhf

HERE = Path(__file__).parent

# what is scored is stored, in a folder for each process: OpenRLHF has several, without a RANK
reward_func = partial(
    openrlhf.reward_func, config=HERE / "jury.yaml", record=HERE / "run" / "{pid}"
)
