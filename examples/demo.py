"""`make demo`: ten examples in a few lines each. The whole output of every command is kept in `demo-run/*.txt`.

No model is needed: in one example a scripted judge stands in for one, in another the recorded replies of a small one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the scripted judge is a module of the examples

from examples.panel.scripted_judge import NAME, judging  # noqa: E402

OUT = ROOT / "demo-run"
MOST_ROWS = 8
ADVERSE = 1
"""Exit code of `watch` if it has found something adverse."""
SOME_FAILED = 1
"""Exit code of `score` if some rewards have no value."""
CONSOLE = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


class Example:
    """One example: its commands, and what is printed of their output. The whole output goes to `demo-run/NAME.txt`."""

    def __init__(self, name: str, purpose: str) -> None:
        self.run = f"demo-run/{name}"
        self._log = OUT / f"{name}.txt"
        self._log.write_text("", encoding="utf-8")
        CONSOLE.print(f"\n{name}: {purpose}")

    def jurygraph(self, *arguments: str, expected: int = 0) -> str:
        """Run a command as a user would type it, and return its standard output."""
        return self.execute(
            ["jurygraph", *arguments],
            [str(Path(sys.executable).with_name("jurygraph")), *arguments],
            expected,
        )

    def execute(self, shown: list[str], command: list[str], expected: int = 0) -> str:
        """Run a command, append it and its output to the log, and return its standard output; exit if it fails."""
        line = f"$ {' '.join(shown)}"
        with CONSOLE.status(line):
            done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n{done.stderr}{done.stdout}\n")
        if done.returncode != expected:
            sys.exit(
                f"{line}\n{done.stderr}exit code {done.returncode}; everything so far: {self._log}"
            )
        return done.stdout

    def score(self, tasks: str, *options: str) -> None:
        """Score the tasks, and print the mean reward of every agent and the number of verdicts."""
        output = self.jurygraph("score", f"examples/{tasks}", *options, "--out", self.run)
        self.print_table(output, "agent")
        CONSOLE.print(f"  {find_line(output, '^verdicts: .*requested$')}")
        CONSOLE.print(f"  {find_line(output, '^highest possible reward')}")
        if self.run.endswith("maths"):  # the first table says what its words mean
            CONSOLE.print(f"  {find_line(output, '^coverage:')}")

    def print_table(self, output: str, first_word: str) -> None:
        """Print the first rows of the table whose header begins with this word."""
        for row in read_table(output, first_word)[: 2 + MOST_ROWS]:
            CONSOLE.print(f"  {row}", no_wrap=True, overflow="crop")

    def print_finding(self, *lines: str) -> None:
        """Print what the example shows."""
        for line in lines:
            CONSOLE.print(f"  → {line}")


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    # The judge's address is new each time: its replies would only fill the user's cache.
    os.environ["JURYGRAPH_CACHE"] = str(OUT / "cache")
    wrong = maths()
    agent()
    trip()
    rubric()
    monitor()
    panel()
    real_judge()
    judge_labels()
    reviewers()
    stability()
    print("\nThe whole output of each example: demo-run/*.txt")
    print(
        "\nThree things to try (after `source .venv/bin/activate`):"
        f"\n  jurygraph explain demo-run/maths --response {wrong} --what-if"
        "\n      what would have raised this reward"
        "\n  jurygraph rescore demo-run/maths --out demo-run/other --set reward.steps=2"
        "\n      the same verdicts under another weight; nothing is judged again"
        "\n  jurygraph init my-jury"
        "\n      a small project of your own; README.md goes on from there"
    )


def maths() -> str:
    """Score solutions to maths problems; return a wrong solution."""
    example = Example(
        "maths", "400 solutions to GSM8K problems, graded by their answer, arithmetic and form."
    )
    example.score("maths/tasks.jsonl", "--config", "examples/maths/jury.yaml")
    traces = f"{example.run}.jsonl"
    example.jurygraph("export", example.run, "--to", "jsonl", "-o", traces)
    right, wrong = pick_two(
        [json.loads(line) for line in (ROOT / traces).read_text(encoding="utf-8").splitlines()]
    )
    example.jurygraph("show", example.run, "--response", right)
    explained = example.jurygraph("explain", example.run, "--response", wrong)
    verified = example.jurygraph("verify", example.run, "--deep")
    other = f"{example.run}-without-steps"
    example.jurygraph("rescore", example.run, "--out", other, "--set", "reward.steps=0")
    example.jurygraph("compare", example.run, other)
    patterns = ("gets", "^Lost .*: accuracy", "calculation .* is wrong")
    example.print_finding(
        *(find_line(explained, each) for each in patterns), find_line(verified, "recomputed")
    )
    return wrong


def agent() -> None:
    """Score an agent's conversations by what it called, and print how well each check predicts the outcome."""
    example = Example(
        "agent", "100 conversations of GPT-4o with tools (tau-bench, airline), judged by code."
    )
    files = ["examples/agent/tasks.jsonl.gz", "--config", "examples/agent/jury.yaml"]
    example.jurygraph("score", *files, "--out", example.run)
    labels = ["--labels", "examples/agent/outcomes.csv", "--json"]
    study = json.loads(example.jurygraph("study", "judge", example.run, *labels))
    accuracy = {judge["question"]: judge["accuracy"] for judge in study["judges"]}
    found = "; ".join(f"{name} {share['value']:.0%}" for name, share in accuracy.items())
    example.print_finding(f"right about the published outcome of 100: {found}")


