"""Zero-shot, aggregate and personalized judges: three constructors that differ only in whose examples they carry."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple, get_args

from jurygraph.agents.judging.evaluator import Profile, shared
from jurygraph.agents.judging.items import Item, judge_items
from jurygraph.agents.roles import Ask, Evaluator
from jurygraph.errors import ConfigError, InputError
from jurygraph.judges.few_shot.choosing import in_order, selectors_of
from jurygraph.judges.few_shot.dimensions import Dimension, dimensions_of
from jurygraph.judges.few_shot.history import ReviewerHistory
from jurygraph.judges.few_shot.showing import Shown, as_shots, may_be_candidates, shown_of, use_of
from jurygraph.judges.few_shot.sieve import Example
from jurygraph.prompts import load_prompt
from jurygraph.schema import Audience, Layer, Question, Shrinkage, TaskView, Verdict, When
from jurygraph.schema.task import words_of

_SHORT = 16
"""Characters of a digest that only has to differ where what it is of does."""

FEWEST_SPARES = 3
"""Candidates beyond those that are to be shown: as many as these, and so many at least."""


class Pools(NamedTuple):
    """What may be shown of a reviewer's own examples and of everybody else's, each in its order once drawn."""

    own: Sequence[Example]
    others: Sequence[Example]


class ReviewerJudge(Evaluator):
    """Predicts what each of the task's reviewers would say of a response, on each dimension.

    Which examples may be shown, in which order, is frozen in the plan; both kinds of judges with examples take equally
    many, by equal seeds. A reviewer without any is no reason to guess: the judge abstains.

    Args:
        dimensions: what is scored, by name: {quality: {text: ..., scale: [1, 5]}}, or a ready set such as `ideas`.
        history: RATINGS file with what reviewers said of other items, or a history that was read already.
        texts: file with the items' texts, where the history has none.
        columns: what the history calls what we call item, reviewer, score, dimension, domain, group, text or reason.
        shots: examples that a judge is shown.
        choice: `balanced` over the scores, `similar` to the task's query, or a callable as package.module.name that
            makes a langchain-core example selector.
        seed: of the draw among equals.
        samples: how often each question is asked, each time by the next seed, and so by another draw of examples; what
            the answers come to is said by the config's `panel`.
        shrinkage: draws what a personalized judge predicts for reviewers with thin histories to what the aggregate
            judge says of the same response: with n ratings that may be shown, by shrinkage / (shrinkage + n). Each of
            its questions then takes two calls. 0 leaves all as it is.
        profile: `full`, or `compact` for fewer tokens.
    """

    audience: Audience = "reviewer"
    layer: Layer = "model"
    asks_model = True
    combiner = "panel"
    _shows: ClassVar[str] = ""
    """Which of the `Pools` its examples come from; none where empty."""

    def __init__(
        self,
        dimensions: str | Mapping[str, Any],
        history: str | ReviewerHistory | None = None,
        texts: str | None = None,
        columns: Mapping[str, str] | None = None,
        shots: int = 5,
        choice: str = "balanced",
        seed: int = 0,
        samples: int = 1,
        shrinkage: float = 0.0,
        profile: Profile = "full",
    ) -> None:
        _check_names(choice, history, texts, columns)
        if profile not in get_args(Profile):
            raise ConfigError(f"profile is one of {', '.join(get_args(Profile))}, not {profile!r}")
        self._dimensions = dimensions_of(dimensions)
        self._selectors = selectors_of(choice)
        self._shots, self._seed = _count("shots", shots, 0), _count("seed", seed, 0)
        self._samples = _count("samples", samples, 1)
        self._shrinkage = self._checked(shrinkage)
        self._compact = profile == "compact"
        self._history = _opened(history, texts, columns or {}, self._dimensions) if self._needs_history else None
        self.rests_on = "" if self._history is None else self._history.digest
        self._prompt = load_prompt("reviewer")
        self.version = f"1 prompt {self._prompt.edition} example {load_prompt('example').edition}"
        self.shares = {name: dimension.share for name, dimension in self._dimensions.items()}

    def _checked(self, shrinkage: Any) -> float:
        if shrinkage == 0:
            return 0.0
        raise ConfigError(f"shrinkage is for the personalized judge, and this is {self.name}; leave it out")

    @property
    def notes(self) -> Sequence[str]:
        """What of the history cannot be shown, and whose history is thin."""
        return () if self._history is None else self._history.notes(self._shots)

    @property
    def _needs_history(self) -> bool:
        return bool(self._shows) and self._shots > 0

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self._question(view, name, dimension) for name, dimension in self._dimensions.items()]

    def _question(self, view: TaskView, name: str, dimension: Dimension) -> Question:
        when = None
        for before, threshold in dimension.above.items():
            screening = self.question(view, before).id
            when = When(question=screening, op=">", threshold=threshold, reduce="median", on="native")
        stated = dimension.model_dump(mode="json", exclude={"above", "share"})
        params: dict[str, Any] = {"dimension": stated, **self._frozen(view, name)}
        if self._compact:
            params["compact"] = True
        return self.question(view, name, when=when, samples=self._samples, params=params)

    def _frozen(self, view: TaskView, dimension: str) -> dict[str, Any]:
        """How many examples to show, the candidates for it of either pool, a list a sample, and by what some of them
        may be dropped: the same for both kinds of judges, so that each knows how many the other can show."""
        if self._history is None:
            return {}
        pools, query = self._pools(self._history, view, dimension), words_of(view.query)
        seeds = range(self._seed, self._seed + self._samples)
        draws = [Pools(*(in_order(self._selectors, pool, query, seed) for pool in pools)) for seed in seeds]
        count = min(self._shots, *(len(drawn) for draw in draws for drawn in draw))
        listed = count + max(count, FEWEST_SPARES)
        candidates = {pool: [_named(getattr(draw, pool)[:listed]) for draw in draws] for pool in Pools._fields}
        relations = self._history.relations[:_SHORT]
        return {"count": count, **candidates, "relations": relations, **self._drawn_to_others(pools)}

    def _drawn_to_others(self, pools: Pools) -> dict[str, Any]:
        """By how much a prediction is drawn to what others' examples lead to; nothing where it is not."""
        return {}

    def _pools(self, history: ReviewerHistory, view: TaskView, dimension: str) -> Pools:
        """Everything of the task's domain, where it states one, that neither is the task nor belongs to its group."""
        stated = view.metadata.get("domain")
        asked = str(view.member), dimension, None if stated is None else str(stated)
        return Pools(*(may_be_candidates(pool, view, history) for pool in (history.of(*asked), history.others(*asked))))

    def check(self, question: Question) -> None:
        params: Any = question.params
        for draws in (params[pool] for pool in Pools._fields if pool in params):
            if question.samples > len(draws):
                raise ConfigError(
                    f"`samples` beside `use` is {question.samples}, and examples are drawn for {len(draws)}; write "
                    "params.samples instead"
                )
            for stated in chain.from_iterable(draws):
                self._example(stated, question)

    def _example(self, stated: Any, question: Question) -> Example:
        found = None if self._history is None else self._history.example(stated["fingerprint"])
        if found is None:
            which = f"what {stated['reviewer']!r} said of {stated['item']!r}"
            raise InputError(
                f"the plan for question {question.id!r} shows {which}, which the history no longer holds as it was; "
                "put the file back, or prepare the task again (a run: score into another --out, with --branch)"
            )
        return found

    async def answer(self, ask: Ask) -> Verdict:
        if self._history is None or "count" not in ask.question.params:
            return await self._predicted(ask, Shown((), ()))
        return await self._answered(ask, self._shows, self._left(ask, self._history))

    def _left(self, ask: Ask, history: ReviewerHistory) -> dict[str, Shown]:
        """What is left of either pool once all that gives the response away is dropped."""
        params: Any = ask.question.params
        count = max(params["count"], 1)  # one is looked for also where none is shown: a reason names who has none
        candidates = {
            pool: [self._example(one, ask.question) for one in params[pool][ask.sample]] for pool in Pools._fields
        }
        return {pool: shown_of(drawn, count, ask.response, ask.task, history) for pool, drawn in candidates.items()}

    async def _answered(self, ask: Ask, pool: str, left: Mapping[str, Shown]) -> Verdict:
        """What the examples of a pool lead to: as many as are left of both."""
        planned: Any = ask.question.params["count"]
        shown = left[pool].first(min(planned, *(len(one.examples) for one in left.values())))
        if shown.examples:
            return await self._predicted(ask, shown)
        return Verdict.abstained(_why_nothing(ask, pool, left)).model_copy(update={"examples": shown.uses})

    async def _predicted(self, ask: Ask, shown: Shown) -> Verdict:
        """The prediction from these examples."""
        assert ask.gateway is not None, "asked without a model"
        dimension = self._dimensions[ask.question.subject]
        item = Item(dimension.text, dimension.form, anchors=tuple(sorted(dimension.anchors.items())))
        variables = {
            **shared(ask),
            "examples": as_shots(shown.examples, str(ask.task.member)),
            "step": None if dimension.step == 1.0 else dimension.step,
        }
        (verdict,) = await judge_items(
            ask.gateway,
            self._prompt,
            {"score": item},
            variables,
            ask.response.text,
            sample=ask.sample,
            compact=self._compact,
        )
        return verdict.model_copy(update={"examples": shown.uses})


