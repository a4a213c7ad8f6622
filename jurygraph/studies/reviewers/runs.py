"""The runs of a study of reviewers: tasks of the rated items, a config for each judge, and what was predicted."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from jurygraph.errors import InputError
from jurygraph.judges.reviewers import Personalized, ReviewerJudge
from jurygraph.runs.reports.summary import Bill
from jurygraph.runs.run import Run
from jurygraph.runs.tables import own_verdicts
from jurygraph.schema import Config, RecordedVerdict
from jurygraph.schema.config import EvaluatorUse, PanelConfig
from jurygraph.schema.rating import Rating
from jurygraph.sources.importers.votes import item_to_task
from jurygraph.sources.ratings import Ratings
from jurygraph.studies.agreement import ScoredPart
from jurygraph.studies.judge import JUDGED, status_of
from jurygraph.studies.reviewers.baselines import Predictions

MODEL_JUDGES = ("zero-shot", "aggregate", "personalized")
_ONLY_DIMENSION = "score"
_Cell = tuple[str, str, str]
"""Dimension, reviewer and item."""


class Design(NamedTuple):
    """A run of the study: a judge with a number of examples and the seed of their draw."""

    judge: str
    shots: int
    seed: int

    @property
    def name(self) -> str:
        """The name of the run."""
        return f"{self.judge}-{self.shots}-{self.seed}"

    def revise(self, config: Config, source: Mapping[str, Any]) -> Config:
        """Return the config with this judge alone; `source` are params that name the history.

        Other params are those of the config's first judge of reviewers. One answer is taken for each seed, unless they
        say otherwise, and nothing is discarded: confidence is a choice of the reader.
        """
        given = next((use for use in config.evaluators if use.use in MODEL_JUDGES), None)
        if given is None:
            raise InputError(f"--config: has no judge of reviewers; add one of {', '.join(MODEL_JUDGES)}")
        known = (Personalized if self.judge == "personalized" else ReviewerJudge).Params.model_fields
        params = {"samples": 1} | {name: value for name, value in given.params.items() if name in known}
        params |= {**source, "shots": self.shots, "seed": self.seed}
        use = EvaluatorUse(use=self.judge, params=params, timeout=given.timeout)
        changes: dict[str, Any] = {"components": {}, "reward": {self.judge: 1.0}, "gates": ()}
        return config.model_copy(update={"evaluators": (use,), "panel": PanelConfig(min_confidence=0.0), **changes})


def plan_runs(judges: Sequence[str], shots: Sequence[int], seeds: int) -> list[Design]:
    """Return the runs that the judges need. Without examples all are `zero-shot`, and a seed changes nothing."""
    designs = [Design("zero-shot", 0, 0)] if "zero-shot" in judges else []
    for judge in judges:
        if judge in MODEL_JUDGES[1:]:
            designs += [Design(judge, shot, seed) for shot in sorted({*shots} - {0}) for seed in range(seeds)]
    return designs


def tasks_of(ratings: Ratings, texts: Mapping[str, str]) -> list[bytes]:
    """Return a line of TASKS for each rated item with a text, and its reviewers; responses have the items' keys."""
    by_item: dict[str, list[Rating]] = {}
    for _, rating in ratings.rows:
        if rating.score is not None and rating.key in texts:
            by_item.setdefault(rating.item, []).append(rating)
    if not by_item:
        raise InputError(f"{ratings.path}: no rated item has a text; name a file of texts with --items")
    tasks = [
        item_to_task(ratings.path, item, rated, [one.reviewer for one in rated], texts)
        for item, rated in by_item.items()
    ]
    return [task.model_dump_json(exclude_defaults=True).encode() + b"\n" for task in tasks]


def default_config(parts: Sequence[ScoredPart]) -> dict[str, Any]:
    """Return a config in which each dimension is described by its name, and its scale goes as far as the scores do."""
    dimensions = {}
    for part in parts:
        name = part.dimension or _ONLY_DIMENSION
        low = float(part.score.min())
        high = float(part.score.max())
        if low == high:
            raise InputError(f"dimension {name}: all scores are {low:g}; leave it out, there is nothing to predict")
        is_whole = bool((part.score == np.round(part.score)).all())
        dimensions[name] = {"text": name, "scale": [low, high], "step": 1.0 if is_whole else None}
    return {"evaluators": [{"use": "zero-shot", "params": {"dimensions": dimensions, "shots": 0}}]}


class _Answer(NamedTuple):
    """A prediction with its reason; or NaN, and the reason why there is none (`problem`)."""

    value: float
    text: str
    problem: str


@dataclass
class RunPredictions:
    """The predictions of a judge in a run, by dimension, reviewer and item."""

    run: str
    judge: str
    model: str
    shots: int
    seed: int
    verdicts: dict[_Cell, list[RecordedVerdict]] = field(default_factory=dict)
    bill: Bill = field(default_factory=Bill)

    def answer(self, cell: _Cell, min_confidence: float) -> _Answer:
        """Return the mean of the samples with at least this confidence, in [0, 1]."""
        verdicts = self.verdicts.get(cell, ())
        judged = [one for one in verdicts if status_of(one) == JUDGED and isinstance(one.native, int | float)]
        sure = [one for one in judged if one.confidence is None or one.confidence >= min_confidence]
        if sure:
            return _Answer(fmean(float(one.native or 0.0) for one in sure), sure[0].reason, "")
        if judged:
            return _Answer(np.nan, "", f"confidence below {100 * min_confidence:g}")
        return _Answer(np.nan, "", status_of(verdicts[0]) if verdicts else "not in the run")


