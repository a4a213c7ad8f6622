"""docs/python.md is run from top to bottom, what it shows is what is printed, and it lists every public name."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.agents.functions import REGISTERED
from tests.command import run_command

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
SNIPPET = re.compile(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)


def test_the_snippets_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (("init", "my-jury"), ("score", "my-jury/tasks.jsonl", "--out", "my-jury/run")):
        assert run_command(*command, cwd=tmp_path)[0] == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jurygraph.agents.functions.REGISTERED", dict(REGISTERED))
    names: dict[str, object] = {"__name__": "docs_python"}
    snippets = SNIPPET.findall(PAGE)
    for code, shown in snippets:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "docs/python.md", "exec"), names)
        assert printed.getvalue() == shown, code
    assert len(snippets) == 11
    (tmp_path / "jury.yaml").write_text("evaluators: [maths.length]")
    written = run_command("score", "letters.jsonl", "--config", "jury.yaml", "--out", "run", cwd=tmp_path)
    assert written[0] == 0, written
    with jg.Run.open("run") as run:
        assert [trace.response_id for trace in run.traces()] == ["t0/1", "t0/2", "t1/1", "t1/2", "t2/1", "t2/2"]


def test_the_methods_of_a_run_that_the_page_names_exist() -> None:
    (row,) = re.findall(r"^\| `Run` \|.*", PAGE, re.MULTILINE)
    named = re.findall(r"`(\w+)`", row)[1:]
    assert all(hasattr(jg.Run, name) or f"        {name}: " in (jg.Run.__doc__ or "") for name in named), named


def test_the_reference_lists_every_public_name_once() -> None:
    _, _, reference = PAGE.partition("## API reference")
    testing = {
        name
        for name, value in vars(jg.testing).items()
        if isinstance(value, type) and value.__module__ == "jurygraph.testing"
    }
    assert testing <= set(re.findall(r"\w+", reference))
    assert sorted(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE)) == sorted(jg.__all__)
