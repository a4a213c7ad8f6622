"""Confusions in a file, that nobody changes unseen."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.schema.rating import Confusions
from jurygraph.sources.artifacts import confusions_to_json, read_confusions
from tests.schema.test_confusions import CONTENT

KNOWN = Confusions.model_validate(CONTENT)


def test_written_text_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(confusions_to_json(KNOWN))
    assert read_confusions(tmp_path / "c.json") == KNOWN
    assert json.loads((tmp_path / "c.json").read_text()) == CONTENT | {"digest": KNOWN.digest}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            CONTENT,
            "c.json, field digest: is missing; have `jurygraph consensus --artifact` write it again",
        ),
        (
            CONTENT | {"digest": "0" * 64},
            "c.json, field digest: is not that of the rest, which was changed; ",
        ),
        (
            CONTENT | {"prior": [0.75, 0.25], "digest": KNOWN.digest},
            "field digest: is not that of the rest",
        ),
        (
            CONTENT | {"prior": [0.5, 0.75], "digest": "x"},
            "c.json, field prior: sums to 1.25; shares of all classes",
        ),
        (
            CONTENT | {"prior": [0.5, "x"], "digest": "x"},
            "c.json, field prior[1]: is the text 'x'; write a number",
        ),
        (
            CONTENT | {"priors": 1, "digest": "x"},
            "c.json, field priors: unknown; did you mean prior?",
        ),
        ([CONTENT], "c.json: is a list; confusions are a JSON object; "),
    ],
)
def test_an_error_is_reported(content: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(InputError) as raised:
        read_confusions(tmp_path / "c.json")
    assert message in str(raised.value)


def test_unreadable_rows_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"c.json: there is no such file"):
        read_confusions(tmp_path / "c.json")
    (tmp_path / "c.json").write_text('{"prior": NaN}')
    with pytest.raises(InputError, match=r"c.json: is not valid JSON"):
        read_confusions(tmp_path / "c.json")
