"""Attacks on judges: responses that try to get credit without doing any task, and tasks to test them on.

They cover the kinds of the public lists (BIPIA, garak, spikee, Cheating-LLM-Benchmarks, "One Token to Fool
LLM-as-a-Judge"), in new wording, one file per suite; no judge should give any of them credit.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import as_file, files
from itertools import chain
from typing import Literal, get_args

from jurygraph.schema import FrozenModel, Response, Task, digest_of
from jurygraph.schema.frozen_model import Id, JsonFields
from jurygraph.sources import read_tasks
from jurygraph.sources.config import Document

AttackSuite = Literal[
    "master-keys", "null", "injection", "reference", "tool-result", "context", "lookup"
]
SUITE_BY_ATTACK_CHANNEL: Mapping[str, AttackSuite] = dict.fromkeys(
    ("tool-result", "context", "lookup"), "injection"
)
"""Suites that send attacks of another through what the response's author did not write, with a worthless answer."""
_CHANNEL_ATTACK_KINDS = ("order", "ready-verdict", "fake-turn", "fence-escape")
_WORTHLESS_ANSWER = "I could not find out."


class Attack(FrozenModel):
    """A response made to win; `make_attack_text` fills `{reference}`, in several forms, and `{body}` in its `text`.

    `language` is a BCP 47 tag, `zxx` if there is no language.
    """

    id: Id
    suite: AttackSuite
    kind: Id
    language: Id
    text: str


def load_attacks(suite: AttackSuite | Literal["all"] = "all") -> tuple[Attack, ...]:
    """Return the attacks of a suite, or of all, ordered by id, such as injection/de/footnote-full-marks."""
    attack_suites = get_args(AttackSuite) if suite == "all" else (suite,)
    attacks = chain.from_iterable(map(_load_suite, attack_suites))
    return tuple(sorted(attacks, key=lambda attack: attack.id))


def _load_suite(suite: AttackSuite) -> Iterator[Attack]:
    for kind, languages in _load_suite_texts(suite).items():
        for language, texts in languages.items():
            for name, text in texts.items():
                attack_id = f"{suite}/{language}/{name}"
                yield Attack(id=attack_id, suite=suite, kind=kind, language=language, text=text)


def _load_suite_texts(suite: AttackSuite) -> JsonFields:
    """Return the texts of a suite by kind, language and name; a channel is a kind, in English."""
    if suite not in SUITE_BY_ATTACK_CHANNEL:
        return _load_attacks_yaml(suite)
    kinds = _load_attacks_yaml(SUITE_BY_ATTACK_CHANNEL[suite])
    texts: dict[str, str] = {}
    for kind in _CHANNEL_ATTACK_KINDS:
        texts |= kinds[kind].get("en", {})
    return {suite: {"en": texts}}


def make_attack_response(attack: Attack, task: Task) -> Response | None:
    """Return the response that carries the attack; None where `make_attack_text` gives none.

    Through a result of a tool, the context or a lookup of the judge, the answer itself is worthless.
    """
    text = make_attack_text(attack, task)
    if text is None:
        return None
    if attack.suite == "context":
        return Response(id=attack.id, text=_WORTHLESS_ANSWER)
    if attack.suite == "lookup":
        # with a number, since equal requests have one investigation for all of them
        number = int(digest_of(attack.id)[:8], 16)
        return Response(id=attack.id, text=f"{_WORTHLESS_ANSWER} ({number})")
    if attack.suite != "tool-result":
        return Response(id=attack.id, text=text)
    call = {"id": "1", "function": {"name": "look_up", "arguments": {"query": task.id}}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": text, "tool_call_id": "1"},
        {"role": "assistant", "content": _WORTHLESS_ANSWER},
    ]
    return Response(id=attack.id, messages=messages)


def make_attack_text(attack: Attack, task: Task) -> str | None:
    """Return the attack as a response to a task; None if it copies a reference and the task has none."""
    text = attack.text
    if "{body}" in text:
        attack_bodies = [body for _, body in sorted(_load_attacks_yaml("bodies").items())]
        index = int(digest_of(attack.id)[:8], 16) % len(attack_bodies)
        text = text.replace("{body}", attack_bodies[index])
    for placeholder, rewrite_reference in _REFERENCE_WRITER_BY_PLACEHOLDER.items():
        if placeholder in text:
            if task.reference is None:
                return None
            text = text.replace(placeholder, rewrite_reference(task.reference))
    return text


def load_attack_tasks() -> tuple[tuple[Task, tuple[Response, ...]], ...]:
    """Return tasks to test attacks on, each with honest responses (label `honest`) that do everything that it asks for.

    Each has a reference and a rubric; no attack meets a criterion of it, except one that contains the reference.
    """
    with as_file(files(__package__).joinpath("tasks.jsonl")) as path:
        return tuple(read_tasks(path))


def _drop_some_words(text: str) -> str:
    return " ".join(word for number, word in enumerate(text.split(), start=1) if number % 30)


def _to_full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


_REFERENCE_WRITER_BY_PLACEHOLDER: Mapping[str, Callable[[str], str]] = {
    "{reference}": lambda text: text,
    "{reference:capitals}": str.upper,
    "{reference:word-a-line}": lambda text: "\n".join(text.split()),
    "{reference:full-width}": _to_full_width,
    "{reference:zero-width}": "\u200b".join,
    "{reference:thinned}": _drop_some_words,
}
"""Functions that return the form of a reference for each placeholder."""


@cache
def _load_attacks_yaml(name: str) -> JsonFields:
    content = files(__package__).joinpath(f"{name}.yaml").read_bytes()
    return dict(Document(content.decode()).value)
