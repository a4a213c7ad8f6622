"""How far off the judges of a run are, from a study that was saved: what `export --study` writes with predictions.

A study is saved as `jurygraph study reviewers --json` prints it. Its errors are of rated items, so that they can be
shown with predictions of new ones. With another model or number of examples they would be those of another judge.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean

from jurygraph.errors import InputError
from jurygraph.messages import join_names
from jurygraph.runs.run import Run
from jurygraph.runs.table_reader import MeasuredError
from jurygraph.schema.frozen_model import FrozenModel
from jurygraph.sources.artifacts import read_json_object
from jurygraph.sources.files import validate_at_location
from jurygraph.studies.conclusions import STATE_TEXTS, name_with_examples
from jurygraph.studies.reviewers import read_judges

_LOGGER = logging.getLogger(__name__)

_POOLED = ("mae", "exact", "near")


class _SavedReviewer(FrozenModel, extra="ignore"):
    dimension: str | None
    reviewer: str
    measured: Mapping[str, MeasuredError] = {}
    subject: str = ""
    state: str = ""


class _SavedStudy(FrozenModel, extra="ignore"):
    reviewers: tuple[_SavedReviewer, ...]


def read_measured_errors(path: Path, run: Run) -> dict[str, MeasuredError]:
    """Return how far off each judge of the run is for each reviewer, by question.

    For reviewers without ratings, of a question that ends in @, it is how far off `aggregate` is over the others: each
    of them it judges from everybody else's ratings.

    Raises `InputError` where the file is no saved study, or measures none of these judges: of this model, and with as
    many examples.
    """
    hint = "save `jurygraph study reviewers RATINGS --run RUN --json`, of a run of rated items"
    content = read_json_object(path, "a saved study is", hint)
    study = validate_at_location(str(path), _SavedStudy, content)
    judges = read_judges(run).values()
    errors = {}
    of_others = defaultdict(list)
    for judge, row in product(judges, study.reviewers):
        dimension = row.dimension or min(judge.dimensions)  # unnamed: the only one
        question = f"{judge.judge}/{dimension}@"
        if judge.setting in row.measured:
            error = row.measured[judge.setting]
            if row.subject in (judge.setting, name_with_examples(judge.judge, judge.shots)):
                error = error.model_copy(update={"conclusion": STATE_TEXTS.get(row.state, "")})
            errors[f"{question}{row.reviewer}"] = error
        without_own_ratings = replace(judge, judge="aggregate").setting
        if without_own_ratings in row.measured:
            of_others[question].append(row.measured[without_own_ratings])
    measured = set().union(*(row.measured for row in study.reviewers))
    unmeasured = [judge.setting for judge in judges if judge.setting not in measured]
    problem = f"{path}: does not measure {join_names(unmeasured)}"
    if not errors:
        raise InputError(f"{problem}; {hint}")
    if unmeasured:
        _LOGGER.warning(
            "%s, but %s: nothing is said of how far off it is",
            problem,
            join_names(sorted(measured)),
        )
    return errors | {question: _pool(rows) for question, rows in of_others.items()}


def _pool(rows: Sequence[MeasuredError]) -> MeasuredError:
    """Return the errors of several reviewers as those of one, each rating with the same weight."""
    counts = [row.n for row in rows]
    means = {name: fmean((getattr(row, name) for row in rows), counts) for name in _POOLED}
    return rows[0].model_copy(update={**means, "own_mean": None, "n": sum(counts)})
