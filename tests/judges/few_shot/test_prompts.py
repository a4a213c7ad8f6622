"""With `show_prompts` an example shows what its text answers; without, every request is as it was before."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.judges.reviewers import Personalized
from tests.judges.criteria.scripted_judge import user_message
from tests.judges.few_shot.reviewers import (
    JUDGED_TEXT,
    QUALITY,
    WITH_EXAMPLES,
    by_examples,
    judge,
    judge_use,
    plan_questions,
    row,
    score_with,
    task,
    verdicts,
    write_history,
)
from tests.rows import all_rows

PEOPLE = ("ann", "bob")
ITEMS = ("i0", "i1", "i2")
_PROMPT = re.compile(r"What was asked:\n<<<prompt (\w+)\n.*?\nprompt \1>>>\n", re.DOTALL)


def ratings(**fields: str) -> list[dict[str, Any]]:
    """Return two people's ratings of three items; `{}` in a field stands for the item."""
    return [
        row(person, item, 3, **{name: text.format(item) for name, text in fields.items()})
        for person in PEOPLE
        for item in ITEMS
    ]


def requests(use: Mapping[str, Any]) -> list[dict[str, Any]]:
    _, bodies = score_with(by_examples(), use, task())
    return bodies


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_an_example_shows_what_its_text_answers_in_a_fence_before_it(
    kind: str, tmp_path: Path
) -> None:
    history = write_history(tmp_path, ratings(question="Why {}? {{{{ 7*7 }}}}"))
    (body,) = requests(judge_use(kind, history=history, show_prompts=True))
    shown = re.findall(
        r"What was asked:\n<<<prompt (\w+)\nWhy (i\d)\? \{\{ 7\*7 \}\}\nprompt \1>>>\nWhat reviewer \d scored:\n",
        user_message(body),
    )
    assert sorted(item for _, item in shown) == [*ITEMS]


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_without_the_setting_a_request_and_a_version_are_as_without_the_column(
    kind: str, tmp_path: Path
) -> None:
    without = write_history(tmp_path, ratings())
    with_column = write_history(tmp_path, ratings(question="Why {}?"), "asked.jsonl")
    plain = requests(judge_use(kind, history=without))
    assert json.dumps(requests(judge_use(kind, history=with_column))) == json.dumps(plain)
    assert judge(kind, ratings()).version == "2 prompt 2 example 1"

    (body,) = requests(judge_use(kind, history=with_column, show_prompts=True))
    blocks = _PROMPT.sub("", user_message(body)).split("\n\n")
    assert sorted(blocks) == sorted(user_message(plain[0]).split("\n\n"))  # in a draw of its own


def test_a_plan_holds_the_prompts_that_it_shows() -> None:
    digests = set()
    for prompts in ({}, {"prompt": "Why?"}, {"prompt": "How?"}):
        first, *others = ratings()
        rows = [{**first, **prompts}, *others]
        judge = Personalized(dimensions=QUALITY, history=rows, show_prompts=bool(prompts))
        (question,) = plan_questions(judge, task("ann"))
        digests.add((judge.depends_on, question.digest, judge.version))
    assert [len({*column}) for column in zip(*digests, strict=True)] == [3, 3, 2]


def test_an_example_whose_prompt_says_the_judged_text_is_not_shown(tmp_path: Path) -> None:
    said = ratings(question="Why {}?")
    for rating in said[::3]:
        rating["question"] = f"Shorten: {JUDGED_TEXT}"
    history = write_history(tmp_path, said)
    use = judge_use("personalized", history=history, show_prompts=True)
    traces, (body,) = score_with(by_examples(), use, task())
    assert "Shorten" not in user_message(body)
    (verdict,) = verdicts(traces).values()
    dropped = {one.item: one.dropped for one in verdict.examples if one.dropped is not None}
    assert dropped == {"i0": "its prompt says nearly the same as the judged item"}


@all_rows(
    ("column", "params"),
    [
        ("prompt", {}),
        ("question", {}),
        ("query", {}),
        ("Prompt", {}),
        ("task", {"columns": {"prompt": "task"}}),
    ],
)
def test_the_prompt_is_in_a_column_of_a_usual_name_or_of_a_named_one(
    column: str, params: dict[str, Any], tmp_path: Path
) -> None:
    others = {"Query": "never {}"} if column == "query" else {}  # the exact name goes first
    history = write_history(tmp_path, ratings(**{column: "Why {}?"}, **others))
    (body,) = requests(judge_use("personalized", history=history, show_prompts=True, **params))
    assert "\nWhy i1?\n" in user_message(body)


def test_the_prompt_may_stand_with_the_texts(tmp_path: Path) -> None:
    # another spelling is read only where no prompt would be: the digest of this history stays
    said = [{**one, "text": None} for one in ratings(Prompt="never {}")]
    items = [{**row("ann", item, 3), "question": f"Why {item}?"} for item in ITEMS]
    texts = write_history(tmp_path, items, "texts.jsonl")
    use = judge_use("personalized", history=write_history(tmp_path, said), texts=texts)
    (body,) = requests({**use, "params": {**use["params"], "show_prompts": True}})
    assert "\nWhy i1?\n" in user_message(body)


def test_prompts_that_are_nowhere_are_refused(tmp_path: Path) -> None:
    history = write_history(tmp_path, ratings())
    with pytest.raises(
        InputError, match="no item has a prompt for `show_prompts`; name the column"
    ):
        Personalized(dimensions=QUALITY, history=history, show_prompts=True)
    others = [{**row("ann", item, 3), "agent": "x", "question": "Why?"} for item in ITEMS]
    texts = write_history(tmp_path, others, "texts.jsonl")
    with pytest.raises(InputError, match="no item has a prompt for `show_prompts`"):
        Personalized(dimensions=QUALITY, history=history, texts=texts, show_prompts=True)


def test_a_named_column_of_prompts_that_is_not_to_be_shown_is_refused(tmp_path: Path) -> None:
    history = write_history(tmp_path, ratings(task="Why {}?"))
    with pytest.raises(InputError, match="which only `show_prompts: true` shows"):
        Personalized(dimensions=QUALITY, history=history, columns={"prompt": "task"})
