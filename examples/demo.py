"""`make demo`: GSM8K solutions, group trips, rubrics with graphs, a reward that is gamed, and everything in one run.

No model is asked: in the last part a scripted judge stands in for one.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the scripted judge is a module of the examples

from examples.panel.scripted_judge import NAME, judging  # noqa: E402

RUN = HERE.parent / "demo-run" / "maths"
OTHER = HERE.parent / "demo-run" / "maths-without-steps"
TRIP = HERE.parent / "demo-run" / "trip"
RUBRIC = HERE.parent / "demo-run" / "rubric"
MONITOR = HERE.parent / "demo-run" / "monitor"
PANEL = HERE.parent / "demo-run" / "panel"
UNIFORM = HERE.parent / "demo-run" / "panel-uniform"
ADVERSE = 1
"""How `watch` ends where it found what should worry."""
COMMAND = str(Path(sys.executable).with_name("jurygraph"))


def main() -> int:
    for folder in (RUN, OTHER, TRIP, RUBRIC, MONITOR, PANEL, UNIFORM):
        shutil.rmtree(folder, ignore_errors=True)
    status = maths() or trip() or rubric() or monitor() or panel()
    if status == 0:
        print(
            "\nWhere to look next:"
            f"\n  .venv/bin/jurygraph show {shown(RUN)}                        all rewards"
            f"\n  .venv/bin/jurygraph export {shown(RUN)} --to csv             as a table"
            "\n  examples/maths/jury.yaml                                change a weight, and re-score or score again"
            f"\n  .venv/bin/jurygraph show {shown(TRIP)} --response travelplanner-train-21/cuisine-dropped"
            f"\n  .venv/bin/jurygraph explain {shown(PANEL)} --response sandhaven/talkative"
            f"\n  .venv/bin/jurygraph graph --run {shown(RUBRIC)} --response writingbench-366/hollow -o graph.svg"
            "\n  .venv/bin/jurygraph init my-jury                        a small project of your own"
            "\n  README.md                                               how to write an evaluator in ten lines"
        )
    return status


def maths() -> int:
    """Solutions to maths problems: accuracy, arithmetic, steps."""
    tasks, config = HERE / "maths" / "tasks.jsonl", HERE / "maths" / "jury.yaml"
    run, other = shown(RUN), shown(OTHER)
    status = jurygraph("score", shown(tasks), "--config", shown(config), "--out", run)
    if status != 0:
        return status
    right, wrong = pick_two(traces())
    print(f"\nA wrong solution, and the calculation at which it went wrong ({wrong}):")
    jurygraph("explain", run, "--response", wrong)
    print(f"\nA right solution to the same problem, with every term and verdict ({right}):")
    jurygraph("show", run, "--response", right)
    print("\nThe run proves itself; other weights need no new judgement, and the two compare:")
    jurygraph("verify", run, "--deep")
    jurygraph("rescore", run, "--out", other, "--set", "reward.steps=0")
    return jurygraph("compare", run, other, "--flips", "0")


def trip() -> int:
    """Plans for group trips: facts, checks, and travellers of whom some are harder to please."""
    folder = HERE / "group_trip"
    tasks, config = shown(folder / "tasks.jsonl.gz"), shown(folder / "jury.yaml")
    status = jurygraph("score", tasks, "--config", config, "--out", shown(TRIP))
    if status == 0:
        print("\nWho pays for each fault, under calibrated and under uniform weights:", flush=True)
        status = subprocess.run([sys.executable, folder / "faults.py", TRIP], cwd=HERE.parent, check=False).returncode
    return status


def rubric() -> int:
    """Writing tasks whose rubrics have graphs: credit that is met and not earned."""
    folder = HERE / "rubric"
    tasks, config = shown(folder / "tasks.jsonl.gz"), shown(folder / "read.yaml")
    status = jurygraph("score", tasks, "--config", config, "--out", shown(RUBRIC))
    if status == 0:
        print("\nWhat each rule lets through of credit that was not earned, and what it takes of credit that was:")
        status = jurygraph("study", "credit", shown(RUBRIC))
    return status


def monitor() -> int:
    """A training run whose policy learns to game the reward from step 31 on: longer and longer, well formed, wrong."""
    folder = HERE / "monitor"
    tasks, config = shown(folder / "tasks.jsonl.gz"), shown(folder / "jury.yaml")
    status = jurygraph("score", tasks, "--config", config, "--out", shown(MONITOR))
    if status == 0:
        print("\nA reward hack was planted at step 31. What the monitor makes of it:")
        status = 0 if jurygraph("watch", shown(MONITOR), "--step-label", "step") == ADVERSE else 1
    return status


def panel() -> int:
    """Everything in one run: travellers, a rubric's graph, specialists, reviewers' judges and their consensus."""
    tasks, run, uniform = shown(HERE / "panel" / "tasks.jsonl"), shown(PANEL), shown(UNIFORM)
    print("\nEverything in one run. The judge is scripted: it is no model, and answers by words in a list.")
    with judging() as url:
        status = jurygraph("score", tasks, "--out", run, "--model", f"openai-compatible:{url}#{NAME}")
    if status == 0:
        print("\nThe judge is gone. One answer, with what every family made of it:")
        jurygraph("explain", run, "--response", "sandhaven/inventive")
        print("\nThe run proves itself, and another recipe asks nobody:")
        jurygraph("verify", run, "--deep")
        status = jurygraph("rescore", run, "--out", uniform, "--set", "weights.method=uniform")
    return status


def jurygraph(*arguments: str) -> int:
    """Run a command as a user would type it, and show it."""
    print(f"\n$ jurygraph {' '.join(arguments)}", flush=True)
    return subprocess.run([COMMAND, *arguments], cwd=HERE.parent, check=False).returncode


def shown(path: Path) -> str:
    return str(path.relative_to(HERE.parent))


def traces() -> list[dict[str, Any]]:
    """The run's traces, as `export --to jsonl` gives them."""
    command = [COMMAND, "export", shown(RUN), "--to", "jsonl"]
    lines = subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def pick_two(found: list[dict[str, Any]]) -> tuple[str, str]:
    """A right solution, and a wrong one of the same problem of which a calculation is quoted as wrong."""
    right = {t["task_id"]: t["response_id"] for t in found if t["reward"]["components"]["accuracy"] == 1.0}
    wrong = next(t for t in found if goes_wrong(t) and t["task_id"] in right)
    return right[wrong["task_id"]], wrong["response_id"]


def goes_wrong(trace: dict[str, Any]) -> bool:
    quoted = any(v["evaluator"] == "maths.calculation" and v["evidence"] for v in trace["verdicts"])
    return bool(trace["reward"]["components"]["accuracy"] == 0.0 and quoted)


if __name__ == "__main__":
    sys.exit(main())
