"""Judges of reviewers, with a model and without: their predictions, and the figures on ratings that all predict.

Each rating is predicted from others (leave-one-out): never from a rating of the same item or of its group, except that
`item-mean` and `rater-offset` use what others gave the very item. Own ratings are those of the same dimension and
domain, as for the judges with a model, whose predictions are those of runs. Intervals of a judge are over reviewers;
those of a difference of two judges are over reviewers and items, because a judge that errs on an item errs for all who
rated it.
"""

import logging
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product, starmap
from operator import attrgetter
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from jurygraph.agents.registry import load_evaluator
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.decision.turns import read_uses
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import ConfigError, InputError
from jurygraph.explanation.predictions import counted_scores
from jurygraph.inference.agreement import (
    MeasurementLevel,
    alphas_leaving_out_clusters,
    estimate_from_alphas,
    mean_without_own_subgroup,
)
from jurygraph.inference.clusters import (
    divide_or_nan,
    mean_with_cluster_interval,
    members_by_cluster,
    pair_numbers,
)
from jurygraph.inference.crossed import crossed_interval, t_test_p
from jurygraph.interchange.rated_table import item_to_task
from jurygraph.judges.examples import Example, rated_text, refuse_scores_off_scale
from jurygraph.judges.reviewers import Dimension, ReviewerJudge
from jurygraph.messages import (
    join_names,
    notes_on_similar_names,
    quote,
    suggest_known_name,
)
from jurygraph.runs.export_table import verdicts_about_response
from jurygraph.runs.reports.bill import CallBill
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentInput, Config, RecordedVerdict
from jurygraph.schema.config import EvaluatorUse, PanelConfig
from jurygraph.schema.frozen_model import JsonFields, RawParams
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import RatingsFile
from jurygraph.studies import symbols
from jurygraph.studies.agreement import (
    DimensionRatings,
    notes_on_scores,
    to_dimension_ratings,
)
from jurygraph.studies.conclusions import (
    PLANNED_PAIRS,
    conclude_draws,
    conclude_reviewers,
    describe_omissions,
    name_with_examples,
)
from jurygraph.studies.judgements import JUDGED_STATUS, judgement_status
from jurygraph.studies.reasons import (
    TextVectorizer,
    cosine_similarities,
    match_reasons,
    relate_reasons,
    tf_idf,
)
from jurygraph.studies.report import (
    Figures,
    IntervalCell,
    Report,
    adjust_p_values,
    as_interval,
    omission_notes,
)
from jurygraph.studies.reviewer_states import (
    compare_with_own_mean,
    correlate_order,
    limit_interval,
    tell_states,
)
from jurygraph.studies.reviewer_tables import (
    ALL_TABLES_HINT,
    PEER_BASELINE_NAMES,
    lay_out_sections,
    plot_errors,
)

_LOGGER = logging.getLogger(__name__)
_NEAR_COPY_COSINE = 0.9
"""Cosine from which two texts are nearly the same, so that the one's score would give away the other's."""
_ROWS_PER_BATCH = 256  # limits memory


@dataclass(frozen=True)
class Predictions:
    """Predictions of a judge with a number of examples: `values` [S, n] for S seeds, NaN without a prediction.

    Attributes:
        shots: examples that it was shown; None for all that there are, or where it has none.
        left_out: number of ratings without a prediction, by reason.
        setting: the judge with its model and number of examples; empty for one without a model.
        calls, cost: of the model, US dollars; None for the cost if a price is unknown.
        reasons: a text for each rating, [n], empty without one; or none at all.
        fold: what a prediction is of several answers of a model, such as "mean of 3 answers".
        is_one_draw: whether all items were judged once, with one draw of examples.
        absent: the reviewers and items without a verdict in the runs.
        scale: the ends of that of a judge with a model; none without one.
    """

    judge: str
    shots: int | None
    values: Floats
    left_out: Mapping[str, int] = field(default_factory=dict)
    setting: str = ""
    calls: int = 0
    cost: float | None = 0.0
    reasons: Sequence[str] = ()
    fold: str = ""
    is_one_draw: bool = False
    absent: Sequence[str] = ()
    scale: Sequence[float] = ()

    @property
    def answered(self) -> Bools:
        """The ratings that have a prediction, [n]."""
        return np.asarray(~np.isnan(self.values).any(axis=0))


PredictionColumns = Sequence[Predictions]
"""The predictions of several judges, or of one with several numbers of examples."""


