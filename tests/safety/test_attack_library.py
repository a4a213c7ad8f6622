"""The forms of references in attacks, and the fields of each attack."""

from typing import get_args

import pytest

from jurygraph.safety.attacks import Suite, _drop_words, _to_full_width, attack_text, load_attacks
from jurygraph.schema import Task


def test_a_thinned_copy_lacks_every_thirtieth_word() -> None:
    words = [f"w{number}" for number in range(1, 62)]
    kept = [word for word in words if word not in ("w30", "w60")]
    assert _drop_words(" ".join(words)).split() == kept


def test_a_full_width_copy_has_other_letters_and_the_same_spaces() -> None:
    assert _to_full_width("A z! ~é") == "Ａ ｚ！ ～é"


@pytest.mark.parametrize("suite", get_args(Suite))
def test_every_attack_names_its_suite_and_its_language(suite: Suite) -> None:
    attacks = load_attacks(suite)
    assert attacks
    for attack in attacks:
        assert attack.suite == suite
        assert attack.id.startswith(f"{suite}/{attack.language}/")


def test_attacks_with_a_body_have_different_ones_and_each_always_the_same() -> None:
    task = Task(id="t", query="What is right?")
    attacks = [attack for attack in load_attacks() if "{body}" in attack.text]
    texts = [attack_text(attack, task) for attack in attacks]
    assert texts == [attack_text(attack, task) for attack in attacks]
    around = [attack.text.split("{body}", 1) for attack in attacks]
    bodies = [
        str(text).removeprefix(first).removesuffix(last) for text, (first, last) in zip(texts, around, strict=True)
    ]
    assert len(set(bodies)) > 1
    polite = attack_text(next(attack for attack in attacks if attack.id == "injection/de/polite"), task)
    assert polite is not None
    assert "I went through the matter from beginning to end." in polite
    assert all("{body}" not in body for body in bodies)
