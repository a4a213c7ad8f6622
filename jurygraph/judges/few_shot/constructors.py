"""Zero-shot, aggregate and personalized judges: three evaluators that differ only in the examples they show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from jurygraph.agents.judging.evaluator import Profile, shared_prompt_variables
from jurygraph.agents.judging.items import Item, judge_items
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.concurrency import each_answered
from jurygraph.errors import ConfigError, InputError, PlanError
from jurygraph.judges.few_shot import shown_examples
from jurygraph.judges.few_shot.dimensions import Dimension, Dimensions, ReadySet, check_screening, load_ready_set
from jurygraph.judges.few_shot.history import Example, LoadedHistory, ReviewerHistory
from jurygraph.judges.few_shot.pairs import combine_orders, missing_verdict, no_pair, swap_response
from jurygraph.judges.few_shot.selection import load_selector, order_examples
from jurygraph.judges.few_shot.shown_examples import (
    ShownExamples,
    as_shots,
    choose_examples,
    example_use,
    format_score,
)
from jurygraph.messages import did_you_mean, join_names, quote
from jurygraph.prompts import load_prompt
from jurygraph.schema import Audience, Condition, Layer, Question, Shrinkage, TaskView, Verdict
from jurygraph.schema.frozen_model import Count, Flag, ParamsModel, PositiveInt
from jurygraph.schema.task import NonNegative, query_text

MIN_SPARES = 3
"""Least number of spare candidates; there are as many spares as examples to be shown, but at least this many."""


_PREPARE_AGAIN = "put the file back, or prepare the task again (a run: score into another --out, with --branch)"

POOLS = ("own", "others")  # examples that may be shown: the reviewer's own and those of all others


class ReviewerJudge(Evaluator):
    """Predict the score that each of the task's reviewers would give a response, on each dimension.

    The plan freezes which examples may be shown, and their order; both kinds of judges with examples use equally many,
    with equal seeds. For a reviewer without examples the judge abstains rather than guesses; one who is not in the
    history is refused.
    """

    class Params(ParamsModel):
        dimensions: ReadySet | Dimensions
        """What is scored, by name: {quality: {text: ..., scale: [1, 5]}}, or a ready set: `ideas`."""
        history: str | LoadedHistory | None = None
        """RATINGS file with reviewers' scores of other items; in Python also a loaded history."""
        texts: str | None = None
        """File with the items' texts, if the history has none."""
        columns: dict[str, str] = Field(default_factory=dict)
        """The history's names of the columns item, reviewer, score, dimension, domain, group, text and reason."""
        shots: Count = 5
        """Number of examples that a judge is shown."""
        choice: str = "random"
        """`random`, so that a reviewer's base rate survives, `balanced` over the scores, `similar` to the task's query,
        or a callable as package.module.name that makes a langchain-core example selector. An item that several
        reviewers rated is shown once."""
        seed: Count = 0
        """Seed of the draw, or of the draw among equal candidates."""
        samples: PositiveInt = 3
        """Number of answers to each question, each with the next seed and so with another draw of examples; the
        config's `panel` combines them."""
        counts: Flag = False
        """Show, before the examples, how often each score was given in all ratings that may be shown: the reviewer's
        own for the personalized judge, those of all others for the aggregate judge."""
        both_orders: Flag = False
        """The items are pairs. Each is judged in both orders, in two calls, and the score is (given + 1 - swapped) / 2.
        Its two texts are `first` and `second` in the data of a response and in the file of texts. Reasons are not shown
        then, since they may name a position."""
        profile: Profile = "full"
        """`full`, or `compact` for fewer tokens."""

        @property
        def resolved_dimensions(self) -> dict[str, Dimension]:
            """The dimensions, sorted by name."""
            dimensions = load_ready_set(self.dimensions) if isinstance(self.dimensions, str) else self.dimensions
            return dict(sorted(dimensions.items()))

        @model_validator(mode="after")
        def _check_dimensions(self) -> Self:
            """Refuse thresholds that screen nothing, and a scale that `both_orders` or `counts` cannot use."""
            dimensions = self.resolved_dimensions
            check_screening(dimensions)
            for name, dimension in dimensions.items():
                low, high = dimension.scale
                if self.both_orders and low != -high:
                    problem = f"goes from {low:g} to {high:g}, which is not symmetric about 0, where neither is better"
                    raise ValueError(f"`dimensions.{name}.scale` {problem}; write [-1, 1], or no both_orders")
                if self.both_orders and dimension.not_applicable is not None:
                    problem = "has no mirror image; leave it out, or both_orders"
                    raise ValueError(f"`dimensions.{name}.not_applicable` {problem}")
                if self.counts and dimension.step is None:
                    problem = "counts are of scores in steps; give a step, or no counts"
                    raise ValueError(f"`dimensions.{name}.step` {problem}")
            return self

    audience: Audience = "reviewer"
    layer: Layer = "model"
    uses_model = True
    combiner = "panel"
    bounds_its_time = True
    settings: Params
    _pool: ClassVar[str] = ""
    """The one of `POOLS` that its examples come from; empty for no examples."""
    _shrinkage = 0.0

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._dimensions = self.settings.resolved_dimensions
        self._selectors = load_selector(self.settings.choice)
        has_examples = bool(self._pool) and self.settings.shots > 0
        if self.settings.counts and self._pool and not has_examples:
            raise ConfigError("counts: without examples no ratings are read; set shots to 1 or more, or leave it out")
        self._history = self._load_history() if has_examples else None
        self.depends_on = "" if self._history is None else self._history.digest
        self._prompt = load_prompt("reviewer")
        self.version = f"2 prompt {self._prompt.full_version} example {load_prompt('example').full_version}"
        self.shares = {name: dimension.share for name, dimension in self._dimensions.items()}

    def _load_history(self) -> ReviewerHistory:
        history = self.settings.history
        texts = self.settings.texts
        both_orders = self.settings.both_orders
        if history is None:
            raise ConfigError("history: name a RATINGS file with reviewers' ratings of other items, or set shots to 0")
        if isinstance(history, ReviewerHistory):
            if both_orders and not history.has_pairs:
                raise ConfigError("history: was loaded without the two texts of its pairs; give it `pairs`")
            return history
        if both_orders and texts is None:
            raise ConfigError("texts: both_orders swaps two texts of an item; name a file with `first` and `second`")
        scales = {name: dimension.scale for name, dimension in self._dimensions.items()}
        return ReviewerHistory.read(history, texts, self.settings.columns, scales=scales, has_pairs=both_orders)

    @property
    def notes(self) -> Sequence[str]:
        """Notes on ratings that cannot be shown, and on reviewers with few or constant ratings."""
        return () if self._history is None else self._history.notes(self.settings.shots)

    @property
    def known_reviewers(self) -> Sequence[str]:
        """The reviewers in the history, sorted; empty without one, as any reviewer can be predicted then."""
        return () if self._history is None else self._history.reviewers

    def questions(self, view: TaskView) -> Sequence[Question]:
        history = self._history
        if history is not None and view.member not in history.reviewers:
            hint = did_you_mean(str(view.member), history.reviewers) or f"it has {join_names(history.reviewers)}"
            raise PlanError(f"task {view.id!r}: reviewer {view.member!r} is not in {history.name}; {hint}")
        return [self._question(view, name, dimension) for name, dimension in self._dimensions.items()]

    def _question(self, view: TaskView, name: str, dimension: Dimension) -> Question:
        when = None
        for screening, threshold in dimension.above.items():
            question = self.question(view, screening).id
            when = Condition(question=question, op=">", threshold=threshold, reduce="median", on="native")
        frozen_dimension = dimension.model_dump(mode="json", exclude={"above", "share"})
        flags = {"compact": self.settings.profile == "compact", "both_orders": self.settings.both_orders}
        set_flags = {flag: True for flag, is_set in flags.items() if is_set}
        params = {"dimension": frozen_dimension, **self._question_params(view, name), **set_flags}
        return self.question(view, name, when=when, samples=self.settings.samples, params=params)

    def _question_params(self, view: TaskView, dimension: str) -> dict[str, Any]:
        """Return the question parameters, which are the same for both kinds of judges with examples.

        They hold the number of examples, the candidates of both pools as a list per sample, and the digest of the
        relations by which candidates may be dropped. So each judge knows how many examples the other can show. With
        `counts` they also hold the frequency of each score in both pools, and the digest of the history.
        """
        if self._history is None:
            return {}
        history = self._history
        query = query_text(view.query)
        pools = _pools(self._history, view, dimension)
        seeds = range(self.settings.seed, self.settings.seed + self.settings.samples)
        draws = {
            name: [order_examples(self._selectors, pool, query, seed) for seed in seeds] for name, pool in pools.items()
        }
        count = min(self.settings.shots, *(len(drawn) for of_pool in draws.values() for drawn in of_pool))
        kept = count + max(count, MIN_SPARES)
        params: dict[str, Any] = {"count": count}
        for name, of_pool in draws.items():
            params[name] = [[example_use(e).model_dump(mode="json") for e in drawn[:kept]] for drawn in of_pool]
        params["relations"] = history.relations_digest[:16]
        if self.settings.counts:
            found = {name: Counter(example.score for example in pool) for name, pool in pools.items()}
            counts = {name: [list(count) for count in sorted(scores.items())] for name, scores in found.items()}
            params["counts"] = {**counts, "history": history.digest[:16]}
        if self._shrinkage:
            params["shrinkage"] = self._shrinkage / (self._shrinkage + len(pools["own"]))
        return params

    def check(self, question: Question) -> None:
        params: Any = question.params
        counts = params.get("counts")
        known = self._history
        if counts is not None and (known is None or known.digest[:16] != counts["history"]):
            raise InputError(
                f"the plan for question {question.id!r} counts the scores of a history that has changed since; "
                f"{_PREPARE_AGAIN}"
            )
        for draws in (params[pool] for pool in POOLS if pool in params):
            if question.samples > len(draws):
                raise ConfigError(
                    f"`samples` of evaluator {question.evaluator!r} is {question.samples}, and examples are drawn for "
                    f"{len(draws)}; write params.samples instead"
                )
            for use in chain.from_iterable(draws):
                self._example(use, question)

    def _example(self, use: Any, question: Question) -> Example:
        example = None if self._history is None else self._history.by_digest.get(use["fingerprint"])
        if example is None:
            which = f"what {use['reviewer']!r} said of {use['item']!r}"
            raise InputError(
                f"the plan for question {question.id!r} shows {which}, which the history no longer holds as it was; "
                f"{_PREPARE_AGAIN}"
            )
        return example

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        if self._history is None or "count" not in inputs.question.params:
            return await self._predict(inputs, ShownExamples((), ()), {})
        return await self._answer_from_pool(inputs, self._pool, self._remaining_examples(inputs, self._history))

    def _remaining_examples(self, inputs: EvaluatorInput, history: ReviewerHistory) -> dict[str, ShownExamples]:
        params: Any = inputs.question.params
        count = max(params["count"], 1)  # look for at least one, so that the reason can name the pool that has none
        left = {}
        for pool in POOLS:
            drawn = [self._example(use, inputs.question) for use in params[pool][inputs.sample]]
            left[pool] = choose_examples(drawn, count, inputs.response, inputs.task, history)
        return left

    async def _answer_from_pool(self, inputs: EvaluatorInput, pool: str, left: Mapping[str, ShownExamples]) -> Verdict:
        """Predict with the examples of a pool: as many as remain in both."""
        planned: Any = inputs.question.params["count"]
        shown = left[pool].first_examples(min(planned, *(len(pool_left.examples) for pool_left in left.values())))
        if shown.examples:
            return await self._predict(inputs, shown, self._score_counts(inputs, pool))
        return Verdict.abstain(_explain_abstention(inputs, pool, left)).model_copy(update={"examples": shown.uses})

    def _score_counts(self, inputs: EvaluatorInput, pool: str) -> dict[float, int]:
        """Return how often each score was given in a pool, as frozen, less what gives the response away."""
        frozen: Any = inputs.question.params.get("counts")
        if frozen is None or self._history is None:
            return {}
        candidates = _pools(self._history, inputs.task, inputs.question.subject)[pool]
        uses = choose_examples(candidates, len(candidates), inputs.response, inputs.task, self._history).uses
        dropped = Counter(use.score for use in uses if use.dropped is not None)
        return {score: number - dropped[score] for score, number in frozen[pool] if number > dropped[score]}

    async def _predict(self, inputs: EvaluatorInput, shown: ShownExamples, counts: Mapping[float, int]) -> Verdict:
        dimension = self._dimensions[inputs.question.subject]
        response = inputs.response
        if not self.settings.both_orders:
            verdict = await self._ask(inputs, response.text, shown.examples, counts)
        elif (swapped := swap_response(response)) is None:
            verdict = no_pair(response)
        else:
            given = [example.model_copy(update={"reason": None}) for example in shown.examples]
            mirrored = [
                example.model_copy(update={"text": example.swapped, "score": dimension.mirror(example.score)})
                for example in given
            ]
            mirrored_counts = {dimension.mirror(score): number for score, number in counts.items()}
            asking = [self._ask(inputs, response.text, given, counts)]
            asking.append(self._ask(inputs, swapped, mirrored, mirrored_counts))
            verdict = combine_orders(*await each_answered(asking))
        return verdict.model_copy(update={"examples": shown.uses})

    async def _ask(
        self, inputs: EvaluatorInput, text: str, examples: Sequence[Example], counts: Mapping[float, int]
    ) -> Verdict:
        """Ask the model, and show it the response with this text; quotations are looked up in the response's own."""
        assert inputs.client is not None, "a model is required"
        name = inputs.question.subject
        dimension = self._dimensions[name]
        variables = {
            **shared_prompt_variables(inputs),
            "response": text,
            "dimension": name,
            "examples": as_shots(examples, str(inputs.task.member)),
            "counts": tuple({"score": format_score(score), "number": counts[score]} for score in sorted(counts)),
            "step": None if dimension.step == 1.0 else dimension.step,
            "exclusion": dimension.not_applicable,
        }
        item = {"score": Item(dimension.text, dimension.form, anchors=dimension.sorted_anchors)}
        (verdict,) = await judge_items(
            inputs.client,
            self._prompt,
            item,
            variables,
            inputs.response.text,
            sample=inputs.sample,
            compact=self.settings.profile == "compact",
        )
        return verdict