def texts_of(ratings: RatingsFile, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of rated items by key: those in the ratings, or else in `texts`; blank ones are left out."""
    text_by_key = {rating.key: rated_text(rating, texts) or "" for _, rating in ratings.rows}
    return {key: text for key, text in text_by_key.items() if text.strip()}


def predict(
    part: DimensionRatings,
    judges: Sequence[str],
    shots: Sequence[int],
    seeds: int,
    texts: Mapping[str, str],
    vectorize: TextVectorizer = tf_idf,
    *,
    is_learned: Bools | bool = True,
) -> Iterator[Predictions]:
    """Yield the predictions of judges without a model, for each number of examples that changes them.

    `own-history` is the mean of own scores: of so many, drawn for each rating and seed, and of all. `neighbours` is the
    mean of the own scores of the items whose `texts` (by key) are the most similar. `item-mean` is the mean of what the
    others gave the item, and `rater-offset` adds how far the reviewer's other scores are above those means. With
    `is_learned` [n], scores of these rows alone are learned from, and those of the others alone are predicted.
    """
    counts = sorted({shot for shot in shots if shot > 0})
    is_learned = np.broadcast_to(is_learned, part.score.shape)
    if "own-history" in judges:
        orders = map(_make_random_order, range(seeds if counts else 0))
        by_seed = [_mean_of_own_scores(part, counts, order, is_learned) for order in orders]
        for count, drawn in zip(counts, zip(*by_seed, strict=True), strict=True):
            yield Predictions("own-history", count, np.stack(drawn))
        history = _mean_of_other_groups(part, part.score, is_learned)
        yield Predictions("own-history", None, history[None])
    if "neighbours" in judges and counts:
        order = _make_text_similarity_order(part, texts, vectorize)
        means_of_own = _mean_of_own_scores(part, counts, order, is_learned)
        for count, means in zip(counts, means_of_own, strict=True):
            yield Predictions("neighbours", count, means[None])
    # a rating may be there twice, as learned and as judged, and is no peer of itself
    peers = pair_numbers(part.item, is_learned.astype(np.int64))
    means_of_peers = mean_without_own_subgroup(part.score, peers, np.arange(len(part.score)))
    if "item-mean" in judges:
        yield Predictions("item-mean", None, means_of_peers[None])
    if "rater-offset" in judges:
        offset = _mean_of_other_groups(part, part.score - means_of_peers, is_learned)
        yield Predictions("rater-offset", None, (means_of_peers + offset)[None])


def predict_after(
    history: Sequence[Example], ratings: RatingsFile, part: DimensionRatings, *settings: Any
) -> Iterator[Predictions]:
    """Yield the predictions of a part of the ratings by `predict` with its `settings`, learned from a history alone.

    Without one they are learned from the other ratings. A part without a dimension is of the only one that it has.
    """
    examples = [example for example in history if part.dimension in (None, example.dimension)]
    if not examples:
        yield from predict(part, *settings)
        return
    judged_rows = [
        rating
        for _, rating in ratings.rows
        if rating.score is not None and (rating.dimension or None) == part.dimension
    ]
    all_rows: list[Rating | Example] = [*examples, *judged_rows]
    rows = sorted(all_rows, key=lambda row: (row.reviewer, row.key))
    is_learned = np.array([isinstance(row, Example) for row in rows])
    all_ratings = to_dimension_ratings(part.name, rows)
    for prediction in predict(all_ratings, *settings, is_learned=is_learned):
        yield replace(prediction, values=prediction.values[:, ~is_learned])


def absolute_errors(part: DimensionRatings, columns: Iterable[Predictions]) -> dict[str, Floats]:
    """Return each judge's distance from each rating, [n], the mean over seeds."""
    return {
        prediction.judge: np.abs(prediction.values - part.score).mean(axis=0)
        for prediction in columns
    }


def _reviewer_domain_numbers(part: DimensionRatings) -> Ints:
    """Return a number for each reviewer and domain, [n]."""
    return part.reviewer * len(part.domains) + part.domain


def _mean_of_other_groups(part: DimensionRatings, values: Floats, is_learned: Bools) -> Floats:
    """Return the mean of a reviewer's learned values in the domain without those of the same group, [n]; NaN without
    others."""
    pool = _reviewer_domain_numbers(part)
    learned = np.where(is_learned, values, np.nan)
    return mean_without_own_subgroup(learned, pool, pair_numbers(pool, part.group))


def _mean_of_own_scores(
    part: DimensionRatings, counts: Sequence[int], order: Any, is_learned: Bools
) -> Floats:
    """Return the mean of so many learned own scores, those of the least `order`, or of fewer where there are,
    [counts, n]."""
    means = np.full((len(counts), len(part.score)), np.nan)
    leaves_one_out = bool(is_learned.all())
    for members in members_by_cluster(_reviewer_domain_numbers(part)):
        history = members[is_learned[members]]
        if not len(history):  # of a newcomer, who has no own scores to learn from
            continue
        judged = members if leaves_one_out else members[~is_learned[members]]
        for start in range(0, len(judged), _ROWS_PER_BATCH):
            rows = judged[start : start + _ROWS_PER_BATCH]
            is_same_group = part.group[rows, None] == part.group[history]
            keys = np.where(is_same_group, np.inf, order(rows, history))
            first = np.argsort(keys, axis=1, kind="stable")[:, : counts[-1]]
            is_usable = np.isfinite(np.take_along_axis(keys, first, axis=1))
            sums = np.cumsum(part.score[history][first] * is_usable, axis=1)
            sizes = np.cumsum(is_usable, axis=1)
            for values, count in zip(means, counts, strict=True):
                last = min(count, len(history)) - 1
                values[rows] = divide_or_nan(sums[:, last], sizes[:, last])
    return means


def _make_random_order(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda rows, history: rng.random((len(rows), len(history)))


def _make_text_similarity_order(
    part: DimensionRatings, texts: Mapping[str, str], vectorize: TextVectorizer
) -> Any:
    """Return an order of own items by the cosine of their texts: inf for the judged text nearly repeated, and without
    a text."""
    vectors = vectorize([texts.get(key, "") for key in part.items])
    has_text = np.array([key in texts for key in part.items])

    def order(rows: Ints, history: Ints) -> Floats:
        judged = part.item[rows]
        others = part.item[history]
        similarity = cosine_similarities(vectors, judged, others)
        is_no_near_copy = similarity < _NEAR_COPY_COSINE
        is_usable_neighbour = is_no_near_copy & has_text[judged][:, None] & has_text[others]
        return np.where(is_usable_neighbour, -similarity, np.inf)

    return order


MODEL_JUDGES = ("zero-shot", "aggregate", "personalized")
_DEFAULT_DIMENSION = "score"
_RatingKey = tuple[str, str, str]
"""Dimension, reviewer and item."""


class JudgeRunSetting(NamedTuple):
    """A run of the study: a judge with a number of examples and the seed of their draw."""

    judge: str
    shots: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.judge}-{self.shots}-{self.seed}"

    def revise(self, config: Config, source: RawParams) -> Config:
        """Return the config with this judge alone; `source` are params that name the history.

        Other params are those of the config's first judge of reviewers. One answer is taken for each seed, unless they
        say otherwise, and none is discarded, as in all versions: the config's panel counts when they are read, so that
        another one continues the run.
        """
        template = find_judge_of_reviewers(config)
        params = {
            "samples": 1,
            **template.params,
            **source,
            "shots": self.shots,
            "seed": self.seed,
        }
        use = EvaluatorUse(use=self.judge, params=params, timeout=template.timeout)
        changes = {
            "evaluators": (use,),
            "components": {},
            "reward": {self.judge: 1.0},
            "gates": (),
            "panel": PanelConfig(min_confidence=0.0),
        }
        return config.model_copy(update=changes)


def find_judge_of_reviewers(config: Config) -> EvaluatorUse:
    """Return the first judge of reviewers, whose params are those of the study. Raises `InputError` without one."""
    for use in config.evaluators:
        if use.use in MODEL_JUDGES:
            return use
    raise InputError(f"--config: has no judge of reviewers; add one of {', '.join(MODEL_JUDGES)}")


def plan_runs(judges: Sequence[str], shots: Sequence[int], seeds: int) -> list[JudgeRunSetting]:
    """Return the runs that the judges need. Without examples all are `zero-shot`, and a seed changes nothing."""
    settings = [("zero-shot", 0, 0)] if "zero-shot" in judges else []
    judges_with_examples = [judge for judge in judges if judge in MODEL_JUDGES[1:]]
    settings += product(judges_with_examples, sorted({*shots} - {0}), range(seeds))
    return list(starmap(JudgeRunSetting, settings))


def task_lines(
    ratings: RatingsFile, texts: Mapping[str, str], prompts: Mapping[str, str]
) -> list[bytes]:
    """Return a line of TASKS for each rated item with a text, and its reviewers; responses have the items' keys.

    `prompts`, by key, are the queries.
    """
    ratings_by_item = defaultdict(list)
    for _, rating in ratings.rows:
        if rating.score is not None and rating.key in texts:
            ratings_by_item[rating.item].append(rating)
    if not ratings_by_item:
        unread = join_names([*ratings.unread_columns]) or "none"
        raise InputError(
            f"{ratings.path}: no rated item has a text; call the column of texts `text`, or name a "
            f"file of them with --items (columns not read: {unread})"
        )
    lines = []
    for item, item_ratings in ratings_by_item.items():
        reviewers = [rating.reviewer for rating in item_ratings]
        task = item_to_task(ratings.path, item, item_ratings, reviewers, texts, prompts)
        lines.append(task.model_dump_json(exclude_defaults=True).encode() + b"\n")
    return lines


def default_config(parts: Sequence[DimensionRatings]) -> JsonFields:
    """Return a config in which each dimension is described by its name, and its scale goes as far as the scores do."""
    dimensions = {}
    for part in parts:
        name = part.dimension or _DEFAULT_DIMENSION
        low = float(part.score.min())
        high = float(part.score.max())
        if low == high:
            raise InputError(
                f"dimension {name}: all scores are {low:g}; leave it out, there is nothing to predict"
            )
        has_integer_scores = (part.score == np.round(part.score)).all()
        step = 1.0 if has_integer_scores else None
        dimensions[name] = {"text": name, "scale": [low, high], "step": step}
    return {"evaluators": [{"use": "zero-shot", "params": {"dimensions": dimensions, "shots": 0}}]}


class _JudgeAnswer(NamedTuple):
    """A prediction with its reason; or NaN, and the reason why there is none (`problem`)."""

    value: float = np.nan
    text: str = ""
    problem: str = ""


@dataclass
class RunPredictions:
    """The predictions of a judge in a run, by dimension, reviewer and item; `inputs` are those of its reward that count
    them, by question. `use_by_history` has the judge by the digest of its history, if it has one. `texts` are those of
    the judged items."""

    run: str
    judge: str
    model: str
    shots: int
    seed: int
    verdicts: dict[_RatingKey, list[RecordedVerdict]] = field(default_factory=dict)
    inputs: dict[str, Sequence[ComponentInput]] = field(default_factory=dict)
    bill: CallBill = field(default_factory=CallBill)
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)
    use_by_history: dict[str, EvaluatorUse] = field(default_factory=dict)
    has_random_examples: bool = False
    queries: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """The judge with its model and number of examples: what an error is of."""
        return name_with_examples(f"{self.judge} ({self.model})", self.shots)


