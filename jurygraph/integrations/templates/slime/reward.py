"""`--group-rm --custom-rm-path reward.score_group`: slime hands over whole groups, so that no server is needed."""

from pathlib import Path
from typing import Any

import jurygraph as jg
from jurygraph.integrations.failed_rewards import fill_failed
from jurygraph.integrations.lazy_jury import LazyJury
from jurygraph.integrations.samples import read_response, read_task

jury = LazyJury(Path(__file__).parent / "jury.yaml")


async def score_group(args: Any, samples: list[Any], **settings: Any) -> list[float | None]:
    task = read_task(samples[0].prompt, {"reference": samples[0].label})
    group = jg.Group(task, [read_response(sample.response) for sample in samples])
    (traces,) = await jury.score([group])
    return fill_failed([trace.reward.value for trace in traces], "neutral").values
