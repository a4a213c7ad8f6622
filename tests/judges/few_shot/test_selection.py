"""The order of examples: drawn, by score or by similarity, always deterministic; a reviewer's base rate survives."""

import csv
import gzip
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from jurygraph import Jury, Question
from jurygraph.judges.examples import Example, ExampleChoiceMethod, order_examples
from tests.judges.criteria import scripted_judge
from tests.judges.few_shot.reviewers import (
    ANY_NUMBER,
    WITH_EXAMPLES,
    by_examples,
    candidates_of,
    examples_shown,
    judge,
    judge_use,
    load_history,
    plan_questions,
    prose,
    response,
    row,
    rows,
    score_with,
    task,
    write_history,
)
from tests.models import judge_scripts
from tests.models.server import run_server

QUERY = "Write about cats."
CONVABUSE = Path(__file__).parents[3] / "examples" / "consensus" / "convabuse.csv.gz"
SHOTS, SEEDS = 5, 100


def examples(*scores: float, texts: Sequence[str] = ()) -> list[Example]:
    """Examples of ann with these scores, and with these texts instead of their own."""
    changed = [{"text": text} for text in texts] or [{}] * len(scores)
    said = [
        row("ann", f"i{n}", score, **more)
        for n, (score, more) in enumerate(zip(scores, changed, strict=True))
    ]
    return load_history(said, ANY_NUMBER).examples_by_pool("ann", "quality")["own"]


def order_by(
    choice: Any, given: Sequence[Example], query: str = QUERY, seed: int = 0
) -> list[Example]:
    return order_examples(choice, given, query, seed)


some_scores = st.lists(st.integers(0, 5).map(float), max_size=20)
own_choices = st.sampled_from(get_args(ExampleChoiceMethod))
seeds = st.integers(0, 2**40)


# What all hold to


@given(some_scores, own_choices, seeds, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    scores: list[float], choice: str, seed: int, random: Any
) -> None:
    given = examples(*scores)
    turned = list(given)
    random.shuffle(turned)
    assert order_by(choice, turned, seed=seed) == order_by(choice, given, seed=seed)


def test_a_seed_draws_the_same_on_every_machine() -> None:
    given = examples(1, 1, 2, 2, 3, 3)
    found = [" ".join(one.item for one in order_by("random", given, seed=seed)) for seed in (0, 1)]
    assert found == ["i3 i1 i2 i0 i5 i4", "i0 i2 i3 i4 i1 i5"]


# Similar


@given(st.lists(st.integers(0, 30).map(prose), max_size=12), st.integers(0, 30), seeds)
def test_similar_orders_by_similarity_to_the_query(texts: list[str], place: int, seed: int) -> None:
    query = " ".join(prose(place).split()[:6])
    found = order_by("similar", examples(*([3] * len(texts)), texts=texts), query, seed)
    likeness = [fuzz.token_set_ratio(query, one.text) for one in found]
    assert likeness == sorted(likeness, reverse=True)


# The base rate


def read_severities() -> dict[str, list[float]]:
    """Return what each rater of ConvAbuse gave, from 0 (no abuse) to 2."""
    with gzip.open(CONVABUSE, "rt", encoding="utf-8", newline="") as file:
        given = defaultdict(list)
        for vote in csv.DictReader(file):
            given[vote["annotator"]].append(float(vote["label"]))
    return given


def mean_of_draws(scores: Sequence[float]) -> float:
    """Return the mean score of the examples that are shown, over the seeds."""
    draws = (order_by("random", examples(*scores), seed=seed)[:SHOTS] for seed in range(SEEDS))
    return statistics.fmean(example.score for draw in draws for example in draw)


@pytest.mark.exhaustive
def test_the_examples_of_each_rater_of_convabuse_have_the_mean_of_that_rater() -> None:
    given = read_severities()
    assert (len(given), sum(map(len, given.values()))) == (8, 9571)
    own = [statistics.fmean(scores) for scores in given.values()]
    drawn = [mean_of_draws(scores) for scores in given.values()]
    assert np.corrcoef(own, drawn)[0, 1] > 0.95
    assert np.abs(np.subtract(own, drawn)).max() < 0.1


def test_the_examples_of_a_strict_and_a_lenient_rater_differ_as_they_do() -> None:
    strict, lenient = [0.0] * 45 + [1.0] * 5 + [2.0] * 5, [0.0] * 5 + [1.0] * 5 + [2.0] * 45
    assert mean_of_draws(lenient) - mean_of_draws(strict) > 1.2


def test_each_task_has_a_draw_of_its_own() -> None:
    judging = judge(
        "personalized", rows({"ann": range(10), "bob": range(10)}), shots=2, dimensions=ANY_NUMBER
    )
    plans = [
        plan_questions(judging, task("ann", query=query))
        for query in ("cats", "cats", "dogs", "birds", "fish")
    ]
    first, again, *others = [candidates_of(question)[:2] for (question,) in plans]
    assert first == again
    assert len({str(draw) for draw in (first, *others)}) > 2


# An item once