_ABSENT = "not in the run"
_MAX_QUERY_LENGTH = 1000
"""Queries that differ only later count as one."""
_ANSWERED_STATUSES = (JUDGED_STATUS, "not_applicable")
"""That a dimension excludes the item is a prediction, too (such as 0); where a gate says so, the status is `gated`."""


def _predict_answer_from_verdicts(
    verdicts: Sequence[RecordedVerdict], inputs: Mapping[str, Sequence[ComponentInput]]
) -> _JudgeAnswer:
    """Return what the verdicts of all seeds on a cell predict: what the `inputs` of their question count of them."""
    if not verdicts:
        return _JudgeAnswer(problem=_ABSENT)
    judged = [v for v in verdicts if judgement_status(v) in _ANSWERED_STATUSES]
    if not judged:
        return _JudgeAnswer(problem=judgement_status(verdicts[0]))
    question_inputs = inputs[verdicts[0].question]
    scale = judged[0].scale or (0.0, 1.0)
    scores = counted_scores(verdicts, question_inputs, scale)
    if scores:
        value = fmean(scores)
        nearest = min(judged, key=lambda verdict: abs(float(verdict.native or 0.0) - value))
        return _JudgeAnswer(value, nearest.reason)
    least = question_inputs[0].min_confidence
    without_limit = [use.model_copy(update={"min_confidence": 0.0}) for use in question_inputs]
    if least and counted_scores(verdicts, without_limit, scale):
        return _JudgeAnswer(problem=f"confidence below {100 * least:g}")
    return _JudgeAnswer(problem="no majority")


