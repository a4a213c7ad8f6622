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
_FULL_WIDTH_TRANSLATION = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}


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
    is_channel = suite in SUITE_BY_ATTACK_CHANNEL
    for kind, languages in _load_attacks_yaml(SUITE_BY_ATTACK_CHANNEL.get(suite, suite)).items():
        for language, texts in languages.items():
            # a channel is a kind of its own, and sends some kinds of another suite in English
            if is_channel and (language != "en" or kind not in _CHANNEL_ATTACK_KINDS):
                continue
            for name, text in texts.items():
                yield Attack(
                    id=f"{suite}/{language}/{name}",
                    suite=suite,
                    kind=suite if is_channel else kind,
                    language=language,
                    text=text,
                )


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


_REFERENCE_WRITER_BY_PLACEHOLDER: Mapping[str, Callable[[str], str]] = {
    "{reference}": lambda text: text,
    "{reference:capitals}": str.upper,
    "{reference:word-a-line}": lambda text: "\n".join(text.split()),
    "{reference:full-width}": lambda text: text.translate(_FULL_WIDTH_TRANSLATION),
    "{reference:zero-width}": "\u200b".join,
    "{reference:thinned}": lambda text: " ".join(
        word for number, word in enumerate(text.split(), start=1) if number % 30
    ),
}
"""Functions that return the form of a reference for each placeholder."""


@cache
def _load_attacks_yaml(name: str) -> JsonFields:
    content = files(__package__).joinpath(f"{name}.yaml").read_bytes()
    return dict(Document(content.decode()).value)
