"""What a reviewer usually gives survives in the examples, each item is shown once, and counts say the rest."""

import csv
import gzip
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph import Jury
from jurygraph.errors import ConfigError, InputError
from jurygraph.judges.examples import BUILT_IN, Example, load_selector, order_examples
from tests.judges.criteria import scripted_judge
from tests.judges.few_shot.reviewers import (
    ANY_NUMBER,
    JUDGED_TEXT,
    KINDS,
    QUALITY,
    WITH_EXAMPLES,
    by_examples,
    candidates_of,
    judge,
    judge_use,
    load_history,
    plan_questions,
    response,
    row,
    rows,
    score_with,
    task,
    write_history,
)
from tests.models import judge_scripts
from tests.models.server import run_server

CONVABUSE = Path(__file__).parents[3] / "examples" / "consensus" / "convabuse.csv.gz"
SHOTS, SEEDS = 5, 100
EVERYBODY = {"ann": (1, 2, 3, 4), "bob": (1, 1, 1, 1), "cyd": (5, 5, 5, 5)}
"""Three reviewers of the same four items."""


# The base rate


def read_severities() -> dict[str, list[float]]:
    """Return what each rater of ConvAbuse gave, from 0 (no abuse) to 2."""
    with gzip.open(CONVABUSE, "rt", encoding="utf-8", newline="") as file:
        given = defaultdict(list)
        for vote in csv.DictReader(file):
            given[vote["annotator"]].append(float(vote["label"]))
    return given


def mean_of_draws(choice: str, scores: Sequence[float]) -> float:
    """Return the mean score of the examples that are shown, over the seeds."""
    examples = [{"key": f"i{n}", "digest": f"{n}", "score": score, "text": ""} for n, score in enumerate(scores)]
    draws = (BUILT_IN[choice](examples, seed).select_examples({"query": "q"})[:SHOTS] for seed in range(SEEDS))
    return statistics.fmean(example["score"] for draw in draws for example in draw)


@pytest.mark.exhaustive
def test_the_examples_of_each_rater_of_convabuse_have_the_mean_of_that_rater() -> None:
    given = read_severities()
    assert (len(given), sum(map(len, given.values()))) == (8, 9571)
    own = [statistics.fmean(scores) for scores in given.values()]
    drawn = [mean_of_draws("random", scores) for scores in given.values()]
    assert np.corrcoef(own, drawn)[0, 1] > 0.95
    assert np.abs(np.subtract(own, drawn)).max() < 0.1


def test_balanced_examples_are_alike_whoever_the_rater_is() -> None:
    strict, lenient = [0.0] * 90 + [1.0] * 5 + [2.0] * 5, [0.0] * 5 + [1.0] * 5 + [2.0] * 90
    assert mean_of_draws("balanced", strict) == pytest.approx(mean_of_draws("balanced", lenient), abs=0.05)
    assert mean_of_draws("random", lenient) - mean_of_draws("random", strict) > 1.5


def test_each_task_has_a_draw_of_its_own() -> None:
    judging = judge("personalized", rows({"ann": range(10), "bob": range(10)}), shots=2, dimensions=ANY_NUMBER)
    plans = [plan_questions(judging, task("ann", query=query)) for query in ("cats", "cats", "dogs", "birds", "fish")]
    first, again, *others = [candidates_of(question)[:2] for (question,) in plans]
    assert first == again
    assert len({str(draw) for draw in (first, *others)}) > 2


# An item once


def rated(*ratings: tuple[str, str, float]) -> tuple[Example, ...]:
    """Return the examples that reviewers other than `nobody` gave: reviewer, item and score each."""
    return load_history([row(*rating) for rating in ratings], ANY_NUMBER).examples_of_others("nobody", "quality")


some_ratings = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["i1", "i2", "i3", "i4"]), st.integers(0, 5).map(float)),
    max_size=24,
    unique_by=lambda rating: rating[:2],
)


@given(some_ratings, st.sampled_from(sorted(BUILT_IN)), st.integers(0, 2**40))
def test_every_item_comes_once_in_any_order(ratings: list[tuple[str, str, float]], choice: str, seed: int) -> None:
    ordered = order_examples(load_selector(choice), rated(*ratings), "cats", seed)
    assert Counter(one.item for one in ordered) == dict.fromkeys({item for _, item, _ in ratings}, 1)


def test_an_item_is_first_in_the_draw_as_often_as_it_was_rated() -> None:
    """So the first example has the base rate of the pool: four of five ratings are of the item that all rated."""
    given = rated(*((who, "all", 5.0) for who in "abcd"), ("e", "alone", 0.0))
    firsts = [order_examples(load_selector("random"), given, "", seed)[0].score for seed in range(1000)]
    assert statistics.fmean(firsts) == pytest.approx(4.0, abs=0.2)


# Counts


def counts_in(body: Mapping[str, Any]) -> tuple[str, dict[float, int]]:
    """Return whose scores a request counts, and how often each was given."""
    before, found, rest = scripted_judge.user_message(body).partition(" gave each score in the past; ")
    if not found:
        return "", {}
    listed = [line[2:].split(": ") for line in rest.split("\n\n")[0].splitlines()[1:]]
    whose = before.rpartition("How often ")[2]
    return whose, {float(score): int(number.split()[0]) for score, number in listed}