def read_judges(run: Run) -> dict[str, RunPredictions]:
    """Return the judges of reviewers in a run by name, without predictions. Raises `InputError` if there is none."""
    judges = {}
    queries: set[str] = set()
    texts: dict[str, str] = {}
    folder = str(run.folder)
    model = str(run.config.model)
    for use in run.config.evaluators:
        if use.use in MODEL_JUDGES:
            settings = ReviewerJudge.Params.model_validate(use.params)
            shots = 0 if use.use == "zero-shot" else settings.shots
            digest = run.header.evaluators[use.known_as].depends_on
            judges[use.known_as] = RunPredictions(
                folder,
                use.known_as,
                model,
                shots,
                settings.seed,
                dimensions=settings.resolved_dimensions,
                use_by_history={digest: use} if digest else {},
                has_random_examples=shots > 0 and settings.choice == "random",
                queries=queries,
                texts=texts,
            )
    if not judges:
        raise InputError(
            f"{folder}: has no judge of reviewers ({', '.join(MODEL_JUDGES)}); name a run with one"
        )
    return judges


def read_run(
    run: Run,
    advance: ProgressCallback = ignore_progress,
    panel: RawParams | None = None,
) -> list[RunPredictions]:
    """Return the predictions of each judge of reviewers in a run; `advance` is called with 1 for each task.

    The settings of a `panel` replace those of the run.

    Raises `InputError` if the run has none of these judges, and `TraceMismatch` if a record of it has been changed.
    """
    judges = read_judges(run)
    first, *_ = judges.values()  # all share the queries and texts
    for group in run.group_records():
        for trace, response in run.group(group):
            text = "" if response is None else response.text  # None: erased
            first.texts[trace.response_id] = text
            calls = {call.id: call for call in trace.calls}
            uses = read_uses(run.decision_of(trace.task_id))
            for verdict in verdicts_about_response(trace):
                if verdict.evaluator in judges:
                    judge = judges[verdict.evaluator]
                    if verdict.question not in judge.inputs:
                        inputs = uses[verdict.question].inputs
                        judge.inputs[verdict.question] = [
                            use.model_copy(update=panel) for use in inputs
                        ]
                    cell = (verdict.subject, verdict.reviewer or "", trace.response_id)
                    judge.verdicts.setdefault(cell, []).append(verdict)
                    for call in verdict.calls:
                        judge.bill.add(calls[call.id], "sent")
        first.queries.add(run.short_query(group.key, _MAX_QUERY_LENGTH))
        advance(1)
    return list(judges.values())


def read_earlier_ratings(
    runs: Sequence[RunPredictions], ratings: RatingsFile, texts: Mapping[str, str]
) -> list[Example]:
    """Return the history of the judges of runs; what rates an item or one of the `texts` here is of the item's group.

    Of several ratings of an item by a reviewer, in as many histories, one is returned. A history that cannot be read,
    or is not the one of the run any more, is left out with a warning.
    """
    rows = [rating for _, rating in ratings.rows]
    judged_rows = {texts[row.key]: row for row in rows if row.key in texts}
    judged_rows |= {row.item: row for row in rows} | {row.key: row for row in rows}
    earlier = {}
    for digest, use in ChainMap({}, *(run.use_by_history for run in runs)).items():
        with suppress(InputError, ConfigError):
            judge = load_evaluator(use)
            if isinstance(judge, ReviewerJudge) and judge.history and judge.depends_on == digest:
                for example in judge.history.examples:
                    names = (example.key, example.item, example.text)
                    row = next(filter(None, map(judged_rows.get, names)), example)
                    earlier[example.reviewer, example.key, example.dimension] = example.model_copy(
                        update={"item": row.item, "group": row.group}
                    )
                continue
        message = "%s: is not as the run read it, so judges without a model do not learn from it"
        _LOGGER.warning(message, use.params.get("history"))
    return list(earlier.values())


