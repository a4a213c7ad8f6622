"""Nothing of what is judged stands among a prompt's examples, whatever a history holds of it and however it is chosen.

In every history the judged item, its group and what is nearly the same carry a word and a score of their own. Neither
may stand in a prompt, but for the response that is to be judged.
"""

import asyncio
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph import EvaluatorInput, Response, Task
from jurygraph.cli.render.summary import format_result_lines
from jurygraph.graphs.survey import view_task
from jurygraph.judges import reviewers
from jurygraph.judges.examples import Example
from jurygraph.models.gateway import Gateway
from jurygraph.models.judge_client import JudgeClient
from jurygraph.models.limits import RequestLimiter
from jurygraph.schema import CallsConfig
from jurygraph.testing import ScriptedJudge
from tests.judges.criteria import scripted_judge
from tests.judges.few_shot.reviewers import (
    ANY_NUMBER,
    WITH_EXAMPLES,
    by_examples,
    examples_shown,
    judge,
    judge_use,
    prose,
    response,
    row,
    rows,
    score_with,
    task,
    write_history,
)
from tests.runs.sample_runs import scored_session, write_tasks

HISTORIES = 5000
SECRET = 7.03125
"""The score of everything that gives the judged item away; others are whole numbers."""
TASK, OWN, GROUP = "trip", "answer", "harbour"
"""The ids of the task and of the judged response, and the group that one of them is of."""

Row = dict[str, Any]


def leaks_first(choice: str, examples: Iterable[Example], query: str, seed: int) -> list[Example]:
    """Order examples so that what must not be shown comes first."""
    return sorted(examples, key=lambda example: (example.score != SECRET, example.digest))


CHOICES = ("random", "similar", "leaks first")
every_choice = pytest.mark.parametrize("choice", CHOICES)


@pytest.fixture
def params(choice: str, monkeypatch: pytest.MonkeyPatch) -> Row:
    """Return the params of a judge that chooses its examples like this."""
    if choice in CHOICES[:2]:
        return {"choice": choice}
    monkeypatch.setattr(reviewers, "order_examples", leaks_first)
    return {}


# What gives a judged item away


class Case(NamedTuple):
    """A history, and the task and response about which it knows too much; `word` stands in nothing else."""

    word: str
    said: list[Row]
    about: Task
    judged: Response


def with_other_case(text: str, drawn: random.Random) -> str:
    return drawn.choice((text.upper(), text.title(), text.swapcase()))


def with_punctuation(text: str, drawn: random.Random) -> str:
    between = (" ", ", ", "\n", " - ", "  ")
    return "".join(f"{drawn.choice(between)}{word}" for word in text.split()) + "!?"


def with_one_word_replaced(text: str, drawn: random.Random) -> str:
    """Remove a word, and insert one there or elsewhere."""
    words = text.split()
    words.pop(drawn.randrange(len(words)))
    words.insert(drawn.randrange(len(words)), "".join(drawn.choices(string.ascii_lowercase, k=4)))
    return " ".join(words)


def within_other_text(text: str, drawn: random.Random) -> str:
    before, behind = (prose(drawn.randrange(10**9), drawn.randint(2, 20)) for _ in range(2))
    return f"{before}\n\n{text}\n\n{behind}"


NEARLY: Sequence[tuple[Callable[[str, random.Random], str], int]] = (
    (lambda text, drawn: text, 1),
    (with_other_case, 1),
    (with_punctuation, 1),
    (with_one_word_replaced, 14),
    (within_other_text, 8),
)
"""Changes that make a near-duplicate, each with the fewest words for which it does."""


def near_copy(text: str, drawn: random.Random) -> str:
    """Almost the same text."""
    known = [change for change, fewest in NEARLY if len(text.split()) >= fewest]
    return drawn.choice(known)(text, drawn)


Way = Callable[[str, random.Random], Row]
NEAR_REASON = "nearly the same reason"
WAYS: Mapping[str, Way] = {
    "the judged item": lambda text, drawn: {"item": OWN},
    "the judged item under another agent": lambda text, drawn: {
        "item": OWN,
        "agent": drawn.choice(("s", "l")),
    },
    "the task": lambda text, drawn: {"item": TASK},
    "the task under some agent": lambda text, drawn: {
        "item": TASK,
        "agent": drawn.choice(("small", "large")),
    },
    "one of the group": lambda text, drawn: {"item": f"boat{drawn.randrange(99)}", "group": GROUP},
    "one of a group named as the task": lambda text, drawn: {
        "item": f"ferry{drawn.randrange(99)}",
        "group": TASK,
    },
    "nearly the same text": lambda text, drawn: {
        "item": f"c{drawn.randrange(99)}",
        "text": near_copy(text, drawn),
    },
    NEAR_REASON: lambda text, drawn: {
        "item": f"echo{drawn.randrange(99)}",
        "reason": near_copy(text, drawn),
    },
}


