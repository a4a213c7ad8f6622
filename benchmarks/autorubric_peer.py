"""The same questions by autorubric, run by a Python that has it: prints its seconds of CPU a question of each file.

python autorubric_peer.py URL IN_FLIGHT ROUNDS TASKS...
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else litellm fetches it

from autorubric import LLMConfig, Rubric
from autorubric.graders import CriterionGrader


async def measure_grading(url: str, tasks: list[dict[str, Any]], in_flight: int) -> float:
    """Return the seconds of CPU a question, of each criterion about each response, with a new cache."""
    model = LLMConfig(
        model="hosted_vllm/tiny",
        api_base=url,
        api_key="none",
        temperature=0.0,
        max_retries=0,
        cache_enabled=True,
        cache_dir=tempfile.mkdtemp(dir=Path(sys.executable).parent),
    )
    grader = CriterionGrader(judge_model_config=model)
    gradings = [
        (
            Rubric.from_dict(
                [
                    {"weight": c["weight"], "requirement": c["text"]}
                    for c in task["rubric"]["criteria"]
                ]
            ),
            task,
            one,
        )
        for task in tasks
        for one in task["responses"]
    ]
    remaining = iter(gradings)

    async def grade_remaining() -> None:
        for rubric, task, one in remaining:
            report = await rubric.grade(to_grade=one["text"], grader=grader, query=task["query"])
            assert report.score == 1.0, report

    start = process_time()
    await asyncio.gather(*(grade_remaining() for _ in range(in_flight)))
    return (process_time() - start) / sum(
        len(task["rubric"]["criteria"]) for _, task, _ in gradings
    )


if __name__ == "__main__":
    url, in_flight, rounds, *files = sys.argv[1:]
    best = []
    for file in files:
        tasks = [json.loads(line) for line in Path(file).read_text().splitlines()]
        best.append(
            min(
                asyncio.run(measure_grading(url, tasks, int(in_flight))) for _ in range(int(rounds))
            )
        )
    print(*best)
