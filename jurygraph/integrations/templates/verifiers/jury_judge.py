"""A judge for verifiers. Taskset jury_taskset.py has it; plug it into another by
`--env.taskset.task.judges '[{"id": "jury_judge"}]'`, with this folder in PYTHONPATH."""

from pathlib import Path

import verifiers.v1 as vf

from jurygraph.integrations.verifiers import JuryJudge

HERE = Path(__file__).parent


class Jury(JuryJudge, vf.Judge):
    jury = HERE / "jury.yaml"
    reference = "reference"  # the field of the task's data that has the right answer
    record = HERE / "run"  # what is scored is stored: `jurygraph show run`, and `explain`


__all__ = ["Jury"]
