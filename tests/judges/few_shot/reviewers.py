"""Reviewers, their ratings of other items, and a model that follows the examples in its prompt alone."""

import json
import random
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jurygraph import Question, RecordedVerdict, Response, Task, Trace
from jurygraph.graphs.survey import view_task
from jurygraph.judges.examples import ReviewerHistory
from jurygraph.judges.reviewers import Aggregate, Personalized, ReviewerJudge, ZeroShot
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import RatingsFile
from tests.judges.criteria import scripted_judge
from tests.models.judge_scripts import Script, quotable, response_in
from tests.models.server import Answer, reply_with

KINDS = ("zero-shot", "aggregate", "personalized")
WITH_EXAMPLES = KINDS[1:]
QUALITY: Mapping[str, Any] = {"quality": {"text": "How good it is.", "scale": [1, 5]}}
ANY_NUMBER: Mapping[str, Any] = {
    "quality": {"text": "How good it is.", "scale": [0, 10], "step": None}
}
"""A scale on which every median is a score."""
JUDGED_TEXT = "The judged one: it says what no other says, and nobody has seen it before."

_SYLLABLES = (
    "ba",
    "ko",
    "mi",
    "tun",
    "sel",
    "ra",
    "vi",
    "dop",
    "lu",
    "gen",
    "ash",
    "po",
    "rik",
    "we",
    "zum",
    "fa",
)
_EXAMPLES = re.compile(
    r"\n# Scores from the past\n\nWhat reviewer \d+ scored:\n.*?\n\n(?=# (?:Response|What is scored)\n)",
    re.DOTALL,
)
_SCORE = re.compile(r"^The score of (reviewer \d+): (.+)$", re.MULTILINE)


# What reviewers said


def prose(place: int, words: int = 24) -> str:
    """A text of its own for every place: made-up words, of which no two texts share many in a row."""
    drawn = random.Random(place)
    return (
        " ".join(
            "".join(drawn.choices(_SYLLABLES, k=drawn.randint(1, 3))) for _ in range(words)
        ).capitalize()
        + "."
    )


def row(reviewer: str, item: str, score: float | None, **fields: Any) -> dict[str, Any]:
    """A line of a RATINGS file; the text is the item's own."""
    text = prose(int.from_bytes(item.encode(), "big"))
    return {"reviewer": reviewer, "item": item, "score": score, "text": text, **fields}


def rows(scores: Mapping[str, Sequence[float]], **fields: Any) -> list[dict[str, Any]]:
    """Return the ratings of reviewers, one item per score: `i0`, `i1`, …"""
    return [
        row(who, f"i{n}", score, **fields)
        for who, given in scores.items()
        for n, score in enumerate(given)
    ]


def write_history(
    folder: Path, ratings: Sequence[Mapping[str, Any]], name: str = "history.jsonl"
) -> str:
    """Write a RATINGS file and return its path."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(one)}\n" for one in ratings), encoding="utf-8")
    return str(path)


def load_history(
    ratings: Sequence[Mapping[str, Any]],
    dimensions: Mapping[str, Any] = QUALITY,
) -> ReviewerHistory:
    """Return a history without a file."""
    placed = tuple(
        (f"line {n}", Rating.model_validate(one)) for n, one in enumerate(ratings, start=1)
    )
    return ReviewerHistory(
        RatingsFile("h.jsonl", placed),
        scales={name: one["scale"] for name, one in dimensions.items()},
    )


# What is asked


def judge_use(kind: str, **params: Any) -> dict[str, Any]:
    """Return a judge as a config names it, with one sample of each question."""
    return {"use": kind, "params": {"dimensions": QUALITY, "samples": 1, **params}}


def task(*reviewers: str, **fields: Any) -> Task:
    defaults: dict[str, Any] = {
        "id": "t",
        "query": "Write about cats.",
        "reviewers": reviewers or ("ann",),
    }
    return Task.model_validate(defaults | fields)


def response(text: str = JUDGED_TEXT, name: str = "r") -> Response:
    return Response(id=name, text=text)


def judge(kind: str, ratings: Sequence[Mapping[str, Any]] = (), **params: Any) -> ReviewerJudge:
    """Return a judge with a history that has no file, which takes one sample of each question."""
    defaults = {"dimensions": QUALITY, "samples": 1, **params}
    if kind == "zero-shot":
        return ZeroShot(**defaults)
    made = {"aggregate": Aggregate, "personalized": Personalized}[kind]
    return made(**defaults, history=list(ratings))


def plan_questions(judge: ReviewerJudge, about: Task) -> list[Question]:
    """Return the questions of a judge, by reviewer and dimension."""
    return [
        question for view in view_task(about, ["reviewer"]) for question in judge.questions(view)
    ]


POOLS = {"aggregate": "others", "personalized": "own"}
"""Whose examples a judge is shown, as plans name them."""


def candidates_of(
    question: Question, pool: str | None = None, sample: int = 0
) -> list[tuple[str, str, float]]:
    """Return the frozen candidates of a question's sample: reviewer, item and score."""
    draws: Any = question.params[pool or POOLS[question.evaluator]]
    defaults = draws[sample]
    return [(one["reviewer"], one["item"], one["score"]) for one in defaults]