def case(place: int, ways: Sequence[str] = tuple(WAYS)) -> Case:
    """A history drawn by its place, in which some of these ways are planted, for some reviewers each."""
    drawn = random.Random(place)
    word = f"vx{place}qj"
    words = prose(drawn.randrange(10**9), drawn.randint(1, 30)).rstrip(".").split()
    words.insert(drawn.randint(0, len(words)), word)
    judged = Response(id=OWN, text=" ".join(words) + ".")
    people = [f"person {number}" for number in range(drawn.randint(2, 4))]
    said = [*_innocent(people, drawn), *_planted(people, word, judged.text, ways, drawn)]
    drawn.shuffle(said)
    fields: Row = {
        "id": TASK,
        "query": drawn.choice(("Plan a trip.", judged.text.replace(word, "it"))),
    }
    told_by = drawn.choice(("the task", "the history"))
    if told_by == "the task":
        fields["group"] = GROUP
    else:
        said.append({"item": OWN, "reviewer": "somebody", "score": 1, "text": word, "group": GROUP})
    return Case(word, said, Task.model_validate({**fields, "reviewers": [people[0]]}), judged)


def _innocent(people: Sequence[str], drawn: random.Random) -> Iterator[Row]:
    """Yield ratings of other items."""
    for item in range(drawn.randint(1, 5)):
        text = prose(drawn.randrange(10**9), drawn.randint(3, 25))
        group = drawn.choice((None, f"group {item}"))
        for who in drawn.sample(people, drawn.randint(1, len(people))):
            yield {
                "item": f"other{item}",
                "reviewer": who,
                "score": drawn.randint(0, 10),
                "text": text,
                "group": group,
            }


def _planted(
    people: Sequence[str],
    word: str,
    text: str,
    ways: Sequence[str],
    drawn: random.Random,
) -> Iterator[Row]:
    """Return rows that reveal the judged item: the word in text or reason or both, and the secret score."""
    for way in drawn.sample(ways, drawn.randint(1, min(4, len(ways)))):
        for who in drawn.sample(people, drawn.randint(1, len(people))):
            plain = prose(drawn.randrange(10**9), 12)
            row = {"text": f"{plain} {word}", **WAYS[way](text, drawn)}
            if way == NEAR_REASON:
                row["text"] = plain
            elif drawn.random() < 0.3:
                row["reason"] = f"It says {word}, and more than that."
            yield {**row, "reviewer": who, "score": SECRET}


# What is asked about it


def prompts(cases: Iterable[Case], params: Row) -> Iterator[tuple[Case, str]]:
    """All that a model is asked, for one kind of judge after another; without a server."""
    backend = ScriptedJudge({"": {"value": 0}})

    async def asked(one: Case, place: int) -> list[str]:
        kind = WITH_EXAMPLES[place % 2]
        shots = 2 if place % 4 < 2 else 1
        judging = judge(
            kind, one.said, dimensions=ANY_NUMBER, shots=shots, seed=place % 5, **params
        )
        (view,) = view_task(one.about, ["reviewer"])
        (question,) = judging.questions(view)
        model = JudgeClient(Gateway(backend, RequestLimiter(8), CallsConfig()))
        await judging.answer(EvaluatorInput(question, view, (one.judged,), ({},), 0, model))
        said = [
            "\n".join(message.content for message in request.messages)
            for request in backend.requests
        ]
        backend.requests.clear()
        return said

    with asyncio.Runner() as loop:
        for place, one in enumerate(cases):
            if {row["reviewer"] for row in one.said}.isdisjoint(one.about.reviewers):
                continue  # a reviewer without any rating is refused
            for said in loop.run(asked(one, place)):
                yield one, said


def without_response(said: str, judged: Response) -> str:
    """Return a prompt without the response to be judged."""
    before, found, behind = said.partition(scripted_judge.fenced(judged.text, "response"))
    assert found
    return before + behind


def reveals_example(said: str, one: Case) -> bool:
    """Return true if a prompt contains the word, in any case and spacing, or the score."""
    rest = without_response(said, one.judged)
    return one.word in re.sub(r"[\W_]+", "", rest.casefold()) or f"{SECRET:g}" in rest


def leaking_prompts(cases: Iterable[Case], params: Row) -> list[str]:
    return [said for one, said in prompts(cases, params) if reveals_example(said, one)]


# Never