class ZeroShot(ReviewerJudge):
    """Shows no example: what the model says by itself."""

    name = "zero-shot"


class Aggregate(ReviewerJudge):
    """Shows examples of everybody but the reviewer: the assumption that there is one standard."""

    name = "aggregate"
    _shows = "others"


class Personalized(ReviewerJudge):
    """Shows examples of the reviewer alone: the assumption that reviewers have standards of their own."""

    name = "personalized"
    _shows = "own"

    def _checked(self, shrinkage: Any) -> float:
        if isinstance(shrinkage, bool) or not isinstance(shrinkage, int | float) or not 0.0 <= shrinkage < float("inf"):
            raise ConfigError(f"shrinkage is a number from 0 on, not {shrinkage!r}")
        return float(shrinkage)

    def _drawn_to_others(self, pools: Pools) -> dict[str, Any]:
        return {"shrinkage": self._shrinkage / (self._shrinkage + len(pools.own))} if self._shrinkage else {}

    async def answer(self, ask: Ask) -> Verdict:
        if self._history is None or "shrinkage" not in ask.question.params:
            return await super().answer(ask)
        left = self._left(ask, self._history)
        own, toward = await asyncio.gather(*(self._answered(ask, pool, left) for pool in Pools._fields))
        return _shrunk(own, toward, ask.question.params["shrinkage"])


