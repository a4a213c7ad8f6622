"""Plain progress lines: about every tenth of the way, and never in quick succession."""

import pytest

from jurygraph.cli.render import text


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(text.time, "monotonic", lambda: now[0])
    return now


def test_a_line_is_printed_after_a_tenth_and_two_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
):
    with text.progress("scoring", 100, "responses") as advance:
        for _ in range(100):
            clock[0] += 0.5
            advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "scoring: 10 of 100 responses (10%)"
    assert len(lines) == 10


def test_a_quick_run_prints_no_progress(clock: list[float], capsys: pytest.CaptureFixture[str]):
    with text.progress("scoring", 100, "responses") as advance:
        for _ in range(100):
            clock[0] += 0.01
            advance(1)
    assert capsys.readouterr().err == ""


def test_a_slow_run_prints_a_line_for_each_tenth(
    clock: list[float], capsys: pytest.CaptureFixture[str]
):
    with text.progress("scoring", 20, "responses") as advance:
        for _ in range(20):
            clock[0] += 60
            advance(1)
    assert len(capsys.readouterr().err.splitlines()) == 10
