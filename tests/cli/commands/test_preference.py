"""`jurygraph study preference`: the outcomes are tested in `tests/studies/preference`."""

from pathlib import Path

from tests.cli.conftest import Command
from tests.studies.preference.made import PAIRS, by_pairs, score_tasks

JUDGEBENCH = [
    by_pairs("law", 1.0, 0.0, source="mmlu-pro-law"),
    by_pairs("logic", 0.0, 1.0, source="livebench-reasoning"),
    by_pairs("sums", 1.0, 0.0, source="livebench-math"),
    by_pairs("code", 1.0, "response", source="livecodebench"),
]


def test_the_table_has_the_accuracy_of_each_category_and_what_failed(run: Command, tmp_path: Path):
    ended = run("study", "preference", score_tasks(tmp_path, JUDGEBENCH, PAIRS))
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    assert ended.out.splitlines()[0].endswith(
        "decided by verdicts of pairs on pairs; a tie is not right, a failed task is wrong; intervals are over tasks"
    )
    table = {cells[0]: cells[1:9] for cells in lines[4:9]}
    assert table == {  # tasks, right, wrong, ties, failed, flips, coverage, accuracy
        "Knowledge": ["1", "1", "0", "0", "0", "0", "1.0000", "1.0000"],
        "Reasoning": ["1", "0", "1", "0", "0", "0", "1.0000", "0.0000"],
        "Math": ["1", "1", "0", "0", "0", "0", "1.0000", "1.0000"],
        "Coding": ["1", "0", "0", "0", "1", "0", "0.0000", "0.0000"],
        "all": ["4", "2", "1", "0", "1", "0", "0.7500", "0.5000"],
    }
    assert ended.out.endswith("code         Coding    1 of 2 verdicts on the pair are missing\n")


def test_a_run_without_preferences_is_refused(scored_folder: Path, run: Command):
    ended = run("study", "preference", scored_folder)
    assert (ended.code, ended.out) == (2, "")
    assert (
        "none of its tasks is a preference (tasks without one response labelled `preferred: true`"
        in ended.err
    )