class ZeroShot(ReviewerJudge):
    """Show no example: the model's prediction without help."""

    name = "zero-shot"


class Aggregate(ReviewerJudge):
    """Show examples of all other reviewers: assumes that there is one standard."""

    name = "aggregate"
    _pool = "others"


class Personalized(ReviewerJudge):
    """Show examples of the reviewer alone: assumes that each reviewer has a standard of their own."""

    name = "personalized"
    _pool = "own"

    class Params(ReviewerJudge.Params):
        shrinkage: NonNegative = 0.0
        """Shrinks the prediction for reviewers with few ratings toward what the aggregate judge predicts for the same
        response: with n ratings that may be shown, by shrinkage / (shrinkage + n). Each question then takes two calls.
        0 turns it off."""

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._shrinkage = self.settings.shrinkage

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        if self._history is None or "shrinkage" not in inputs.question.params:
            return await super().answer(inputs)
        left = self._remaining_examples(inputs, self._history)
        own, toward = await each_answered(self._answer_from_pool(inputs, pool, left) for pool in POOLS)
        return _shrink_verdict(own, toward, inputs.question.params["shrinkage"])


def _pools(history: ReviewerHistory, view: TaskView, dimension: str) -> dict[str, list[Example]]:
    """Return the ratings of each pool that may be shown for a task, as far as is known before there is a response."""
    domain = view.metadata.get("domain")
    key = str(view.member), dimension, None if domain is None else str(domain)
    rated = {"own": history.examples_of(*key), "others": history.examples_of_others(*key)}
    return {name: shown_examples.candidate_examples(examples, view, history) for name, examples in rated.items()}


