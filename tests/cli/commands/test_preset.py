"""`jurygraph preset` prints a config that gives the same scores as the preset."""

import json
from pathlib import Path

from jurygraph.sources import parse_config, read_config
from jurygraph.sources.config import PRESETS
from tests.cli.conftest import Command


def test_without_a_name_all_presets_are_listed(run: Command) -> None:
    ended = run("preset")
    assert (ended.code, ended.out.split()) == (0, list(PRESETS))


def test_a_preset_is_printed_as_an_equivalent_config(run: Command, tmp_path: Path) -> None:
    for name in PRESETS:
        written = tmp_path / "jury.yaml"
        written.write_text(run("preset", name).out, encoding="utf-8")
        assert read_config(written) == parse_config({"preset": name})


def test_json_has_the_same_config(run: Command) -> None:
    assert parse_config(json.loads(run("preset", "macrm-emb-4", "--json").out)) == parse_config(
        {"preset": "macrm-emb-4"}
    )
    assert json.loads(run("preset", "--json").out) == list(PRESETS)


def test_an_unknown_preset_is_refused_with_the_nearest(run: Command) -> None:
    ended = run("preset", "macrm-vanilla-5")
    assert ended.code == 2
    assert "did you mean macrm-vanilla-" in ended.err