def trip() -> None:
    """Score plans for group trips, and print for one of them who pays for a fault."""
    example = Example(
        "trip", "plans for ten group trips; in each but the reference one fault was planted."
    )
    example.score("group_trip/tasks.jsonl.gz", "--config", "examples/group_trip/jury.yaml")
    script = ["examples/group_trip/faults.py", example.run]
    faults = example.execute(["python", *script], [sys.executable, *script])
    fault = re.split(r"  +", find_line(faults, "cuisine-dropped"))
    example.print_finding(f"the reward names who pays for a fault: {fault[0]}: {fault[-1]}")


def rubric() -> None:
    """Score writing tasks with rubric graphs, and print what each rule lets through of unearned credit."""
    example = Example(
        "rubric",
        "texts that meet criteria without what these depend on, under rubrics with graphs.",
    )
    example.score("rubric/tasks.jsonl.gz", "--config", "examples/rubric/read.yaml")
    credit = example.jurygraph("study", "credit", example.run)
    shares = {words[0]: float(words[1]) for words in map(str.split, read_table(credit, "rule")[2:])}
    flat, gear = shares["flat"], shares["gear"]
    example.print_finding(
        f"unearned credit falls from {flat:.1%} of the rubric's weight (flat mean) to {gear:.1%} (gear)"
    )


def monitor() -> None:
    """Score a training run whose policy learns to game the reward: longer and longer, well formed, wrong."""
    example = Example(
        "monitor",
        "1,680 responses of a training run whose policy games the reward from step 31 on.",
    )
    example.score("monitor/tasks.jsonl.gz", "--config", "examples/monitor/jury.yaml")
    watched = example.jurygraph("watch", example.run, "--step-label", "step", expected=ADVERSE)
    example.print_finding(find_line(watched, "looks hacked"))


def panel() -> None:
    """Score with everything at once: travellers, a rubric's graph, specialists, reviewers' judges, their consensus."""
    example = Example(
        "panel", "everything in one run; the judge is a script that answers by a list of words."
    )
    with judging() as url:
        example.score("panel/tasks.jsonl", "--model", f"openai-compatible:{url}#{NAME}")
    explained = example.jurygraph("explain", example.run, "--response", "sandhaven/inventive")
    verified = example.jurygraph("verify", example.run, "--deep")
    example.jurygraph(
        "rescore", example.run, "--out", f"{example.run}-uniform", "--set", "weights.method=uniform"
    )
    patterns = ("gets", "step 2 of 5")
    example.print_finding(
        *(find_line(explained, each) for each in patterns), find_line(verified, "recomputed")
    )


def real_judge() -> None:
    """Replay what a small model said of pairs, beside people."""
    example = Example(
        "real_judge", "pairs of responses, judged by a model of 135 million parameters, recorded."
    )
    config = ["--config", "examples/real_judge/jury.yaml"]
    model = ["--model", "replay:examples/real_judge/calls.jsonl.gz"]
    example.jurygraph(
        "score", "examples/real_judge/tasks.jsonl.gz", *config, *model, "--out", example.run
    )
    script = ["examples/real_judge/summary.py"]
    figures = example.execute(["python", *script], [sys.executable, *script])
    agreed, constant = (
        " ".join(find_line(figures, pattern).split())
        for pattern in ("judge, in both orders", "^  always")
    )
    example.print_finding(
        " ".join(find_line(figures, "shown first").split()),
        f"agrees with people: {agreed}; {constant}",
    )


