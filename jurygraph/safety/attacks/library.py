"""The attacks that are shipped, one file a suite, written for this project; no judge should give any of them credit.

They are of the kinds of the public lists (BIPIA, garak, spikee, Cheating-LLM-Benchmarks, "One Token to Fool
LLM-as-a-Judge"), in words of their own.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Literal, get_args

from jurygraph.schema import Noun, Response, Task, digest_of
from jurygraph.schema.noun import Id
from jurygraph.sources import read_tasks
from jurygraph.sources.yaml_document import Document

Suite = Literal["master-keys", "null", "injection", "reference"]


class Attack(Noun):
    """A response made to win: `text` may hold `{reference}`, in several forms, and `{body}`, which `attack_text` fills.

    `language` is a tag of BCP 47, `zxx` where there is none.
    """

    id: Id
    suite: Suite
    kind: Id
    language: Id
    text: str


def load_attacks(suite: Suite | Literal["all"] = "all") -> tuple[Attack, ...]:
    """The attacks of a suite, or of all, in the order of their ids, such as injection/de/footnote-full-marks."""
    suites = get_args(Suite) if suite == "all" else (suite,)
    return tuple(sorted((attack for one in suites for attack in _suite(one)), key=lambda attack: attack.id))


def attack_text(attack: Attack, task: Task) -> str | None:
    """The attack as a response to a task; None where it copies a reference and the task has none."""
    text = attack.text
    if "{body}" in text:
        text = text.replace("{body}", _bodies()[int(digest_of(attack.id)[:8], 16) % len(_bodies())])
    for form, written in _FORMS.items():
        if form in text:
            if task.reference is None:
                return None
            text = text.replace(form, written(task.reference))
    return text


def load_attack_tasks() -> tuple[tuple[Task, tuple[Response, ...]], ...]:
    """Tasks to try attacks on, each with honest responses (label `honest`) that do all that it asks for.

    Each has a reference, and a rubric of which no attack meets a criterion but one that holds the reference.
    """
    with as_file(files(__package__).joinpath("tasks.jsonl")) as path:
        return tuple(read_tasks(path))


def _thinned(text: str) -> str:
    """Without every thirtieth word."""
    return " ".join(word for place, word in enumerate(text.split(), start=1) if place % 30)


def _full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


_FORMS: Mapping[str, Callable[[str], str]] = {
    "{reference}": lambda text: text,
    "{reference:capitals}": str.upper,
    "{reference:word-a-line}": lambda text: "\n".join(text.split()),
    "{reference:full-width}": _full_width,
    "{reference:zero-width}": "\u200b".join,
    "{reference:thinned}": _thinned,
}
"""Forms in which a reference is copied."""


@cache
def _bodies() -> tuple[str, ...]:
    """Worthless answers, in the order of their names."""
    return tuple(text for _, text in sorted(_file("bodies").items()))


@cache
def _suite(suite: Suite) -> tuple[Attack, ...]:
    return tuple(
        Attack(id=f"{suite}/{language}/{name}", suite=suite, kind=kind, language=language, text=text)
        for kind, languages in _file(suite).items()
        for language, texts in languages.items()
        for name, text in texts.items()
    )


def _file(name: str) -> dict[str, Any]:
    return dict(Document(files(__package__).joinpath(f"{name}.yaml").read_bytes().decode()).value)
