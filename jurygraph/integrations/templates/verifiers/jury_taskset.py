"""A taskset with the tasks of tasks.jsonl, whose ids come back with the rewards, judged by jury_judge.py.

In this folder, with the server of a policy (without --client.base-url it is Prime Intellect's):

    PYTHONPATH=. vf-eval jury_taskset --model NAME --client.base-url http://127.0.0.1:8000/v1 --no-push \
        --env.agent.harness.id null --env.agent.runtime.type subprocess
"""

import json
from pathlib import Path

import verifiers.v1 as vf

HERE = Path(__file__).parent


class JuryTaskData(vf.TaskData):
    reference: str | None = None


class JuryTask(vf.Task[JuryTaskData]):
    pass


class JuryTasksetConfig(vf.TasksetConfig):
    task: vf.TaskConfig = vf.TaskConfig(judges=[{"id": "jury_judge"}])


class JuryTaskset(vf.Taskset[JuryTask, JuryTasksetConfig]):
    def load(self) -> list[JuryTask]:
        lines = (HERE / "tasks.jsonl").read_text("utf-8").splitlines()
        return [self.make_task(json.loads(line)) for line in lines]

    def make_task(self, row: dict[str, str]) -> JuryTask:
        data = JuryTaskData(id=row["id"], prompt=row["query"], reference=row.get("reference"))
        return JuryTask(data, self.config.task)


__all__ = ["JuryTaskset"]
