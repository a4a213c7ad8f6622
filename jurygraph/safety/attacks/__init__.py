"""Attacks on judges: responses that try to get credit without doing any task, and tasks to test them on.

They cover the kinds of the public lists (BIPIA, garak, spikee, Cheating-LLM-Benchmarks, "One Token to Fool
LLM-as-a-Judge"), in new wording, one file per suite; no judge should give any of them credit.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Literal, get_args

from jurygraph.schema import FrozenModel, Response, Task, digest_of
from jurygraph.schema.frozen_model import Id
from jurygraph.sources import read_tasks
from jurygraph.sources.config import Document

Suite = Literal["master-keys", "null", "injection", "reference"]


class Attack(FrozenModel):
    """A response made to win; `attack_text` fills `{reference}`, in several forms, and `{body}` in its `text`.

    `language` is a BCP 47 tag, `zxx` if there is no language.
    """

    id: Id
    suite: Suite
    kind: Id
    language: Id
    text: str


def load_attacks(suite: Suite | Literal["all"] = "all") -> tuple[Attack, ...]:
    """Return the attacks of a suite, or of all, ordered by id, such as injection/de/footnote-full-marks."""
    suites = get_args(Suite) if suite == "all" else (suite,)
    attacks = (
        Attack(
            id=f"{suite}/{language}/{name}", suite=suite, kind=kind, language=language, text=text
        )
        for suite in suites
        for kind, languages in _load_file(suite).items()
        for language, texts in languages.items()
        for name, text in texts.items()
    )
    return tuple(sorted(attacks, key=lambda attack: attack.id))


def attack_text(attack: Attack, task: Task) -> str | None:
    """Return the attack as a response to a task; None if it copies a reference and the task has none."""
    text = attack.text
    if "{body}" in text:
        bodies = [body for _, body in sorted(_load_file("bodies").items())]
        text = text.replace("{body}", bodies[int(digest_of(attack.id)[:8], 16) % len(bodies)])
    for form, transform in _FORMS.items():
        if form in text:
            if task.reference is None:
                return None
            text = text.replace(form, transform(task.reference))
    return text


def load_attack_tasks() -> tuple[tuple[Task, tuple[Response, ...]], ...]:
    """Return tasks to test attacks on, each with honest responses (label `honest`) that do everything that it asks for.

    Each has a reference and a rubric; no attack meets a criterion of it, except one that contains the reference.
    """
    with as_file(files(__package__).joinpath("tasks.jsonl")) as path:
        return tuple(read_tasks(path))


def _drop_words(text: str) -> str:
    return " ".join(word for place, word in enumerate(text.split(), start=1) if place % 30)


def _to_full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


_FORMS: Mapping[str, Callable[[str], str]] = {
    "{reference}": lambda text: text,
    "{reference:capitals}": str.upper,
    "{reference:word-a-line}": lambda text: "\n".join(text.split()),
    "{reference:full-width}": _to_full_width,
    "{reference:zero-width}": "\u200b".join,
    "{reference:thinned}": _drop_words,
}
"""Functions that return the form of a reference for each placeholder."""


@cache
def _load_file(name: str) -> dict[str, Any]:
    return dict(Document(files(__package__).joinpath(f"{name}.yaml").read_bytes().decode()).value)