def join_runs(
    runs: Sequence[RunPredictions], parts: Sequence[DimensionRatings]
) -> list[list[Predictions]]:
    """Return the predictions for the ratings of each part; those of a judge with equal shots are its seeds, or judge
    other items.

    A prediction is what the reward of the run counts of the answers, over seeds and samples: by the paper on
    personalized judges, the majority of those that are not discarded. A rating without a prediction is counted by its
    reason, where no answer is left that of the first one. Costs are those of all requests of a judge, as if it had been
    alone: also of replies that came from the cache.

    Raises `InputError` for two runs with the same judge, shots and seed that predict the same.
    """
    has_several_models = len({run.model for run in runs}) > 1
    runs_by_judge_shots: dict[tuple[str, int], list[RunPredictions]] = defaultdict(list)
    for run in sorted(runs, key=attrgetter("seed")):
        name = f"{run.judge} ({run.model})" if has_several_models else run.judge
        members = runs_by_judge_shots[name, run.shots]
        for member in members:
            if member.seed == run.seed and not run.verdicts.keys().isdisjoint(member.verdicts):
                raise InputError(
                    f"{run.run}: also has {name} with {run.shots} examples and seed {run.seed}, as "
                    f"{member.run} has; leave one of the runs out"
                )
        members.append(run)
    # the judge without examples comes first
    sorted_runs = sorted(
        runs_by_judge_shots.items(),
        key=lambda item: (not item[0][0].startswith("zero-shot"), item[0]),
    )
    return [
        [_join_seeds(part, name, members) for (name, _), members in sorted_runs] for part in parts
    ]


def _join_seeds(part: DimensionRatings, name: str, seeds: Sequence[RunPredictions]) -> Predictions:
    answers = []
    absent = []
    inputs = ChainMap(*(run.inputs for run in seeds))
    names = sorted({reviewer for run in seeds for _, reviewer, _ in run.verdicts})
    for key in _rating_keys_of_part(part, seeds):
        verdicts = chain.from_iterable(run.verdicts.get(key, ()) for run in seeds)
        answer = _predict_answer_from_verdicts(list(verdicts), inputs)
        if key[1] not in names:
            answer = _JudgeAnswer(problem=f"not in the run ({suggest_known_name(key[1], names)})")
        answers.append(answer)
        if answer.problem == _ABSENT:
            absent.append(f"{key[1]} on {key[2]}")
    dimension = seeds[0].dimensions.get(key[0])
    problems = [answer.problem for answer in answers if answer.problem]
    sent_call_tallies = [run.bill.costs_by_source["sent"] for run in seeds]
    cost = None
    if not any(tally.unpriced for tally in sent_call_tallies):
        cost = sum(tally.cost for tally in sent_call_tallies)
    fold = _describe_fold(seeds)
    # each query has a draw of its own, and texts that answer none have one query
    has_one_draw = seeds[0].has_random_examples and len(seeds[0].queries) == 1
    return Predictions(
        name,
        seeds[0].shots,
        np.array([[answer.value for answer in answers]]),
        left_out=Counter(problems),
        setting=seeds[0].setting,
        calls=sum(tally.number for tally in sent_call_tallies),
        cost=cost,
        reasons=[answer.text for answer in answers],
        fold=fold,
        is_one_draw=has_one_draw and not fold,
        absent=absent,
        scale=dimension.scale if dimension else (),
    )


def _describe_fold(seeds: Sequence[RunPredictions]) -> str:
    """Return what a prediction is, such as `mean of 3 answers`; empty for a single answer."""
    seed_count = len({run.seed for run in seeds})
    answers = seed_count * max(map(len, seeds[0].verdicts.values()), default=0)
    if answers < 2:
        return ""
    use, *_ = next(iter(seeds[0].inputs.values()))
    least = f" of a confidence from {100 * use.min_confidence:g}" if use.min_confidence else ""
    return f"{use.reduce or 'mean'} of {answers} answers{least}"


def _rating_keys_of_part(
    part: DimensionRatings, runs: Sequence[RunPredictions]
) -> Iterator[_RatingKey]:
    """Yield the cell of each rating; ratings without a dimension are of the only one that the runs have."""
    dimension = part.dimension
    if dimension is None:
        subjects = {subject for subject, _, _ in chain.from_iterable(run.verdicts for run in runs)}
        dimension = subjects.pop() if len(subjects) == 1 else ""
    for reviewer, item in zip(part.reviewer.tolist(), part.item.tolist(), strict=True):
        yield dimension, part.names[reviewer], part.items[item]


def refuse_unlike_runs(
    runs: Sequence[RunPredictions], ratings: RatingsFile, parts: Sequence[DimensionRatings]
) -> None:
    """Raise `InputError` for a run that predicts none of the ratings, or has a scale that they leave."""
    scales = {name: dim.scale for run in runs for name, dim in run.dimensions.items()}
    refuse_scores_off_scale(ratings, scales)
    rated_keys = set(chain.from_iterable(_rating_keys_of_part(part, runs) for part in parts))
    for run in runs:
        if rated_keys.isdisjoint(run.verdicts):
            cells = []
            for key in (min(run.verdicts, default=("",) * 3), min(rated_keys)):
                dimension, reviewer, item = map(quote, key)
                cells.append(f"{reviewer} on {dimension} of {item}")
            raise InputError(
                f"{run.run}: predicts none of the ratings: responses, reviewers or dimensions have "
                f"other names (it has {cells[0]}, and the ratings have {cells[1]}); a response "
                "needs the id of the rated item"
            )


