"""Custom prompts are read from a file and checked whole before any request."""

from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.prompts import load_prompt, read_prompt

FRONT = "id: own\npurpose: p\nextends: items\n"


def write_prompt(folder: Path, front: str = FRONT, body: str = "## user\nIs it kind?\n") -> Path:
    path = folder / "own.md"
    path.write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    return path


def test_a_custom_prompt_is_the_question_of_its_base(tmp_path: Path) -> None:
    prompt = read_prompt(write_prompt(tmp_path))
    item = {"name": "item_1", "text": "It is kind.", "parts": False, "scale": None}
    shown = {
        "query": "Write.",
        "reference": None,
        "response": "Dear Ann",
        "items": [item],
        "compact": False,
    }
    system, user = prompt.render(**shown).messages
    assert prompt.needs == load_prompt("criteria").needs
    assert system == load_prompt("criteria").render(**shown).messages[0]
    assert (
        user.content.index("Dear Ann")
        < user.content.index("Is it kind?")
        < user.content.index("item_1:")
    )


def test_a_prompt_without_a_version_gets_one_from_its_text(tmp_path: Path) -> None:
    first = read_prompt(write_prompt(tmp_path))
    again = read_prompt(write_prompt(tmp_path))
    changed = read_prompt(write_prompt(tmp_path, body="## user\nIs it very kind?\n"))
    assert first.version == again.version != changed.version
    assert first.full_version == f"{first.version} in items 2 in judge 1"


def test_a_version_in_the_front_matter_is_kept(tmp_path: Path) -> None:
    assert read_prompt(write_prompt(tmp_path, FRONT + 'version: "7"\n')).version == "7"


@pytest.mark.parametrize(
    ("front", "body", "wrong"),
    [
        (
            FRONT,
            "## user\n{{ house }}\n",
            "it uses 'house' and does not state it; write `variables: \\[house\\]`",
        ),
        (FRONT, "## user\n{{ query }}\n", "it uses 'query' and does not state it"),
        (FRONT, "## user\nA\n{{ 1 +\n", "line 2 of its section"),
        (FRONT, "## user\n{{ 'a' | fence }}\n", "No filter named 'fence'"),
        (
            "id: own\npurpose: p\nextends: item\n",
            "## user\nA\n",
            "there is no prompt 'item'; did you mean items",
        ),
        (
            "id: own\npurpose: p\nextends: criteria\n",
            "## user\nA\n",
            "'criteria' has no place for a question",
        ),
        ("id: own\nextends: items\n", "## user\nA\n", "purpose: Field required"),
        ("- own\n", "## user\nA\n", "the front matter holds keys and values, such as `id: NAME`"),
        ("id: [\n", "## user\nA\n", "its front matter is no YAML: expected the node content"),
    ],
)
def test_an_invalid_prompt_is_refused_when_it_is_read(
    tmp_path: Path, front: str, body: str, wrong: str
) -> None:
    with pytest.raises(InputError, match=f"^prompt own.md.*{wrong}"):
        read_prompt(write_prompt(tmp_path, front, body))


def test_a_file_without_front_matter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.md"
    path.write_text("Is it kind?", encoding="utf-8")
    with pytest.raises(InputError, match=r"prompt own\.md: a prompt begins with its front matter"):
        read_prompt(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "own.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"prompt own\.md cannot be read"):
        read_prompt(path)
