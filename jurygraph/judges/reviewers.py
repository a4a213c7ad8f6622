"""Zero-shot, aggregate and personalized judges: three evaluators that differ only in the examples they show.

They predict what a reviewer would give a response on each dimension: a score on a scale, perhaps only if another
dimension's lies above a threshold. A pair of texts may be judged in both orders, so that a judge's preference for a
position cancels out. Its scores go from -a, the first is better, over 0, neither is, to a, the second is. The second
prompt mirrors the first: in the response and in every example the two texts have changed places, and every score has
changed its sign. So what a reviewer prefers stays in the prompt, and what the model prefers by position does not.
"""

import json
import logging
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, JsonValue, create_model, model_validator

from jurygraph.agents.roles import (
    Evaluator,
    EvaluatorInput,
    Finding,
    JudgedValue,
    require_client,
    shared_prompt_variables,
)
from jurygraph.concurrency import gather_all
from jurygraph.errors import ConfigError, InputError, PlanError
from jurygraph.judges.criteria import (
    REASON_AND_QUOTES_FIELDS,
    Item,
    ReplyVerbosity,
    Scale,
    build_answer_finding,
    judge_items,
    sort_anchors,
)
from jurygraph.judges.examples import (
    Example,
    ExampleChoiceMethod,
    ReviewerHistory,
    ShownExamples,
    build_example_use,
    candidate_examples,
    choose_examples,
    order_examples,
    swap_response_texts,
    to_prompt_examples,
)
from jurygraph.messages import did_you_mean, join_names, quote
from jurygraph.models.request import Reply
from jurygraph.prompts import load_prompt
from jurygraph.schema import (
    Audience,
    Condition,
    FrozenModel,
    Layer,
    Question,
    Swap,
    TaskView,
    Verdict,
)
from jurygraph.schema.frozen_model import (
    Count,
    Id,
    JsonFields,
    Number,
    NumberRange,
    ParamsModel,
    PositiveInt,
    PositiveNumber,
    ReadOnlyFields,
    StrictBool,
    StrPath,
)
from jurygraph.schema.task import query_to_text
from jurygraph.sources.config import read_config
from jurygraph.sources.files import searched_folders_text, validate_at_location
from jurygraph.sources.sheets import SheetQuestion

_LOGGER = logging.getLogger(__name__)


class _Prediction(FrozenModel):
    # `value` and `confidence` are added, the reason and its quotations before them
    @model_validator(mode="after")
    def _check_value_confidence(self) -> Self:
        answer: Any = self
        if answer.value is not None and answer.confidence is None:
            raise ValueError(
                "`confidence` is null and `value` is not: give both, or null for both if you cannot tell"
            )
        return self