_MAX_ALPHA_LEVELS = 101
"""Most different scores of a dimension for which alpha is computed."""
_ROUNDING_ERROR = 1e-12
_FEW_REVIEWERS_THRESHOLD = 20
_FEW_ITEMS_THRESHOLD = 20

RatingsWithPredictions = tuple[DimensionRatings, PredictionColumns]
"""The ratings of a dimension, and all predictions of them."""


def report(
    judged: Sequence[RatingsWithPredictions],
    level: MeasurementLevel = "ordinal",
    vectorize: TextVectorizer = tf_idf,
    next_steps: Iterable[str] = (),
    all_tables: bool = True,
) -> Report:
    """Compare judges of reviewers; `next_steps` are the last of the hints, and `all_tables` has those of detail, too.

    The figures are `judges`: each with its most examples, for each dimension and each of its domains, with `answered`
    and `coverage` of its ratings, and on the `n` that all answered which answered any `alpha`, `rmse` and `mae`;
    `curve`, the same for each number of examples; `differences` of two judges' absolute errors (`first` less `second`),
    with intervals and p-values (Student's t, Holm; the planned pair's for itself) over reviewers and items, or groups
    of items, and `of_these` reviewers alone, over items; and for how many reviewers the first is nearer or farther, of
    the `n` ratings that all answered, or both of the planned pair; `reviewers`, each with every judge's error, and the
    error of `aggregate` less that of `personalized` (`gain`), on the `gain_n` ratings that both answered, with its
    interval over the reviewer's items and p-value (Holm, over reviewers), and of the last `judge`, the personalized one
    where there is one, its `bias` (judge less person), with an interval over the reviewer's items, and of all that it
    predicts its `rank_correlation`; `measured`, what each judge with a model is off by over those, by its setting
    (`MeasuredError`), and its `error` with its interval over the reviewer's items, with that of the `own_mean` on the
    same `error_n` ratings: the `state` of the judge (`STATE_TEXTS`) is by `own_mean_p` (Holm), and `own_mean_gain` is
    the own mean's error less the judge's, with an interval that holds for all of the `own_mean_tests` reviewers
    together; the `subject` of both is the own mean where no judge has a model; and `reasons`: the correlation of
    agreement with similar reasons, of reviewers or those of a judge for them, over `pairs` of reviewers.
    `matches` say how near a judge's reasons are to those of the person that it predicts (`own`), and to `others`' of
    the same item, and `side_by_side` has both texts.
    Errors are in units of the scores. For alpha a prediction counts as the nearest score that occurs.
    """
    names = ("judges", "curve", "differences", "reasons", "matches", "side_by_side", "reviewers")
    figures: Figures = {"level": level} | {name: [] for name in names}
    domain_judge_rows: list[Figures] = []
    reviewers = {}
    for part, columns in judged:
        # of each judge the last, which has the most examples
        best = list({prediction.judge: prediction for prediction in columns}.values())
        (_, all_ratings), *domains = part.split_by_domain()
        compared_judges = _predicting_judges(best)
        figures["judges"] += _measure_predictions(part, all_ratings, None, best, level)
        for domain, rows in domains:
            domain_judge_rows += _measure_predictions(part, rows, domain, best, level)
        figures["curve"] += _measure_predictions(part, all_ratings, None, columns, level)
        figures["differences"] += _compare_judge_errors(part, compared_judges)
        figures["reasons"] += _relate_reasons_to_scores(part, best, vectorize)
        figures["matches"] += _measure_reason_matches(part, best, vectorize)
        figures["side_by_side"] += _paired_reason_rows(part, best)
        reviewers[part.name] = _reviewer_figures(part, compared_judges)
    conclusion = conclude_reviewers(
        [row for row in figures["judges"] if row["judge"] not in PEER_BASELINE_NAMES],
        figures["differences"],
        reviewers,
        all_tables,
    )
    conclusion += conclude_draws(
        column.judge for _, columns in judged for column in columns if column.is_one_draw
    )
    figures["reviewers"] = list(chain.from_iterable(reviewers.values()))
    figures["judges"] += domain_judge_rows
    return Report(
        figures,
        lay_out_sections(figures, all_tables),
        _notes(judged),
        plot_errors(figures),
        conclusion,
        symbols.AGREEMENT_SYMBOL_MEANINGS,
        [*([] if all_tables else [ALL_TABLES_HINT]), *next_steps],
    )


def _predicting_judges(columns: PredictionColumns) -> list[Predictions]:
    """Return the judges that predict any rating, which are compared; all of them where none does."""
    return [prediction for prediction in columns if prediction.answered.any()] or list(columns)


def _is_predicted_by_all_judges(columns: PredictionColumns) -> Bools:
    """Return the ratings that all judges predict which predict any, [n]."""
    is_answered = [prediction.answered for prediction in _predicting_judges(columns)]
    return np.asarray(np.logical_and.reduce(is_answered))


