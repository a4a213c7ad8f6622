"""A judge for verifiers: install this file, and plug it in by `--env.taskset.task.judges '[{"id": "jury_judge"}]'`."""

from pathlib import Path

import verifiers.v1 as vf

from jurygraph.integrations.verifiers import JuryJudge

HERE = Path(__file__).parent


class Jury(JuryJudge, vf.Judge):
    jury = HERE / "jury.yaml"
    reference = "reference"  # the field of the task's data that has the right answer


__all__ = ["Jury"]
