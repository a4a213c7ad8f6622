"""`jurygraph preset`: what is printed is a config that scores as the preset does."""

import json
from pathlib import Path

from jurygraph.sources import parse_config, read_config
from jurygraph.sources.config import PRESETS
from tests.cli.conftest import Command


def test_without_a_name_all_are_listed(run: Command) -> None:
    ended = run("preset")
    assert (ended.code, ended.out.split()) == (0, list(PRESETS))


def test_one_is_written_out_as_the_config_that_it_stands_for(run: Command, tmp_path: Path) -> None:
    for name in PRESETS:
        written = tmp_path / "jury.yaml"
        written.write_text(run("preset", name).out, encoding="utf-8")
        assert read_config(written) == parse_config({"preset": name})


def test_json_is_the_same(run: Command) -> None:
    assert parse_config(json.loads(run("preset", "macrm-emb-4", "--json").out)) == parse_config(
        {"preset": "macrm-emb-4"}
    )
    assert json.loads(run("preset", "--json").out) == list(PRESETS)


def test_another_name_is_refused(run: Command) -> None:
    ended = run("preset", "macrm-vanilla-5")
    assert ended.code == 2
    assert "did you mean macrm-vanilla-" in ended.err


def test_a_name_that_is_like_no_other_is_answered_with_all_of_them(run: Command) -> None:
    ended = run("preset", "nobody")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: unknown preset 'nobody'; known: {', '.join(PRESETS)}\n"