def _measure_predictions(
    part: DimensionRatings,
    rows: Bools,
    domain: str | None,
    columns: PredictionColumns,
    level: MeasurementLevel,
) -> Iterator[Figures]:
    is_compared = _is_predicted_by_all_judges(columns) & rows
    for prediction in columns:
        is_commonly_answered = is_compared & prediction.answered
        is_answered = prediction.answered & rows
        errors = (prediction.values - part.score)[:, is_commonly_answered]
        answered_count = int(is_answered.sum())
        rmse = float(np.sqrt((errors**2).mean())) if is_commonly_answered.any() else None
        yield {
            "dimension": part.dimension,
            "domain": domain,
            "judge": prediction.judge,
            "shots": prediction.shots,
            "answered": answered_count,
            "coverage": answered_count / int(rows.sum()),
            "n": is_commonly_answered.sum(),
            "alpha": _alpha_with_interval(part, prediction.values, is_commonly_answered, level),
            "rmse": rmse,
            "mae": _mean_absolute_error(part, prediction, is_commonly_answered),
            "mae_of_answered": _mean_absolute_error(part, prediction, is_answered),
            "calls": prediction.calls,
            "cost": prediction.cost,
            "left_out": prediction.left_out,
            "fold": prediction.fold,
        }


def _mean_absolute_error(
    part: DimensionRatings, prediction: Predictions, rows: Bools
) -> IntervalCell | None:
    """Return the mean distance of predictions from own scores, over seeds, with its interval over reviewers."""
    distances = np.abs(prediction.values - part.score)[:, rows].mean(axis=0)
    return limit_interval(
        mean_with_cluster_interval(distances, part.reviewer[rows]),
        0.0,
        _find_largest_error(part, [prediction]),
    )


def _find_largest_error(part: DimensionRatings, columns: PredictionColumns) -> float:
    """Return how far off a judge can be: over the scale of the judges, and what scores and predictions there are."""
    values = np.concatenate([part.score, *(np.append(c.values, c.scale) for c in columns)])
    return float(np.nanmax(values) - np.nanmin(values))


def _alpha_with_interval(
    part: DimensionRatings, values: Floats, rows: Bools, level: MeasurementLevel
) -> IntervalCell | None:
    """Return alpha between predictions and own scores, the mean over seeds, with its interval over reviewers."""
    levels, level_index_of_score = np.unique(part.score, return_inverse=True)
    if len(levels) > _MAX_ALPHA_LEVELS or not rows.any():
        return None
    level_midpoints = (levels[1:] + levels[:-1]) / 2.0
    one_hot_levels = np.eye(len(levels))
    alphas_by_seed = []
    for predicted_scores in values:
        level_index_of_prediction = np.searchsorted(level_midpoints, predicted_scores[rows])
        counts = (
            one_hot_levels[level_index_of_prediction] + one_hot_levels[level_index_of_score[rows]]
        )
        alphas_by_seed.append(
            alphas_leaving_out_clusters(counts, levels, level, part.reviewer[rows])
        )
    return as_interval(estimate_from_alphas(np.mean(alphas_by_seed, axis=0)))


def _compare_judge_errors(part: DimensionRatings, columns: PredictionColumns) -> list[Figures]:
    common = _is_predicted_by_all_judges(columns)
    rows = []
    errors = absolute_errors(part, columns)
    largest = _find_largest_error(part, columns)
    for first, second in combinations(errors, 2):
        gaps = errors[first] - errors[second]
        # what no third judge predicts counts for a planned pair all the same
        is_compared = ~np.isnan(gaps) if {first, second} in PLANNED_PAIRS else common
        gaps = gaps[is_compared]
        # Equal predictions may be sums in another order.
        gaps[np.abs(gaps) < _ROUNDING_ERROR] = 0.0
        reviewer = part.reviewer[is_compared]
        estimate = crossed_interval(gaps, reviewer, part.group[is_compared])
        sums = np.bincount(reviewer, gaps)
        rows.append(
            {
                "dimension": part.dimension,
                "first": first,
                "second": second,
                "n": len(gaps),
                "ratings": len(part.score),
                "absolute": limit_interval(estimate, -largest, largest),
                "absolute_p": t_test_p(estimate),
                "of_these": limit_interval(
                    mean_with_cluster_interval(gaps, part.group[is_compared]), -largest, largest
                ),
                "nearer": (sums < 0).sum(),
                "farther": (sums > 0).sum(),
            }
        )
    # what the study is for is asked before it, and needs no allowance for the others
    planned = [row for row in rows if {row["first"], row["second"]} in PLANNED_PAIRS]
    return planned + adjust_p_values([row for row in rows if row not in planned], "absolute_p")


def _relate_reasons_to_scores(
    part: DimensionRatings, columns: PredictionColumns, vectorize: TextVectorizer
) -> Iterator[Figures]:
    sources = {prediction.judge: prediction.reasons for prediction in columns}
    for source, reasons in {"the reviewers": part.reasons, **sources}.items():
        if any(reasons):
            test = relate_reasons(part.reviewer, part.item, part.score, reasons, vectorize)
            if test.pairs:
                yield {"dimension": part.dimension, "reasons_of": source, **test._asdict()}