def _why_nothing(ask: Ask, pool: str, left: Mapping[str, Shown]) -> str:
    """Why nothing of a pool is shown: nothing is left of it, or else of the other one."""
    subject, who = repr(ask.question.subject), f"reviewer {ask.task.member!r}"
    if not left[pool].examples:
        lacking, reason = pool, f"no rating of {subject} can be shown for {who}"
    else:
        (lacking,) = (other for other in left if other != pool)
        given = "none of theirs" if lacking == "own" else "none by others"
        reason = f"ratings of {subject} by {who} and by others are shown in equal numbers, and {given} can be shown"
    dropped = len(left[lacking].uses)
    return f"{reason}; {dropped} were dropped" if dropped else reason


def _shrunk(own: Verdict, toward: Verdict, weight: Any) -> Verdict:
    """A prediction drawn to another; where there is no score of one of the two, there is none of what they were to come
    to."""
    if own.score is None or toward.score is None or own.scale is None:
        return (own if own.score is None else toward).model_copy(update={"examples": own.examples})
    score = (1.0 - weight) * own.score + weight * toward.score
    low, high = own.scale
    shrinkage = Shrinkage(weight=weight, toward=toward.score, call=toward.call, examples=toward.examples)
    sure = min(one for one in (own.confidence, toward.confidence) if one is not None)
    told = {"score": score, "native": low + score * (high - low), "confidence": sure}
    return own.model_copy(update={**told, "shrinkage": shrinkage})


def _named(examples: Sequence[Example]) -> list[dict[str, Any]]:
    return [use_of(example).model_dump(mode="json") for example in examples]


def _count(name: str, value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise ConfigError(f"{name} is a whole number from {least} on, not {value!r}")
    return value


def _check_names(choice: Any, history: Any, texts: Any, columns: Any) -> None:
    """Refuse what names no selector, file or column."""
    if not isinstance(choice, str):
        raise ConfigError(f"choice is text, such as balanced, not {choice!r}")
    for name, file in (("history", history), ("texts", texts)):
        if not isinstance(file, str | ReviewerHistory | None):
            raise ConfigError(f"{name} is text, the name of a file, not {file!r}")
    if columns is not None and not (
        isinstance(columns, Mapping) and all(isinstance(one, str) for pair in columns.items() for one in pair)
    ):
        raise ConfigError(f"columns is a mapping of text to text, such as {{reviewer: who}}, not {columns!r}")


def _opened(
    history: str | ReviewerHistory | None, texts: str | None, columns: Mapping[str, str], dimensions: Mapping[str, Any]
) -> ReviewerHistory:
    if isinstance(history, ReviewerHistory):
        return history
    if history is None:
        raise ConfigError("history: name a RATINGS file with what reviewers said of other items, or set shots to 0")
    scales = {name: dimension.scale for name, dimension in dimensions.items()}
    return ReviewerHistory.read(history, texts, columns, scales=scales)
