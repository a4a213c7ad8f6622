"""The runs of a study of reviewers: tasks of the rated items, and a config for each judge, shots and seed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jurygraph.errors import InputError
from jurygraph.judges.reviewers import Personalized, ReviewerJudge
from jurygraph.schema import Config
from jurygraph.schema.config import EvaluatorUse, PanelConfig
from jurygraph.schema.rating import Rating
from jurygraph.sources.importers.votes import item_to_task
from jurygraph.sources.ratings import Ratings
from jurygraph.studies.reviewers.baselines import ScoredPart
from jurygraph.studies.reviewers.runs import MODEL_JUDGES

_ONLY_DIMENSION = "score"


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