def _measure_reason_matches(
    part: DimensionRatings, columns: PredictionColumns, vectorize: TextVectorizer
) -> Iterator[Figures]:
    """Yield for each judge whether its reasons are nearer to those of the person that it predicts than to others'."""
    for prediction in columns:
        if any(part.reasons) and any(prediction.reasons):
            match = match_reasons(
                part.reviewer, part.item, part.reasons, prediction.reasons, vectorize
            )
            if match.cells:
                yield {"dimension": part.dimension, "judge": prediction.judge, **match._asdict()}


def _paired_reason_rows(part: DimensionRatings, columns: PredictionColumns) -> list[Figures]:
    """Return each judge's reason and the person's own, where both gave one; the largest error comes first."""
    rows = []
    for prediction in columns:
        mean_predictions = prediction.values.mean(axis=0)
        for index, (own, other) in enumerate(zip(part.reasons, prediction.reasons, strict=False)):
            if own.strip() and other.strip() and not np.isnan(mean_predictions[index]):
                rows.append(
                    {
                        "dimension": part.dimension,
                        "judge": prediction.judge,
                        "reviewer": part.names[part.reviewer[index]],
                        "item": part.items[part.item[index]],
                        "score": part.score[index],
                        "predicted": mean_predictions[index],
                        "reviewer_reason": own,
                        "judge_reason": other,
                    }
                )
    return sorted(rows, key=lambda row: -abs(row["predicted"] - row["score"]))


def _measure_settings(
    part: DimensionRatings, columns: PredictionColumns, reviewer: int, own_mean_errors: Floats
) -> dict[str, Figures]:
    """Return how far off each judge with a model is for a reviewer, over all ratings that it predicts, by its setting.

    `own_mean_errors` [n] are those of the reviewer's own mean. The fields are those of `MeasuredError`; a step is the
    usual distance of two scores, at most 1.
    """
    step = min(1.0, median(np.diff(np.unique(part.score)).tolist() or [1.0]))
    measured = {}
    for column in columns:
        rows = column.answered & (part.reviewer == reviewer)
        if column.setting and rows.any():
            errors = np.abs(column.values - part.score)[:, rows]
            measured[column.setting] = {
                "n": rows.sum(),
                "mae": errors.mean(),
                "own_mean": own_mean_errors[rows].mean(),
                "step": step,
                "exact": (errors < step / 2.0).mean(),
                "near": (errors < step + _ROUNDING_ERROR).mean(),
            }
    return measured


def _reviewer_figures(part: DimensionRatings, columns: PredictionColumns) -> list[Figures]:
    common = _is_predicted_by_all_judges(columns)
    errors = absolute_errors(part, columns)
    unknown = np.full(len(part.score), np.nan)
    own_mean_errors = errors.get("own-history", unknown)
    gaps = errors.get("aggregate", unknown) - errors.get("personalized", unknown)
    prediction = columns[-1]  # personalized where it is there: judges with a model come last
    judge = prediction.judge
    largest = _find_largest_error(part, columns)
    shifts = (prediction.values - part.score).mean(axis=0)
    reviewers = []
    for index, name in enumerate(part.names):
        rows = common & (part.reviewer == index)
        groups = part.group[rows]
        mae = {
            judge: float(error[rows].mean()) if rows.any() else None
            for judge, error in errors.items()
        }
        compared = (part.reviewer == index) & ~np.isnan(gaps)
        gain = mean_with_cluster_interval(gaps[compared], part.group[compared])
        bias = mean_with_cluster_interval(shifts[rows], groups)
        reviewers.append(
            {
                "dimension": part.dimension,
                "reviewer": name,
                "n": rows.sum(),
                "mae": mae,
                "measured": _measure_settings(part, columns, index, own_mean_errors),
                "gain": limit_interval(gain, -largest, largest),
                "gain_n": compared.sum(),
                "gain_p": t_test_p(gain),
                "judge": judge,
                "bias": limit_interval(bias, -largest, largest),
                "rank_correlation": correlate_order(part, shifts, index),
                **compare_with_own_mean(
                    part, judge, prediction.shots, errors[judge], own_mean_errors, index
                ),
            }
        )
    return list(tell_states(adjust_p_values(reviewers, "gain_p"), largest))


def _notes(judged: Sequence[RatingsWithPredictions]) -> Iterator[str]:
    yield from notes_on_similar_names(name for part, _ in judged for name in part.names)
    for part, columns in judged:
        name = part.name
        yield from notes_on_scores(
            name, part.score, "recode these before, so that their order is one"
        )
        if len(part.names) < _FEW_REVIEWERS_THRESHOLD:
            yield (
                f"{name}: reviewers: {len(part.names)}; with fewer than {_FEW_REVIEWERS_THRESHOLD}, "
                "intervals are rough"
            )
        item_group_count = len(np.unique(part.group))
        if item_group_count < _FEW_ITEMS_THRESHOLD:
            yield (
                f"{name}: items, or groups of them: {item_group_count}; with fewer than "
                f"{_FEW_ITEMS_THRESHOLD}, differences of judges are rough"
            )
        for prediction in columns:
            origin = f"{name}, {name_with_examples(prediction.judge, prediction.shots)}: "
            if prediction.answered.any():
                yield from omission_notes(prediction.left_out, origin)
                if prediction.absent:
                    yield f"{origin}{_ABSENT}: {join_names(prediction.absent)}"
                continue
            reasons = describe_omissions(prediction.left_out)
            yield f"{origin}predicts none of {len(part.score)} ratings: {reasons}"