def read_run(run: Run, advance: Callable[[int], None] = lambda tasks: None) -> list[RunPredictions]:
    """Return the predictions of each judge of reviewers in a run; `advance` is called with 1 for each task.

    Raises:
        InputError: the run has none of these judges.
        TraceMismatch: a record of the run has been changed.
    """
    found: dict[str, RunPredictions] = {}
    folder = str(run.folder)
    for use in run.config.evaluators:
        if use.use in MODEL_JUDGES:
            settings = ReviewerJudge.Params.model_validate(
                {name: value for name, value in use.params.items() if name in ReviewerJudge.Params.model_fields}
            )
            shots = 0 if use.use == "zero-shot" else settings.shots
            found[use.known_as] = RunPredictions(folder, use.known_as, str(run.config.model), shots, settings.seed)
    if not found:
        raise InputError(f"{folder}: has no judge of reviewers ({', '.join(MODEL_JUDGES)}); name a run with one")
    for group in run.group_records():
        for trace, _ in run.group(group):
            calls = {call.id: call for call in trace.calls}
            for one in own_verdicts(trace):
                if one.evaluator in found:
                    judge = found[one.evaluator]
                    cell = (one.subject, one.reviewer or "", trace.response_id)
                    judge.verdicts.setdefault(cell, []).append(one)
                    for call in one.calls:
                        judge.bill.add(calls[call.id], "sent")
        advance(1)
    return list(found.values())


def join_runs(
    runs: Sequence[RunPredictions], parts: Sequence[ScoredPart], min_confidence: float = 0.0
) -> list[list[Predictions]]:
    """Return the predictions for the ratings of each part; those of a judge with equal shots are its seeds.

    A rating without a prediction is counted by its reason, that of the first seed. Costs are those of all requests of a
    judge, as if it had been alone: also of replies that came from the cache.

    Raises:
        InputError: two runs with the same judge, shots and seed.
    """
    has_models = len({one.model for one in runs}) > 1
    grouped: dict[tuple[str, int], dict[int, RunPredictions]] = {}
    for one in runs:
        name = f"{one.judge} ({one.model})" if has_models else one.judge
        seeds = grouped.setdefault((name, one.shots), {})
        first = seeds.setdefault(one.seed, one)
        if first is not one:
            problem = f"also has {name} with {one.shots} examples and seed {one.seed}, as {first.run} has"
            raise InputError(f"{one.run}: {problem}; leave one of the runs out")
    ordered = sorted(grouped.items(), key=lambda item: (_place(item[0][0]), item[0]))
    return [
        [
            _join(part, name, shots, [seeds[seed] for seed in sorted(seeds)], min_confidence)
            for (name, shots), seeds in ordered
        ]
        for part in parts
    ]


def _join(
    part: ScoredPart, name: str, shots: int, runs: Sequence[RunPredictions], min_confidence: float
) -> Predictions:
    cells = list(_cells(part, runs))
    answers = [[one.answer(cell, min_confidence) for cell in cells] for one in runs]
    problems = (next((one.problem for one in given if one.problem), "") for given in zip(*answers, strict=True))
    sent = [one.bill.tallies["sent"] for one in runs]
    return Predictions(
        name,
        shots,
        np.array([[one.value for one in given] for given in answers]),
        left_out=Counter(filter(None, problems)),
        calls=sum(one.number for one in sent),
        cost=None if any(one.unpriced for one in sent) else sum(one.cost for one in sent),
        reasons=[one.text for one in answers[0]],
    )


def _place(judge: str) -> int:
    return next((place for place, name in enumerate(MODEL_JUDGES) if judge.startswith(name)), len(MODEL_JUDGES))


def _cells(part: ScoredPart, runs: Sequence[RunPredictions]) -> Iterator[_Cell]:
    """Yield the cell of each rating; ratings without a dimension are of the only one that the runs have."""
    dimension = part.dimension
    if dimension is None:
        known = {subject for one in runs for subject, _, _ in one.verdicts}
        dimension = known.pop() if len(known) == 1 else ""
    for reviewer, item in zip(part.reviewer.tolist(), part.item.tolist(), strict=True):
        yield dimension, part.names[reviewer], part.items[item]


def unrated_notes(runs: Sequence[RunPredictions], parts: Sequence[ScoredPart]) -> Iterator[str]:
    """Yield a note for each run with predictions of what nobody rated.

    Raises `InputError` for a run that predicts none of the ratings.
    """
    rated = {cell for part in parts for cell in _cells(part, runs)}
    for one in runs:
        unrated = len(one.verdicts.keys() - rated)
        if unrated == len(one.verdicts):
            problem = "predicts none of the ratings: responses, reviewers or dimensions have other names"
            raise InputError(f"{one.run}: {problem}; a response needs the id of the rated item")
        if unrated:
            yield f"{one.run}, {one.judge}: omitted, predictions of what is not rated: {unrated}"