def _explain_abstention(inputs: EvaluatorInput, pool: str, left: Mapping[str, ShownExamples]) -> str:
    """Explain why no example of a pool is shown: nothing remains of it, or nothing of the other pool."""
    empty_pool = pool if not left[pool].examples else next(other for other in left if other != pool)
    domain = inputs.task.metadata.get("domain")
    member = repr(inputs.task.member)
    owner = f"reviewer {member}" if empty_pool == "own" else f"anybody but reviewer {member}"
    place = "" if domain is None else f" in the task's domain {quote(str(domain))}"
    reason = f"no rating of {inputs.question.subject!r} by {owner}{place} can be shown"
    dropped = len(left[empty_pool].uses)
    reason += f"; {dropped} were dropped" if dropped else ""
    return f"{reason}{'' if empty_pool == pool else '; as many are shown of the reviewer as of the others'}"


def _shrink_verdict(prediction: Verdict, toward: Verdict, weight: Any) -> Verdict:
    """Shrink a prediction toward another; if one of the two has no score, the result has none either.

    A failed one counts before one that abstained, and that before an unsupported one that is the worst case. It
    abstains if only one of the two says that the dimension does not apply.
    """
    if {prediction.status, toward.status} == {"ok", "not_applicable"}:
        disagreement = Verdict.abstain("the judge and the aggregate judge disagree on whether the dimension applies")
        return disagreement.model_copy(update={"examples": prediction.examples, "call": prediction.call})
    is_worst_case = prediction.is_worst_case or toward.is_worst_case
    if prediction.score is None or toward.score is None or prediction.scale is None or is_worst_case:
        return missing_verdict(prediction, toward).model_copy(update={"examples": prediction.examples})
    score = (1.0 - weight) * prediction.score + weight * toward.score
    low, high = prediction.scale
    shrinkage = Shrinkage(
        weight=weight, toward=toward.score, call=toward.call, examples=toward.examples, swap=toward.swap
    )
    value = min(confidence for confidence in (prediction.confidence, toward.confidence) if confidence is not None)
    fields = {"score": score, "native": low + score * (high - low), "confidence": value, "shrinkage": shrinkage}
    fields["unsupported"] = prediction.unsupported or toward.unsupported
    return prediction.model_copy(update=fields)
