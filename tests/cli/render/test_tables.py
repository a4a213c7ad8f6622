"""Tables: their columns fit into the lines of a terminal."""

import pytest

from jurygraph.cli.render.text import format_table


def test_what_does_not_fit_on_a_terminal_follows_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurygraph.cli.render.text.get_terminal_width", lambda: 30)
    assert format_table(
        ["agent", "first number", "second number"], [["alice", 0.25, 1.0], ["bob", None, 0.5]]
    ) == [
        "agent  first number",
        "─────  ────────────",
        "alice        0.2500",
        "bob               -",
        "",
        "agent  second number",
        "─────  ─────────────",
        "alice         1.0000",
        "bob           0.5000",
    ]