def rated(*ratings: tuple[str, str, float]) -> list[Example]:
    """Return the examples that reviewers other than `nobody` gave: reviewer, item and score each."""
    history = load_history([row(*rating) for rating in ratings], ANY_NUMBER)
    return history.examples_by_pool("nobody", "quality")["others"]


some_ratings = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from(["i1", "i2", "i3", "i4"]),
        st.integers(0, 5).map(float),
    ),
    max_size=24,
    unique_by=lambda rating: rating[:2],
)


@given(some_ratings, own_choices, st.integers(0, 2**40))
def test_every_item_comes_once_in_any_order(
    ratings: list[tuple[str, str, float]], choice: str, seed: int
) -> None:
    ordered = order_by(choice, rated(*ratings), "cats", seed)
    assert Counter(one.item for one in ordered) == dict.fromkeys(
        {item for _, item, _ in ratings}, 1
    )


def test_an_item_is_first_in_the_draw_as_often_as_it_was_rated() -> None:
    """So the first example has the base rate of the pool: four of five ratings are of the item that all rated."""
    given = rated(*((who, "all", 5.0) for who in "abcd"), ("e", "alone", 0.0))
    firsts = [order_by("random", given, "", seed)[0].score for seed in range(1000)]
    assert statistics.fmean(firsts) == pytest.approx(4.0, abs=0.2)


# What the plan freezes


def frozen_question(kind: str, said: Sequence[Any], shots: int, **params: Any) -> Question:
    (question,) = plan_questions(
        judge(kind, said, shots=shots, dimensions=ANY_NUMBER, **params), task("ann")
    )
    return question


sizes = st.integers(0, 11)  # scores from 0 to 10, the ends of the scale


@given(sizes, sizes, st.integers(1, 6), own_choices, st.integers(0, 3))
def test_both_judges_show_equally_many_and_have_spares_of_their_own(
    own: int, others: int, shots: int, choice: str, seed: int
) -> None:
    said = rows({"ann": range(own), "bob": range(others)}) or rows({"eve": (1,)})
    # she is in the history also without a rating that can be shown
    said.append(row("ann", "not scored", None))
    found = [frozen_question(kind, said, shots, choice=choice, seed=seed) for kind in WITH_EXAMPLES]
    count = min(shots, own, others)
    most = count + max(count, 3)
    assert [one.params["count"] for one in found] == [count, count]
    assert [len(candidates_of(one)) for one in found] == [
        min(most, others or not own),
        min(most, own),
    ]
    assert [found[0].params[pool] for pool in ("own", "others")] == [
        found[1].params[pool] for pool in ("own", "others")
    ]
    assert {who for who, *_ in candidates_of(found[1])} <= {"ann"}
    assert "ann" not in {who for who, *_ in candidates_of(found[0])}


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_each_sample_is_drawn_by_the_next_seed(kind: str) -> None:
    said = rows({"ann": (1, 2, 3, 4, 5, 4, 3, 2, 1, 0), "bob": range(10)})
    sampled = frozen_question(kind, said, 2, seed=4, samples=3)
    assert sampled.samples == 3
    draws = [candidates_of(sampled, sample=sample) for sample in range(3)]
    assert draws == [
        candidates_of(frozen_question(kind, said, 2, seed=4 + sample)) for sample in range(3)
    ]
    assert len({str(draw) for draw in draws}) == 3


def test_a_spare_replaces_a_dropped_example(tmp_path: Path) -> None:
    said = rows({"ann": (1, 2, 3, 4, 5), "bob": (1, 2, 3, 4, 5)})
    question = frozen_question("personalized", said, 2)
    items = [item for _, item, _ in candidates_of(question)]
    stated = {"history": write_history(tmp_path, said), "shots": 2, "dimensions": ANY_NUMBER}
    first = response(text=next(one["text"] for one in said if one["item"] == items[0]))
    (trace,), (body,) = score_with(
        by_examples(), judge_use("personalized", **stated), task("ann"), first
    )
    assert [(one.item, one.dropped is None) for one in trace.verdicts[0].examples] == [
        (items[0], False),
        (items[1], True),
        (items[2], True),
    ]
    assert len(examples_shown(body)) == 2


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_a_plan_keeps_its_examples_after_the_history_grows(tmp_path: Path, kind: str) -> None:
    said = rows({"ann": (1, 1, 1), "bob": (1, 1, 1)})
    with run_server(by_examples()) as server:
        config = {
            **judge_scripts.config(server.url, cache=False),
            "evaluators": [judge_use(kind, history="", shots=3)],
        }
        config["evaluators"][0]["params"]["history"] = write_history(tmp_path, said)
        with Jury.from_config(config) as jury:
            plan = jury.prepare(task("ann"))
        write_history(
            tmp_path, said + [row(who, f"new{n}", 5) for who in ("ann", "bob") for n in range(9)]
        )
        with Jury.from_config(config) as jury:
            assert jury.prepare(task("ann")).digest != plan.digest
            jury.score(task("ann"), [response()], plan)
        (seen,) = server.requests
    assert [score for _, score in examples_shown(seen.body)] == [1.0, 1.0, 1.0]
    assert scripted_judge.user_message(seen.body).count("The score of") == 3
    assert json.loads(plan.model_dump_json())["survey"]["questions"][0]["params"]["count"] == 3