def judge_labels() -> None:
    """Measure PandaLM's two published judges, and the recorded one of `real_judge`, by what people say."""
    example = Example(
        "judge_labels",
        "are judges right? The verdicts that PandaLM published, and those just replayed.",
    )
    data = f"{example.run}-data"
    example.execute(
        ["python", "-m", "examples.judge_labels.build", data],
        [sys.executable, "-m", "examples.judge_labels.build", data],
    )
    config = ["--config", "examples/judge_labels/jury.yaml"]
    example.jurygraph(
        "score", f"{data}/tasks.jsonl", *config, "--out", example.run, expected=SOME_FAILED
    )
    published = json.loads(
        example.jurygraph("study", "judge", example.run, "--labels", f"{data}/people.csv", "--json")
    )
    recorded = ["demo-run/real_judge", "--labels", f"{data}/people_of_real_judge.csv"]
    (replayed,) = json.loads(example.jurygraph("study", "judge", *recorded, "--json"))["judges"]
    by_name = {
        judge["question"].rpartition(".")[2]: judge["accuracy"] for judge in published["judges"]
    }
    by_name |= {
        "the longer one": published["length"][0]["accuracy"],
        "people": published["ceiling"][0],
    }
    (difference,) = published["differences"]
    example.print_finding(
        "agreement with most people: "
        + "; ".join(f"{name} {show_share(one)}" for name, one in by_name.items())
        + f"; the first two differ, p = {difference['p']:.3f}",
        f"the small model: {show_share(replayed['accuracy'])}; {replayed['flips']['value']:.0%} flip with the order",
    )


def reviewers() -> None:
    """Predict annotators' scores from other ratings alone, on PandaLM's pairs and MSLR's summaries."""
    example = Example(
        "reviewers", "is a judge for each annotator worth it? Predictions from other ratings alone."
    )
    folder = "examples/reviewers"
    texts = ["--items", f"{folder}/texts.jsonl.gz"]
    found = []
    for name, ratings, options in (("PandaLM:", "ratings", texts), ("MSLR, fluency:", "mslr", [])):
        done = example.jurygraph(
            "study", "reviewers", f"{folder}/{ratings}.csv.gz", *options, "--json"
        )
        judges = json.loads(done)["judges"]
        first = [
            one
            for one in judges
            if (one["dimension"], one["domain"]) == (judges[0]["dimension"], None)
        ]
        found.append(
            f"{name} " + ", ".join(f"{one['judge']} {one['mae']['value']:.3f}" for one in first)
        )
    example.print_finding(f"mean absolute error: {'; '.join(found)}")


def stability() -> None:
    """Replay what the small model said of plans in other words, and measure judges whose noise is known."""
    example = Example(
        "stability", "the same trip plans in 15 wordings each, graded by the small model, recorded."
    )
    config = [
        "--config",
        "examples/stability/jury.yaml",
        "--model",
        "replay:examples/stability/calls.jsonl.gz",
    ]
    sizes = ["--versions", "3", "--repeats", "2", "--out", example.run]
    example.jurygraph("study", "stability", "examples/stability/tasks.jsonl.gz", *config, *sizes)
    example.jurygraph("study", "certify", f"{example.run}/variants", f"{example.run}/repeats")
    script = ["examples/stability/summary.py"]
    figures = example.execute(["python", *script], [sys.executable, *script])
    plans = f"{find_line(figures, 'variants of')}: {find_line(figures, '^S/R')}"
    truth = find_line(figures, "^drifting")
    example.print_finding(plans, f"known noise: {truth}; {find_line(figures, 'drifting, n=8')}")


def show_share(cell: dict[str, float]) -> str:
    return f"{cell['value']:.1%} ({cell['low']:.1%} to {cell['high']:.1%})"


def find_line(output: str, pattern: str) -> str:
    """Return the first line in which the pattern occurs, without its indent."""
    return next(line.strip() for line in output.splitlines() if re.search(pattern, line))


def read_table(output: str, first_word: str) -> list[str]:
    """Return the header, the rule and the rows of the table whose header begins with this word."""
    lines = output.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"{first_word} "))
    columns = len(lines[start + 1].split())
    rows = takewhile(lambda line: len(re.split(r"  +", line)) >= columns, lines[start + 2 :])
    return [*lines[start : start + 2], *rows]


def pick_two(traces: list[dict[str, Any]]) -> tuple[str, str]:
    """Return a right solution, and a wrong one of the same problem of which a calculation is quoted as wrong."""
    right = {
        t["task_id"]: t["response_id"]
        for t in traces
        if t["reward"]["components"]["accuracy"] == 1.0
    }
    wrong = next(t for t in traces if has_wrong_calculation(t) and t["task_id"] in right)
    return right[wrong["task_id"]], wrong["response_id"]


def has_wrong_calculation(trace: dict[str, Any]) -> bool:
    is_quoted = any(
        v["evaluator"] == "maths.calculation" and v["evidence"] for v in trace["verdicts"]
    )
    return bool(trace["reward"]["components"]["accuracy"] == 0.0 and is_quoted)


if __name__ == "__main__":
    main()
