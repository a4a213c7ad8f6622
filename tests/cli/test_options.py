"""Options that several commands share have one name and one help text."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jurygraph.cli.app import root_command
from tests.cli.conftest import Command
from tests.rows import all_rows

ONE_MEANING = (
    "--dry-run",
    "--edges-from",
    "--every",
    "--gate",
    "--json",
    "--max-calls",
    "--max-cost",
    "--plot",
)


def commands(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    names = getattr(command, "commands", None)
    if names is None:
        yield " ".join(path), command
    for name in names or ():
        yield from commands(command.get_command(None, name), *path, name)


EVERY = dict(commands(root_command))


def options(command: Any) -> list[Any]:
    return [
        one for one in command.params if one.opts[0].startswith("-") and "--help" not in one.opts
    ]


@all_rows("name", ONE_MEANING)
def test_a_shared_option_has_the_same_help_in_every_command(name: str):
    texts = defaultdict(list)
    for command, found in EVERY.items():
        for one in options(found):
            if name in one.opts:
                texts[one.help].append(command)
    assert len(texts) == 1
    assert sum(map(len, texts.values())) > 1


@all_rows("command", EVERY)
def test_the_output_option_is_o_or_out_in_every_command(command: str):
    for one in options(EVERY[command]):
        if "--out" in one.opts or "-o" in one.opts:
            assert one.opts == ["-o", "--out"]


@all_rows("command", ["score", "annotate", "profiles"])
def test_missing_tasks_are_reported_even_without_a_config(
    command: str, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    ended = run(command, "tasks.jsonl", "--out", "out")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: tasks.jsonl: there is no such file; ")


@all_rows(
    "words, problem",
    [
        (("report", "run"), "option '-o' / '--out'. For example: jurygraph report run -o report."),
        (("merge", "a"), "option '-o' / '--out'. For example: jurygraph merge "),
        (("compare", "run"), "argument 'RUN_B'. For example: jurygraph compare before after"),
    ],
)
def test_what_is_missing_is_named_with_an_example_of_the_command(
    words: tuple[str, ...], problem: str, run: Command
):
    ended = run(*words)
    assert (ended.code, f"Missing {problem}" in ended.err) == (2, True)


@all_rows(
    "option, value, problem",
    [
        ("--max-cost", "1,5", "is no number; write one such as 1.5, with a decimal point"),
        ("--max-calls", "x", "is no whole number; write one, such as 100"),
        ("--limit", "1.5", "is no whole number; write one, such as 100"),
    ],
)
def test_an_option_that_is_no_number_is_refused_with_an_example(
    option: str, value: str, problem: str, run: Command
):
    ended = run("score", "tasks.jsonl", option, value)
    assert (ended.code, f"'{option}': {problem}" in ended.err) == (2, True), ended.err


def test_a_second_column_is_refused_where_one_is_read(run: Command) -> None:
    """The parser would take the last, and say nothing of the other; a script may replace other values so."""
    ended = run("import", "wide", "F", "--out", "R", "--label", "clear", "--target-column", "kind")
    assert ended.code == 2
    assert "--target-column: is given twice, under this name or another of it; " in ended.err
    columns = ["--response-column", "a", "--response-column", "b"]
    for command in (["study", "signal", "R", *["--correct", "0.9"] * 2], ["score", "T", *columns]):
        assert "is given twice" not in run(*command, "--out", "R").err
