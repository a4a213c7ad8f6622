"""The lines of `jurygraph show --response` on an evaluator that makes several calls."""

import re
from pathlib import Path

from jurygraph.cli.render.trace import format_trace_lines
from jurygraph.runs.run import Run
from jurygraph.testing import ScriptedJudge
from jurygraph.views.trace import build_trace_view
from tests.graphs.test_evaluator_calls import GROUPS, REPAIRED, config
from tests.runs.sample_runs import scored_session, task_line, write_tasks


def test_the_steps_of_a_graph_and_the_purposes_of_its_calls_are_shown(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, [task_line(GROUPS[0].task, GROUPS[0].responses)])
    with scored_session(tmp_path / "run", tasks, config("graph"), model=ScriptedJudge(REPAIRED)):
        pass
    with Run.open(tmp_path / "run") as run:
        shown = "\n".join(format_trace_lines(build_trace_view(run.explain("ann/a"))))
    seconds = r"\d\.\d\d s"
    assert re.search(
        f"      steps: promise {seconds}, summarise {seconds}, mark {seconds}\n", shown
    )
    assert "      4 calls: promise, summarise, mark, repair\n" in shown
