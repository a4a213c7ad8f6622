"""Results, messages, warnings and log records are printed without secrets; the bytes of an export as they are."""

import os
import sys
from pathlib import Path

import pytest

from jurygraph import InputError
from jurygraph.cli.render.text import print_message, print_report, print_result
from tests.command import run_command

SECRET = 'sk-canary-"0123456789"'


@pytest.fixture(autouse=True)
def _a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_API_KEY", SECRET)


def test_what_a_command_prints_has_no_secret(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_result(f"the key: {SECRET}")
    print_report(True, {"key": SECRET}, ())
    print_result(SECRET.encode())
    print_message(f"wrong key {SECRET}")
    out, err = capfdbinary.readouterr()
    assert out.splitlines() == [b"the key: [redacted]", b'{"key": "[redacted]"}', SECRET.encode()]
    assert err == b"wrong key [redacted]\n"


def test_a_stream_without_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(
            InputError,
            match=r"^standard output: cannot be written \(No space left on device\); send",
        ):
            print_result("a result")
        assert os.path.samestat(os.fstat(full.fileno()), os.stat(os.devnull))


@pytest.mark.filterwarnings("default")
def test_a_warning_of_user_code_has_no_secret(tmp_path: Path) -> None:
    body = "    warnings.warn('no access with ' + os.environ['CANARY_API_KEY'])\n    return 1.0\n"
    (tmp_path / "tone.py").write_text(f"import os, warnings\ndef kind(task, response):\n{body}")
    (tmp_path / "jury.yaml").write_text("evaluators: [tone.kind]\n")
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": "t", "query": "?", "responses": [{"id": "r", "text": "a"}]}\n'
    )
    ended = run_command(
        "score", "tasks.jsonl", "--config", "jury.yaml", "--out", "run", cwd=tmp_path
    )
    assert (ended.code, SECRET in ended.err) == (0, False)
    assert "tone.py:3: UserWarning: no access with [redacted]" in ended.err