@dataclass(frozen=True, slots=True)
class PredictionForm(Scale):
    """A score in steps from `low` to `high` (None: any number) and a confidence from 0 to 100, or null: cannot tell.

    Any score needs a quotation, the lowest as well: otherwise a response would have to be good to be heard.
    `exclusion` is the value, at one end, that says that the dimension does not apply; then the scale is the rest.
    """

    step: float | None
    exclusion: float | None

    def reply_model(self, compact: bool) -> type[FrozenModel]:
        return _prediction_reply_model(self, compact)

    def find(self, answer: Any, name: str, reply: Reply | None) -> Finding:
        if answer.value is None:
            return build_answer_finding(name, answer, None)
        native = float(answer.value)
        low, high = self.score_range
        confidence = round(answer.confidence / 100.0, 12)  # 80.3 of 100 is exactly 0.803
        score = None if native == self.exclusion else (native - low) / (high - low)
        judged_value = JudgedValue(score, native=native, scale=(low, high), confidence=confidence)
        return build_answer_finding(name, answer, judged_value, f"a value of {answer.value:g}")

    @property
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest of its values that are scores."""
        step = self.step or 0.0
        low = self.low + step if self.low == self.exclusion else self.low
        high = self.high - step if self.high == self.exclusion else self.high
        return low, high

    def is_valid_score(self, value: float) -> bool:
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return self.low <= value <= self.high and abs(steps - round(steps)) < 1e-9


@lru_cache(maxsize=256)
def _prediction_reply_model(form: PredictionForm, compact: bool) -> type[FrozenModel]:

    def require_valid_score(value: float) -> float:
        if not form.is_valid_score(value):
            raise ValueError(
                f"is no score: they go from {form.low:g} to {form.high:g} in steps of {form.step:g}"
            )
        return value

    value: Any
    if form.step == 1.0 and form.low.is_integer() and form.high.is_integer():
        value = Annotated[int, Field(strict=True, ge=int(form.low), le=int(form.high))]
    else:
        bounds = Field(strict=True, ge=form.low, le=form.high)
        value = Annotated[float, bounds, AfterValidator(require_valid_score)]
    confidence = Annotated[float, Field(strict=True, ge=0.0, le=100.0)]
    explanation = {} if compact else REASON_AND_QUOTES_FIELDS
    return create_model(
        "PredictionStated",
        __base__=_Prediction,
        **explanation,
        value=(value | None, ...),
        confidence=(confidence | None, ...),
    )


class Dimension(FrozenModel):
    """A dimension that reviewers score: a text, a scale in steps (None: any number), and anchors for values.

    It is scored only if the reviewer's score for another dimension lies `above` a threshold: the staged screening of
    "Aggregate vs. Personalized Judges". `share` is its weight relative to the other dimensions of a reward. The value
    `not_applicable`, at one end of the scale, is no score: it says that the dimension does not apply, such as the
    paper's 0 for ideas that are no product for businesses ("category exclusion").
    """

    text: Id
    scale: NumberRange
    step: PositiveNumber | None = 1.0
    anchors: dict[Id, str] = Field(default_factory=dict)
    above: dict[Id, Number] = Field(default_factory=dict, max_length=1)
    share: PositiveNumber = 1.0
    not_applicable: Number | None = None

    @model_validator(mode="after")
    def _check_scale_steps(self) -> Self:
        low, high = self.scale
        if not low < high:
            raise ValueError("`scale` does not rise; write the lower end first, such as [1, 5]")
        if not self.form.is_valid_score(high):
            raise ValueError(
                f"`step` {self.step:g} does not lead from {low:g} to {high:g}; choose one that does"
            )
        if self.not_applicable is None:
            return self
        if self.step is None or self.not_applicable not in self.scale:
            raise ValueError(
                f"`not_applicable` {self.not_applicable:g} is not an end of a scale in steps; write {low:g} or "
                f"{high:g}, with a step, or leave it out"
            )
        lowest, highest = self.form.score_range
        if not lowest < highest:
            raise ValueError(
                f"`not_applicable` {self.not_applicable:g} leaves less than two scores; widen `scale`"
            )
        return self

    @property
    def form(self) -> PredictionForm:
        return PredictionForm(*self.scale, self.step, self.not_applicable)


def _check_name(name: str) -> str:
    if not name or "/" in name or "@" in name:
        raise ValueError("is not a valid name; write one without / and @")
    return name


DimensionName = Annotated[str, AfterValidator(_check_name)]
DimensionByName = Annotated[dict[DimensionName, Dimension], Field(min_length=1)]


@lru_cache(maxsize=8)
def load_ready_dimensions(name: str) -> dict[str, Dimension]:
    """Return a ready set of dimensions, in the order in which people score them."""
    text = files("jurygraph.judges").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return {key: Dimension.model_validate(fields) for key, fields in tomllib.loads(text).items()}


MIN_SPARE_CANDIDATES = 3
"""Least number of spare candidates; there are as many spares as examples to be shown, but at least this many."""

EXAMPLE_POOLS = (
    "own",
    "others",
)  # examples that may be shown: the reviewer's own and those of all others


class ReviewerJudge(Evaluator):
    """Predict the score that each of the task's reviewers would give a response, on each dimension.

    The plan freezes which examples may be shown, and their order; both kinds of judges with examples use equally many,
    with equal seeds. For a reviewer without examples the judge abstains rather than guesses; one who is not in the
    history is refused, so that a misspelt name is no newcomer, unless `judge_newcomers` is set.
    """

    class Params(ParamsModel):
        dimensions: Literal["ideas"] | DimensionByName
        """What is scored, by name: {quality: {text: ..., scale: [1, 5]}}, or a ready set: `ideas`."""
        history: str | tuple[dict[str, JsonValue], ...] | None = None
        """RATINGS file with reviewers' scores of other items, or its rows, as of `frame.to_dict("records")`."""
        texts: str | None = None
        """File with the items' texts, if the history has none."""
        columns: dict[str, str] = Field(default_factory=dict)
        """The history's names of the columns item, reviewer, score, dimension, domain, group, text, reason
        and prompt."""
        shots: Count = 5
        """Number of examples shown."""
        choice: ExampleChoiceMethod = "random"
        """`random`, so that a reviewer's base rate survives, or `similar` to the task's query. An item that several
        reviewers rated is shown once."""
        judge_newcomers: StrictBool = False
        """Reviewers without ratings of the domain are judged from everybody's, as by `aggregate`."""
        seed: Count = 0
        """Seed of the draw, also among equal candidates."""
        samples: PositiveInt = 3
        """Answers to each question, each with the next seed, so another draw of examples; the config's `panel` combines
        them."""
        both_orders: StrictBool = False
        """The items are pairs, each judged in both orders, in two calls; the score is (given + 1 - swapped) / 2.
        Its two texts are `first` and `second` in the data of a response and in the file of texts. Reasons are not shown
        then, since they may name a position."""
        show_prompts: StrictBool = False
        """Examples show what their texts answer, the column `prompt`."""
        profile: ReplyVerbosity = "full"
        """`full`, or `compact` for fewer tokens."""

        @property
        def resolved_dimensions(self) -> dict[str, Dimension]:
            """The dimensions, in their own order."""
            dimensions = self.dimensions
            return load_ready_dimensions(dimensions) if isinstance(dimensions, str) else dimensions

        @model_validator(mode="after")
        def _check_dimensions(self) -> Self:
            """Refuse thresholds that screen nothing, and a scale without a mirror image for `both_orders`."""
            dimensions = self.resolved_dimensions
            for name, dimension in dimensions.items():
                for screening_dimension, threshold in dimension.above.items():
                    if screening_dimension not in dimensions:
                        raise ValueError(
                            f"`dimensions.{name}.above` there is no dimension {screening_dimension!r}; name one of them"
                        )
                    low, high = dimensions[screening_dimension].scale
                    if not low <= threshold < high:
                        raise ValueError(
                            f"`dimensions.{name}.above` no score of {screening_dimension} is parted by "
                            f"{threshold:g}; write one from {low:g} on and below {high:g}"
                        )
            for name, dimension in dimensions.items() if self.both_orders else ():
                low, high = dimension.scale
                if low != -high:
                    raise ValueError(
                        f"`dimensions.{name}.scale` goes from {low:g} to {high:g}, which is not symmetric about 0, "
                        "where neither is better; write [-1, 1], or no both_orders"
                    )
                if dimension.not_applicable is not None:
                    raise ValueError(
                        f"`dimensions.{name}.not_applicable` has no mirror image; leave it out, or both_orders"
                    )
            return self

    audience: Audience = "reviewer"
    layer: Layer = "model"
    uses_model = True
    combiner = "panel"
    bounds_its_time = True
    settings: Params
    _example_pool: ClassVar[str] = ""
    """The one of `EXAMPLE_POOLS` that its examples come from; empty for no examples."""

    def _set_up_from_settings(self) -> None:
        self._dimensions = dict(sorted(self.settings.resolved_dimensions.items()))
        shows_examples = bool(self._example_pool) and self.settings.shots > 0
        self.history = self._load_history() if shows_examples else None
        self.depends_on = "" if self.history is None else self.history.digest
        self._prompt = load_prompt("reviewer")
        example_prompt_version = load_prompt("example").full_version
        self.version = f"2 prompt {self._prompt.full_version} example {example_prompt_version}"
        if self.settings.show_prompts:
            self.version += f" with prompt {load_prompt('example-prompt').full_version}"
        self.shares = {name: dimension.share for name, dimension in self._dimensions.items()}
        for dimension in self._dimensions.values() if self.settings.samples > 1 else ():
            low, high = dimension.scale
            self.rarely_has_majority |= high - low > 3.0 * (dimension.step or 0.0)

    def _load_history(self) -> ReviewerHistory:
        history = self.settings.history
        texts = self.settings.texts
        both_orders = self.settings.both_orders
        if history is None:
            raise ConfigError(
                "history: name a RATINGS file with reviewers' ratings of other items, or set shots to 0"
            )
        if both_orders and texts is None:
            raise ConfigError(
                "texts: both_orders swaps two texts of an item; name a file with `first` and `second`"
            )
        if not isinstance(history, str):
            return self._read_rows(history)
        try:
            return self._read_history(history)
        except InputError as error:
            missing = (
                searched_folders_text(name, "the config") for name in (texts, history) if name
            )
            raise InputError(f"{error}{next(filter(None, missing), '')}") from None

    def _read_history(self, path: StrPath) -> ReviewerHistory:
        return ReviewerHistory.read(
            path,
            self.settings.texts,
            self.settings.columns,
            scales={name: dimension.scale for name, dimension in self._dimensions.items()},
            has_pairs=self.settings.both_orders,
            shows_prompts=self.settings.show_prompts,
        )

    def _read_rows(self, rows: Sequence[ReadOnlyFields]) -> ReviewerHistory:
        """Read rows by the rules of files, and log those that are left out: in Python nobody reads the notes."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "history.json")
            path.write_text(json.dumps(rows))
            try:
                history = self._read_history(path)
            except InputError as error:
                problem = str(error).replace(f"{path}, [", "history[").replace(str(path), "history")
                raise InputError(problem) from None
        for note in history.omission_notes():
            _LOGGER.warning("%s: %s", self.name, note.replace("history.json, [", "history["))
        return history

    @property
    def notes(self) -> Sequence[str]:
        """Notes on ratings that cannot be shown, and on dimensions and reviewers for which there are too few."""
        history = self.history
        if history is None:
            return ()
        notes = [*history.notes()]
        counts = Counter((example.dimension, example.reviewer) for example in history.examples)
        shots = self.settings.shots
        few = []
        for reviewer in history.reviewers:
            count = min(counts[name, reviewer] for name in self._dimensions)
            if count < shots:
                few.append(f"{reviewer} ({count})")
        if few:
            notes.append(f"Fewer ratings than `shots`, {shots}, can be shown of {join_names(few)}.")
        if self.settings.judge_newcomers:
            notes.append(
                "Reviewers without ratings are judged from everybody's (`judge_newcomers`)."
            )
        return notes

    @property
    def predictable_reviewers(self) -> Sequence[str]:
        """The reviewers in the history, sorted; empty where any reviewer can be predicted."""
        if self.history is None or self.settings.judge_newcomers:
            return ()
        return self.history.reviewers

    def questions(self, view: TaskView) -> Sequence[Question]:
        history = self.history
        if history is not None:
            history.require_scores_on_scale()
            names = history.reviewers
            if not self.settings.judge_newcomers and view.member not in names:
                hint = did_you_mean(str(view.member), names) or f"it has {join_names(names)}"
                raise PlanError(
                    f"task {view.id!r}: reviewer {view.member!r} is not in {history.name} (`judge_newcomers: true` "
                    f"judges new ones from everybody's ratings); {hint}"
                )
        questions = []
        for name, dimension in self._dimensions.items():
            when = None
            for screening_dimension, threshold in dimension.above.items():
                question = self.question(view, screening_dimension).id
                when = Condition(
                    question=question, op=">", threshold=threshold, reduce="median", on="native"
                )
            dimension_params = dimension.model_dump(mode="json", exclude={"above", "share"})
            params = {"dimension": dimension_params, **self._question_params(view, name)}
            if self.settings.profile == "compact":
                params["compact"] = True
            if self.settings.both_orders:
                params["both_orders"] = True
            samples = self.settings.samples
            questions.append(self.question(view, name, when=when, samples=samples, params=params))
        return questions

    def _question_params(self, view: TaskView, dimension: str) -> JsonFields:
        """Return the question parameters, which are the same for both kinds of judges with examples.

        They hold the number of examples, the candidates of both pools as a list per sample, and the digest of the
        relations by which candidates may be dropped. So each judge knows how many examples the other can show.
        """
        history = self.history
        if history is None:
            return {}
        reviewer = str(view.member)
        metadata_domain = view.metadata.get("domain")
        domain = None if metadata_domain is None else str(metadata_domain)
        examples = history.examples_by_pool(reviewer, dimension, domain)
        if self.settings.judge_newcomers and not examples["own"]:  # both judges are one
            examples["own"] = examples["others"]
        query = query_to_text(view.query)
        first = self.settings.seed
        count = self.settings.shots
        draws_by_pool = {}
        for pool in EXAMPLE_POOLS:
            candidates = candidate_examples(examples[pool], view, history)
            draws_by_pool[pool] = [
                order_examples(self.settings.choice, candidates, query, seed)
                for seed in range(first, first + self.settings.samples)
            ]
            count = min(count, *map(len, draws_by_pool[pool]))
        kept = count + max(count, MIN_SPARE_CANDIDATES)
        params: JsonFields = {"count": count}
        for pool in EXAMPLE_POOLS:
            params[pool] = [
                [
                    build_example_use(example).model_dump(mode="json")
                    for example in drawn_examples[:kept]
                ]
                for drawn_examples in draws_by_pool[pool]
            ]
        params["relations"] = history.leak_relations_digest[:16]
        return params

    def check(self, question: Question) -> None:
        params: Any = question.params
        for pool in EXAMPLE_POOLS:
            if pool not in params:
                continue
            pool_draws = params[pool]
            if question.samples > len(pool_draws):
                raise ConfigError(
                    f"`samples` of evaluator {question.evaluator!r} is {question.samples}, and examples are drawn for "
                    f"{len(pool_draws)}; write params.samples instead"
                )
            for use in chain.from_iterable(pool_draws):
                self._find_example(use, question)

    def _find_example(self, use: Any, question: Question) -> Example:
        example = None
        if self.history is not None:
            example = self.history.example_by_digest.get(use["fingerprint"])
        if example is None:
            raise InputError(
                f"the plan for question {question.id!r} shows what {use['reviewer']!r} said of {use['item']!r}, which "
                "the history no longer holds as it was; put the file back, or prepare the task again (a run: score "
                "into another --out, with --branch)"
            )
        return example

    async def answer(self, inputs: EvaluatorInput) -> Verdict:
        """Predict with examples of its pool: as many as remain in both."""
        params: Any = inputs.question.params
        chosen = ShownExamples((), ())
        if self.history is not None and "count" in params:
            # look for at least one, so that the reason can name the pool that has none
            count = max(params["count"], 1)
            examples_by_pool = {}
            for pool in EXAMPLE_POOLS:
                drawn_examples = [
                    self._find_example(use, inputs.question) for use in params[pool][inputs.sample]
                ]
                examples_by_pool[pool] = choose_examples(
                    drawn_examples, count, inputs.response, inputs.task, self.history
                )
            counts = [len(kept.examples) for kept in examples_by_pool.values()]
            example_count = min(params["count"], *counts)
            chosen = examples_by_pool[self._example_pool].first_examples(example_count)
            if not chosen.examples:
                reason = _explain_missing_examples(inputs, self._example_pool, examples_by_pool)
                return Verdict.abstain(reason).model_copy(update={"examples": chosen.uses})
        if self.settings.both_orders:
            verdict = await self._predict_in_both_orders(inputs, chosen.examples)
        else:
            verdict = await self._predict_verdict(inputs, inputs.response.text, chosen.examples)
        return verdict.model_copy(update={"examples": chosen.uses})

    async def _predict_in_both_orders(
        self, inputs: EvaluatorInput, examples: Sequence[Example]
    ) -> Verdict:
        dimension = self._dimensions[inputs.question.subject]
        response = inputs.response
        swapped_text = swap_response_texts(response)
        if swapped_text is None:
            return Verdict.fail(
                "no-pair",
                f"the data of response {response.id!r} does not have the two texts that its text holds; give "
                "data.first and data.second, in this order, each on lines of its own in the text",
                cause="response",
            )
        low, high = dimension.scale
        unswapped_examples = [example.model_copy(update={"reason": None}) for example in examples]
        mirrored_examples = []
        for example in unswapped_examples:
            # at the same distance from the other end of the scale
            mirrored_fields = {"text": example.swapped, "score": low + high - example.score}
            mirrored_examples.append(example.model_copy(update=mirrored_fields))
        predictions = [
            self._predict_verdict(inputs, response.text, unswapped_examples),
            self._predict_verdict(inputs, swapped_text, mirrored_examples),
        ]
        return combine_order_verdicts(*await gather_all(predictions))

    async def _predict_verdict(
        self, inputs: EvaluatorInput, text: str, examples: Sequence[Example]
    ) -> Verdict:
        """Ask the model, and show it the response with this text; quotations are looked up in the response's own."""
        name = inputs.question.subject
        dimension = self._dimensions[name]
        variables = {
            **shared_prompt_variables(inputs),
            "response": text,
            "dimension": name,
            "examples": to_prompt_examples(examples, str(inputs.task.member)),
            "step": None if dimension.step == 1.0 else dimension.step,
            "exclusion": dimension.not_applicable,
        }
        item = Item(dimension.text, dimension.form, anchors=sort_anchors(dimension.anchors))
        (verdict,) = await judge_items(
            require_client(inputs.client),
            self._prompt,
            {"score": item},
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
    _example_pool = "others"


class Personalized(ReviewerJudge):
    """Show examples of the reviewer alone: assumes that each reviewer has a standard of their own."""

    name = "personalized"
    _example_pool = "own"


def read_sheet_questions(source: str) -> list[SheetQuestion]:
    """Return the dimensions of a ready set, or of a config's judge, in their order, as sheets ask people for them.

    The judge's history is not read: its ratings may not exist yet. Raises `ConfigError` or `InputError` if there are no
    dimensions, or one has no steps, or comes before the one that it depends on.
    """
    found: Any = "ideas"
    if source != "ideas":
        found = {}
        for use in read_config(source).evaluators:
            found = use.params.get("dimensions", found)
    settings = validate_at_location(source, ReviewerJudge.Params, {"dimensions": found})
    questions: dict[str, SheetQuestion] = {}
    is_screened = any(dimension.above for dimension in settings.resolved_dimensions.values())
    for name, dimension in settings.resolved_dimensions.items():
        low, high = dimension.scale
        cells = {
            "definition": dimension.text,
            "scale": f"from {low:g} to {high:g}",  # a spreadsheet would read "1-4" as a date
            "anchors": "; ".join(map(": ".join, dimension.anchors.items())),
        }
        if is_screened:
            cells["skip_if"] = ""
        for screening_dimension, threshold in dimension.above.items():
            cells["skip_if"] = f"{screening_dimension} is {threshold:g} or less, or empty"
        if dimension.step is None or not dimension.above.keys() <= questions.keys():
            raise InputError(
                f"{source}: {name} has no `step`, or stands above the dimension that it depends on; add one, or move "
                "it below that"
            )
        # Rounded, as .3 would else be .30000000000000004 and not equal to what people write.
        classes = np.arange(low, high + dimension.step / 2, dimension.step).round(9).tolist()
        questions[name] = SheetQuestion(
            dimension=name, classes=classes, above=dimension.above, cells=cells
        )
    return list(questions.values())


def _explain_missing_examples(
    inputs: EvaluatorInput, pool: str, examples_by_pool: Mapping[str, ShownExamples]
) -> str:
    """Explain why no example of a pool is shown: nothing remains of it, or nothing of the other pool."""
    empty_pool = pool
    if examples_by_pool[pool].examples:
        empty_pool = next(other for other in examples_by_pool if other != pool)
    owner = f"reviewer {inputs.task.member!r}"
    if empty_pool != "own":
        owner = f"anybody but {owner}"
    domain = inputs.task.metadata.get("domain")
    domain_phrase = "" if domain is None else f" in the task's domain {quote(str(domain))}"
    reason = f"no rating of {inputs.question.subject!r} by {owner}{domain_phrase} can be shown"
    dropped = len(examples_by_pool[empty_pool].uses)
    if dropped:
        reason += f"; {dropped} were dropped"
    if empty_pool != pool:
        reason += "; as many are shown of the reviewer as of the others"
    return reason


def combine_order_verdicts(unswapped_verdict: Verdict, swapped_verdict: Verdict) -> Verdict:
    """Return the verdict of both orders: score = (unswapped + 1 - swapped) / 2, with the lower confidence of the two.

    Equal means are the same bits whichever scores they come from, so that samples which agree are counted together. If
    one order failed, so has the verdict; else if the judge could not tell in one, it abstains. If one is unsupported
    and counts as the worst case, so does the verdict.
    """
    for status in ("failed", "abstained", "ok"):
        for verdict in (unswapped_verdict, swapped_verdict):
            if verdict.status == status and (verdict.score is None or verdict.is_worst_case):
                return verdict
    assert unswapped_verdict.score is not None
    assert swapped_verdict.score is not None
    assert unswapped_verdict.scale is not None
    # fewer decimals than floats hold, more than any scale has steps
    score = round((unswapped_verdict.score + 1.0 - swapped_verdict.score) / 2.0, 12)
    low, high = unswapped_verdict.scale
    confidences = (unswapped_verdict.confidence, swapped_verdict.confidence)
    reasons = [
        unswapped_verdict.reason,
        f"[swapped: {swapped_verdict.reason}]" if swapped_verdict.reason else "",
    ]
    fields = {
        "score": score,
        "native": round(low + score * (high - low), 9),
        "confidence": min(number for number in confidences if number is not None),
        "reason": " ".join(filter(None, reasons)),
        "evidence": tuple(dict.fromkeys((*unswapped_verdict.evidence, *swapped_verdict.evidence))),
        "unsupported": unswapped_verdict.unsupported or swapped_verdict.unsupported,
        "swap": Swap(
            given=unswapped_verdict.score, swapped=swapped_verdict.score, call=swapped_verdict.call
        ),
    }
    return unswapped_verdict.model_copy(update=fields)
