"""`jurygraph demo --all`: the examples of this folder that a wheel does not have, each in what it shows.

The output of every command is kept in the demo's folder, in `NAME.txt`. No model is needed: in one example a scripted
judge stands in for one, in others the recorded replies of a small one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the scripted judge is a module of the examples

from examples.panel.scripted_judge import NAME, judging  # noqa: E402

OUT = Path(sys.argv[1] if sys.argv[1:] else "demo-run").resolve()
ADVERSE = 1
"""Exit code of `watch` if it has found something adverse."""
SOME_FAILED = 1
"""Exit code of `score` if some rewards have no value."""
DIFFERENT = 5
"""Exit code of `verify` if something is not as it was recorded."""
CONSOLE = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


class Example:
    """One example: its commands, and what it shows. The output of the commands goes to `NAME.txt`."""

    def __init__(self, name: str, purpose: str) -> None:
        self.run = str(OUT / name)
        self._title = f"{name}: {purpose}"
        self._findings: list[str] = []
        self._log = OUT / f"{name}.txt"
        self._log.write_text("", encoding="utf-8")
        for folder in (self.run, f"{self.run}-data"):  # of an earlier demo
            shutil.rmtree(folder, ignore_errors=True)

    def jurygraph(self, *arguments: str, expected: int = 0) -> str:
        """Run a command as a user would type it, and return its standard output."""
        return self.execute(
            ["jurygraph", *arguments],
            [sys.executable, "-m", "jurygraph", *arguments],
            expected,
        )

    def script(self, *words: str) -> str:
        """Run a script of the examples, and return its standard output."""
        return self.execute(["python", *words], [sys.executable, *words])

    def execute(self, shown: list[str], command: list[str], expected: int = 0) -> str:
        """Run a command, append it and its output to the log, and return its standard output; exit if it fails.

        A command that prints no results, as `verify` for a changed run, returns its messages.
        """
        line = f"$ {' '.join(shown)}"
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n{done.stderr}{done.stdout}\n")
        if done.returncode != expected:
            raise RuntimeError(f"{line}\n{done.stderr}exit code {done.returncode}; {self._log}")
        return done.stdout or done.stderr

    def add_findings(self, *lines: str) -> "Example":
        self._findings += lines
        return self

    def print(self) -> None:
        CONSOLE.print(f"\n{self._title}")
        for line in self._findings:
            CONSOLE.print(f"  → {line}")


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    # The judge's address is new each time: its replies would only fill the user's cache.
    os.environ["JURYGRAPH_CACHE"] = str(OUT / "cache")
    chains = (
        [agent, monitor, panel, investigator],
        [real_judge, judge_labels],
        [reviewers],
        [stability],
    )
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for examples in threads.map(run_in_order, chains):
            for example in examples:
                example.print()
    CONSOLE.print(f"\nthe output of each of these: {OUT}/*.txt")


def run_in_order(chain: Sequence[Callable[[], Example]]) -> list[Example]:
    """Run examples one after the other: the later read runs of the earlier."""
    return [run_example() for run_example in chain]


def agent() -> Example:
    """Score an agent's conversations by what it called, and print how well each check predicts the outcome."""
    example = Example(
        "agent", "100 conversations of GPT-4o with tools (tau-bench, airline), judged by code."
    )
    files = ["examples/agent/tasks.jsonl.gz", "--config", "examples/agent/jury.yaml"]
    example.jurygraph("score", *files, "--out", example.run)
    labels = ["--labels", "examples/agent/outcomes.csv", "--json"]
    study = json.loads(example.jurygraph("study", "judge", example.run, *labels))
    accuracy = {judge["question"]: judge["accuracy"] for judge in study["judges"]}
    found = ", ".join(f"{name} {share['value']:.0%}" for name, share in accuracy.items())
    return example.add_findings(f"one check predicts the published outcome, four do not: {found}")


def monitor() -> Example:
    """Score a training run whose policy learns to game the reward: longer and longer, well formed, wrong."""
    example = Example(
        "monitor",
        "1,680 responses of a training run whose policy games the reward from step 31 on.",
    )
    files = ["examples/monitor/tasks.jsonl.gz", "--config", "examples/monitor/jury.yaml"]
    example.jurygraph("score", *files, "--out", example.run)
    watched = example.jurygraph("watch", example.run, "--step-label", "step", expected=ADVERSE)
    return example.add_findings(find_line(watched, "looks hacked"))


def panel() -> Example:
    """Score with everything at once: travellers, a rubric's graph, specialists, reviewers' judges, their consensus."""
    example = Example(
        "panel", "everything in one run; the judge is a script that answers by a list of words."
    )
    with judging() as url:
        model = ["--model", f"openai-compatible:{url}#{NAME}"]
        example.jurygraph("score", "examples/panel/tasks.jsonl", *model, "--out", example.run)
    explained = example.jurygraph("explain", example.run, "--response", "sandhaven/inventive")
    verified = example.jurygraph("verify", example.run, "--deep")
    example.jurygraph(
        "rescore", example.run, "--out", f"{example.run}-uniform", "--set", "weights.method=uniform"
    )
    patterns = ("gets", "step 2 of 5")
    return example.add_findings(
        *(find_line(explained, each) for each in patterns), find_line(verified, "recomputed")
    )