@pytest.mark.exhaustive
@every_choice
def test_no_example_reveals_the_judged_item(choice: str, params: Row) -> None:
    places = range(CHOICES.index(choice), HISTORIES, len(CHOICES))
    asked = 0
    for one, said in prompts(map(case, places), params):
        assert "# Scores from the past" in said
        assert not reveals_example(said, one), (one, said)
        asked += 1
    # of the others nothing at all could be shown, and nobody was asked
    assert asked > len(places) / 2


@every_choice
@pytest.mark.parametrize("way", WAYS)
def test_no_single_way_reveals_the_judged_item(way: str, params: Row) -> None:
    assert leaking_prompts((case(place, [way]) for place in range(8)), params) == []


@pytest.mark.parametrize("told", ["by the task", "by the history"])
def test_an_item_is_in_the_same_group_as_another_agents_work_on_it(
    tmp_path: Path, told: str
) -> None:
    said = [
        {
            "reviewer": "zoe",
            "score": 1,
            "text": prose(6),
            "item": "x",
            "agent": "m",
            "group": GROUP,
        },
        *(
            {"reviewer": who, "score": SECRET, "text": prose(7), "item": "x", "agent": "n"}
            for who in ("ann", "bob")
        ),
        *rows({"ann": (1, 2), "bob": (3, 4)}),
    ]
    if told == "by the history":
        said.append({"reviewer": "zoe", "score": 1, "text": prose(8), "item": "r", "group": GROUP})
    about = task("ann", group=GROUP) if told == "by the task" else task("ann")
    for kind in WITH_EXAMPLES:
        stated = judge_use(
            kind, history=write_history(tmp_path, said), shots=4, dimensions=ANY_NUMBER
        )
        (trace,), (body,) = score_with(by_examples(), stated, about)
        assert SECRET not in [score for _, score in examples_shown(body)]
        reasons = {one.dropped for one in trace.verdicts[0].examples if one.item == "x_n"}
        assert reasons == (set() if told == "by the task" else {"it is of the judged item's group"})


# Through the whole machine


@pytest.mark.parametrize(
    ("kind", "choice"), [("aggregate", "random"), ("personalized", "leaks first")]
)
def test_a_jury_shows_no_dropped_example_and_records_it(
    tmp_path: Path, kind: str, params: Row
) -> None:
    dropped = 0
    for place in range(6):
        one = case(HISTORIES + place)
        stated = {
            "history": write_history(tmp_path, one.said),
            "dimensions": ANY_NUMBER,
            "shots": 2,
            **params,
        }
        (trace,), bodies = score_with(
            by_examples(), judge_use(kind, **stated), one.about, one.judged
        )
        assert not [
            body for body in bodies if reveals_example(scripted_judge.user_message(body), one)
        ]
        for verdict in trace.verdicts:
            uses = [each for each in verdict.examples if each.score == SECRET]
            assert all(each.dropped is not None for each in uses)
            dropped += len(uses)
    assert dropped > 0


def test_an_example_dropped_for_one_response_is_shown_for_another(tmp_path: Path) -> None:
    judged, other = (
        response("We take the small ferry to the island before noon.", "a"),
        response(prose(1), "b"),
    )
    said = [
        row("ann", "x", 1),
        row("bob", "y", SECRET, text="WE TAKE the small ferry; to the island, before noon!"),
    ]
    stated = {"history": write_history(tmp_path, said), "dimensions": ANY_NUMBER, "shots": 1}
    traces, bodies = score_with(
        by_examples(), judge_use("aggregate", **stated), task("ann"), judged, other
    )
    assert [examples_shown(body) for body in bodies] == [[("reviewer 2", SECRET)]]
    uses = {trace.response_id: trace.verdicts[0].examples for trace in traces}
    assert {name: [one.dropped for one in found] for name, found in uses.items()} == {
        "a": ["it says nearly the same as the judged item"],
        "b": [None],
    }


def test_a_run_says_how_many_examples_were_not_shown(tmp_path: Path) -> None:
    text = "We take the small ferry to the island before noon."
    said = [row("ann", "x", 1), row("bob", "y", SECRET, text=text)]
    stated = {
        "history": write_history(tmp_path, said),
        "dimensions": ANY_NUMBER,
        "shots": 1,
        "samples": 2,
    }
    content = {"id": "t", "query": "Write.", "reviewers": ["ann", "bob"]}
    tasks = write_tasks(tmp_path, [{**content, "responses": [{"id": "a", "text": text}]}])
    config = {"model": ScriptedJudge({}), "evaluators": [judge_use("aggregate", **stated)]}
    with scored_session(tmp_path / "run", tasks, config) as scored:
        lines = format_result_lines(scored.summary)
    assert (
        "examples not shown, as they would give a response away: 1, with the reasons in "
        "`show --response`"
    ) in lines
