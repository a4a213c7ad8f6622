"""No command runs a module next to a config that the config does not name; `tests/sources/test_user_modules.py`."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command, run_new_process, write_project

TASK = [
    {
        "id": "a",
        "query": "Ask.",
        "reference": "1",
        "responses": [{"id": "a/1", "text": "please, 1"}],
    }
]
SOUGHT = ("jinja2", "diskcache", "json", "sitecustomize")
OPTIONAL = ("pyarrow", "matplotlib", "sentence_transformers", "gmpy2", "orjson", "uvloop")
"""Modules that ours, or libraries that we use, may look for."""


def write_modules(folder: Path, *names: str) -> None:
    """Write modules that leave a file behind when they are run."""
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'a').write('{name} ')\n")


QUICK = ["score tasks.jsonl --out run", "verify run --deep"]
ALL = [
    "doctor --config jury.yaml",
    "score tasks.jsonl --out run --dry-run",
    *QUICK,
    "rescore run --out run2 --set scale=2",
]


@pytest.mark.landing
@pytest.mark.parametrize(
    ("evaluator", "commands"),
    [
        pytest.param("maths.accuracy", ALL, marks=pytest.mark.exhaustive),
        pytest.param("manners.polite", ALL, marks=pytest.mark.exhaustive),
        ("manners.polite", QUICK),
    ],
)
def test_modules_that_the_config_does_not_name_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluator: str, commands: list[str]
) -> None:
    write_project(tmp_path, TASK, f"evaluators: [{evaluator}]\n")
    write_modules(tmp_path, *SOUGHT, *OPTIONAL)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert run_new_process(*command.split()).code == 0, command
    assert not (tmp_path / "ran").exists()


def test_a_module_whose_name_is_taken_is_refused(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, TASK, "evaluators: [json.polite]\n")
    write_modules(tmp_path, "json")
    monkeypatch.chdir(tmp_path)
    for command in ALL[:3]:
        ended = run(*command.split())
        assert ended.code == 2
        assert "rename json.py" in ended.out + ended.err
    assert not (tmp_path / "ran").exists()