def investigator() -> Example:
    """Judge with tools and without, and verify before and after a price that the judge looked up is raised."""
    example = Example(
        "investigator", "a judge that looks prices up and searches; a script in a model's place."
    )
    folder = f"{example.run}-data"
    runs = [f"{folder}/without", example.run]
    example.script("examples/investigator/prepare.py", folder)
    without = ["--config", f"{folder}/without_tools.yaml", "--out", runs[0]]
    example.jurygraph("score", f"{folder}/tasks.jsonl", *without, expected=SOME_FAILED)
    example.jurygraph("score", f"{folder}/tasks.jsonl", "--out", runs[1])
    changes = example.script("examples/investigator/changes.py", *runs)
    example.jurygraph("verify", example.run, "--deep")
    example.script("examples/investigator/raise_price.py", folder)
    verified = example.jurygraph("verify", example.run, "--deep", expected=DIFFERENT)
    _, _, lost = find_line(verified, "no longer holds").partition(", ")
    return example.add_findings(
        f"{find_line(changes, 'verdicts changed')}, such as one by {find_line(changes, 'tool:.*BedStuy')}",
        f"with tools: {find_line(changes, '^with tools').partition(': ')[2]}",
        f"once that price is raised, `verify --deep` finds: {lost}",
        f"each step of it, in a browser: jurygraph view {example.run}",
    )


def real_judge() -> Example:
    """Replay what a small model said of pairs, beside people."""
    example = Example(
        "real_judge", "pairs of responses, judged by a model of 135 million parameters, recorded."
    )
    config = ["--config", "examples/real_judge/jury.yaml"]
    model = ["--model", "replay:examples/real_judge/calls.jsonl.gz"]
    example.jurygraph(
        "score", "examples/real_judge/tasks.jsonl.gz", *config, *model, "--out", example.run
    )
    figures = example.script("examples/real_judge/summary.py")
    first, agreed, constant = (
        " ".join(find_line(figures, pattern).split())
        for pattern in ("shown first", "judge, in both orders", "^  always")
    )
    return example.add_findings(
        f"it does not read them: it {first}",
        f"so it agrees with people less than a constant does: {agreed}; {constant}",
    )


def judge_labels() -> Example:
    """Measure PandaLM's two published judges, and the recorded one of `real_judge`, by what people say."""
    example = Example(
        "judge_labels",
        "are judges right? The verdicts that PandaLM published, and those just replayed.",
    )
    data = f"{example.run}-data"
    example.script("-m", "examples.judge_labels.build", data)
    config = ["--config", "examples/judge_labels/jury.yaml"]
    example.jurygraph(
        "score", f"{data}/tasks.jsonl", *config, "--out", example.run, expected=SOME_FAILED
    )
    published = json.loads(
        example.jurygraph("study", "judge", example.run, "--labels", f"{data}/people.csv", "--json")
    )
    recorded = [str(OUT / "real_judge"), "--labels", f"{data}/people_of_real_judge.csv"]
    (replayed,) = json.loads(example.jurygraph("study", "judge", *recorded, "--json"))["judges"]
    by_name = {
        judge["question"].rpartition(".")[2]: judge["accuracy"] for judge in published["judges"]
    }
    by_name |= {
        "the longer one": published["length"][0]["accuracy"],
        "people": published["ceiling"][0],
    }
    (difference,) = published["differences"]
    return example.add_findings(
        "agreement with most people: "
        + "; ".join(f"{name} {show_share(one)}" for name, one in by_name.items())
        + f"; the first two differ, p = {difference['p']:.3f}",
        f"the small model: {show_share(replayed['accuracy'])}; {replayed['flips']['value']:.0%} flip with the order",
    )


def reviewers() -> Example:
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
    return example.add_findings(
        f"their history predicts less than the others' ratings of the same item, by mean error: {'; '.join(found)}"
    )


def stability() -> Example:
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
    runs = [f"{example.run}/variants", f"{example.run}/repeats"]
    page = example.jurygraph("study", "certify", *runs)
    figures = example.script("examples/stability/summary.py")
    truth = find_line(figures, "^drifting")
    measured = find_line(figures, "drifting, n=8")
    return example.add_findings(
        find_line(page, "^Other words for the same"),
        find_line(page, "^Asking again moves"),
        f"of a judge whose noise is known the study finds it: {truth}; {measured}",
    )


def show_share(cell: dict[str, float]) -> str:
    return f"{cell['value']:.1%} ({cell['low']:.1%} to {cell['high']:.1%})"


def find_line(output: str, pattern: str) -> str:
    """Return the first line in which the pattern occurs, without its indent."""
    return next(line.strip() for line in output.splitlines() if re.search(pattern, line))


if __name__ == "__main__":
    main()