def count(tmp_path: Path, kind: str, said: Sequence[Mapping[str, Any]], *shown: Any, **params: Any) -> Any:
    """Return the counts in the requests of a judge that is to show them."""
    known = {} if kind == "zero-shot" else {"history": write_history(tmp_path, said)}
    stated = judge_use(kind, counts=True, **{**known, "shots": 2, **params})
    _, bodies = score_with(by_examples(statistics.median_low), stated, task("ann", group="g"), *shown)
    return [counts_in(body) for body in bodies]


def test_counts_are_of_the_ratings_that_each_judge_is_shown_from(tmp_path: Path) -> None:
    said = rows({"ann": (1, 1, 1, 4), "bob": (5, 5, 2, 2), "cyd": (5, 4, 4, 4)})
    assert count(tmp_path, "personalized", said) == [("reviewer 1", {1: 3, 4: 1})]
    assert count(tmp_path, "aggregate", said) == [("the other reviewers", {2: 2, 4: 3, 5: 3})]
    assert count(tmp_path, "zero-shot", said) == [("", {})]
    both = count(tmp_path, "personalized", said, shrinkage=1.0)
    assert sorted(both) == [("reviewer 1", {1: 3, 4: 1}), ("the other reviewers", {2: 2, 4: 3, 5: 3})]


LEAKS: Mapping[str, Mapping[str, Any]] = {
    "the judged response": {"item": "r"},
    "another agent's work on it": {"item": "x", "agent": "n"},
    "the task": {"item": "t"},
    "one of the task's group": {"item": "boat", "group": "g"},
    "nearly the same text": {"item": "copy", "text": JUDGED_TEXT.upper()},
}


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_counts_leave_out_what_must_not_be_shown(tmp_path: Path, kind: str, leak: Mapping[str, Any]) -> None:
    kept = rows({"ann": (1, 1, 4), "bob": (1, 1, 4)})
    said = [*kept, *({**row(who, "other", 5), **leak} for who in ("ann", "bob"))]
    name = "x_m" if "agent" in leak else "r"
    known = [{**row("zoe", "x", 1), "agent": "m"}] if "agent" in leak else []
    ((_, found),) = count(tmp_path, kind, [*said, *known], response(name=name))
    assert found == {1: 2, 4: 1}


def test_a_plan_whose_history_has_grown_is_refused(tmp_path: Path) -> None:
    with run_server(by_examples()) as server:
        config = {**judge_scripts.config(server.url, cache=False)}
        config["evaluators"] = [
            judge_use("personalized", counts=True, history=write_history(tmp_path, rows(EVERYBODY)))
        ]
        with Jury.from_config(config) as jury:
            plan = jury.prepare(task("ann"))
        write_history(tmp_path, [*rows(EVERYBODY), row("ann", "new", 1)])
        message = "counts the scores of a history that has changed since; put the file back, or prepare the task again"
        with Jury.from_config(config) as jury, pytest.raises(InputError, match=message):
            jury.score(task("ann"), [response()], plan)
        assert server.count == 0


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"counts": True, "shots": 0}, "counts: without examples no ratings are read; set shots to 1 or more"),
        (
            {"counts": True, "dimensions": ANY_NUMBER},
            r"dimensions\.quality\.step: counts are of scores in steps; give a step, or no counts",
        ),
    ],
)
def test_counts_that_cannot_be_shown_are_refused(kind: str, params: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        judge(kind, rows(EVERYBODY), **params)


# What is scored


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_names_the_dimension_and_the_words_of_its_scale_from_low_to_high(tmp_path: Path, kind: str) -> None:
    words = {"10": "just so", "2": "poor", "-3": "not at all", "else": "any other"}
    stated = {"appeal": {**QUALITY["quality"], "scale": [-3, 10], "anchors": words}}
    known = {} if kind == "zero-shot" else {"history": write_history(tmp_path, rows(EVERYBODY))}
    _, (body,) = score_with(by_examples(min, without=1), judge_use(kind, dimensions=stated, **known), task("ann"))
    user = scripted_judge.user_message(body)
    assert scripted_judge.fenced("appeal", "dimension") in user
    text = "How good it is.\n-3: not at all\n2: poor\n10: just so\nelse: any other"
    assert scripted_judge.fenced(text, "item") in user


# Cannot tell


def cannot_tell(body: Mapping[str, Any], **fields: Any) -> Any:
    """A reply that predicts no score."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]["score"]["properties"]
    said = {"reason": "neither is said", "quotes": [], "value": None, "confidence": None, **fields}
    return scripted_judge.reply_with(json.dumps({"score": {name: said[name] for name in schema}}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("confidence", [None, 10])
def test_a_judge_that_cannot_tell_abstains_with_its_reason(tmp_path: Path, kind: str, confidence: Any) -> None:
    known = {} if kind == "zero-shot" else {"history": write_history(tmp_path, rows(EVERYBODY))}
    (trace,), bodies = score_with(
        lambda body, _: cannot_tell(body, confidence=confidence), judge_use(kind, **known), task("ann")
    )
    (verdict,) = trace.verdicts
    assert (verdict.status, verdict.reason, verdict.score) == ("abstained", "neither is said", None)
    assert (len(bodies), verdict.call) == (1, trace.calls[0].id)  # nothing is quoted for it, and nothing repaired
    assert len(verdict.examples) == (0 if kind == "zero-shot" else 4)
    assert (trace.reward.status, trace.reward.value) == ("failed", None)
