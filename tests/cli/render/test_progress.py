"""Plain progress lines: about every tenth of the way, and never in quick succession."""

import threading

import pytest

from jurygraph.cli.render import text


@pytest.fixture(autouse=True)
def report_no_progress() -> None:
    """Here it is reported, by a clock that the tests turn."""


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


def test_work_whose_first_item_takes_minutes_is_seen_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    printed = threading.Event()
    monkeypatch.setattr(text, "_MAX_SECONDS_BETWEEN_REPORTS", 0.01)
    monkeypatch.setattr(text, "print_message", lambda line: (print(line), printed.set()))
    with text.progress("scoring", 40, "responses", lambda: "113 requests"):
        assert printed.wait(timeout=60)
    assert capsys.readouterr().out.startswith("scoring: 0 of 40 responses (0%); 113 requests\n")


def test_what_is_left_is_estimated_where_a_judge_is_waited_for(
    clock: list[float], capsys: pytest.CaptureFixture[str]
):
    with text.progress("scoring", 4, "responses", lambda: "8 requests") as advance:
        clock[0] += 600
        advance(1)
    line = "scoring: 1 of 4 responses (25%); 8 requests; about 30 min left\n"
    assert capsys.readouterr().err == line