def score_with(
    script: Script, use: Mapping[str, Any], about: Task, *group: Response, **settings: Any
) -> tuple[list[Trace], list[dict[str, Any]]]:
    """The traces of a group before one judge, and the bodies of all requests; `settings` as a config has them."""
    return scripted_judge.score_by_script(
        script, about, group or (response(),), use=[use], settings=settings, cache=False
    )


def verdicts(traces: Sequence[Trace]) -> dict[str, RecordedVerdict]:
    """Return the verdicts on the one response by question, the first of several samples."""
    return {one.question: one for trace in traces for one in reversed(trace.verdicts)}


# What a model is shown, and says


def examples_shown(body: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the examples in a request: the reviewer's pseudonym, and the score."""
    return [(who, float(score)) for who, score in _SCORE.findall(examples_in(body))]


def examples_in(body: Mapping[str, Any]) -> str:
    """Return the part of a request with the examples; empty if it has none."""
    found = _EXAMPLES.search(scripted_judge.user_message(body))
    return found.group() if found else ""


def without_examples(body: Mapping[str, Any]) -> str:
    """Return a request byte for byte, without its examples."""
    system, user = body["messages"]
    left = {**user, "content": _EXAMPLES.sub("\n", scripted_judge.user_message(body))}
    return json.dumps({**body, "messages": [system, left]})


def prediction_reply(
    body: Mapping[str, Any], value: float, confidence: float = 90, quotes: Any = None
) -> Answer:
    """Return a valid reply that quotes the beginning of the response."""
    fields = body["response_format"]["json_schema"]["schema"]["properties"]["score"]["properties"]
    if quotes is None:
        quotes = (
            quotable(response_in(body))
            if "<<<response " in scripted_judge.user_message(body)
            else []
        )
    told = {"reason": "so it is", "quotes": quotes, "value": value, "confidence": confidence}
    return reply_with(json.dumps({"score": {name: told[name] for name in fields}}))


def by_examples(
    of: Callable[[Sequence[float]], float] = statistics.median,
    without: float = 3,
    confidence: float = 90,
) -> Script:
    """A model that answers what the scores it is shown come to, and always the same where it is shown none."""

    def script(body: dict[str, Any], number: int) -> Answer:
        scores = [score for _, score in examples_shown(body)]
        value = of(scores) if scores else without
        return prediction_reply(
            body, int(value) if float(value).is_integer() else value, confidence
        )

    return script


def replying_values(
    *values: float, confidence: Sequence[float] = (90,), quotes: Sequence[str] | None = None
) -> Script:
    """Return a model that replies these values in turn, and then the last one again."""

    def script(body: dict[str, Any], number: int) -> Answer:
        value, sure = (told[min(number, len(told)) - 1] for told in (values, confidence))
        return prediction_reply(body, value, sure, quotes)

    return script
