"""Words of messages."""

from pathlib import Path

from jurygraph.messages import shell_quote
from tests.rows import all_rows


@all_rows(
    ("value", "word"),
    [
        (Path("my run"), "'my run'"),
        (Path("-run"), "./-run"),
        (Path("a/-run"), "a/-run"),
        ("-1", "-1"),
        (0.5, "0.5"),
    ],
)
def test_a_value_is_quoted_for_the_shell_and_a_path_is_never_an_option(
    value: object, word: str
) -> None:
    assert shell_quote(value) == word
