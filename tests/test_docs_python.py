"""docs/python.md is run from top to bottom, what it shows is what is printed, and it lists every public name."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.agents.functions import REGISTERED
from tests.command_server import run_forked

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
SNIPPET = re.compile(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)


def test_the_snippets_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (("init", "my-jury"), ("score", "my-jury/tasks.jsonl", "--out", "my-jury/run")):
        assert run_forked(*command, cwd=tmp_path)[0] == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jurygraph.agents.functions.REGISTERED", dict(REGISTERED))
    names: dict[str, object] = {"__name__": "docs_python"}
    snippets = SNIPPET.findall(PAGE)
    for code, shown in snippets:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "docs/python.md", "exec"), names)
        assert printed.getvalue() == shown, code
    assert len(snippets) == 9


def test_the_reference_lists_every_public_name_once() -> None:
    _, _, reference = PAGE.partition("## API reference")
    testing = {
        name
        for name, value in vars(jg.testing).items()
        if isinstance(value, type) and value.__module__ == "jurygraph.testing"
    }
    assert testing <= set(re.findall(r"\w+", reference))
    assert sorted(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE)) == sorted(jg.__all__)
