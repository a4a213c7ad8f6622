"""How far off the judges of a run are, from a study that was saved: what `export --study` writes with predictions.

A study is saved as `jurygraph study reviewers --json` prints it. Its errors are of rated items, so that they can be
shown with predictions of new ones. With another model or number of examples they would be those of another judge.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.messages import format_count, join_names
from jurygraph.runs.run import Run
from jurygraph.schema.frozen_model import FrozenModel, Number
from jurygraph.sources.artifacts import read_json_object
from jurygraph.sources.files import validate_at_location
from jurygraph.studies.reviewers import read_judges


class _SavedReviewer(FrozenModel, extra="ignore"):
    dimension: str | None
    reviewer: str
    n: int
    mae_by_setting: Mapping[str, Number | None] = {}


class _SavedStudy(FrozenModel, extra="ignore"):
    reviewers: tuple[_SavedReviewer, ...]


def read_measured_errors(path: Path, run: Run) -> dict[str, str]:
    """Return how far off each judge of the run is for each reviewer, by question.

    Raises `InputError` where the file is no saved study, or measures none of these judges: of this model, and with as
    many examples.
    """
    hint = "save `jurygraph study reviewers RATINGS --run RUN --json`, of a run of rated items"
    content = read_json_object(path, "a saved study is", hint)
    study = validate_at_location(str(path), _SavedStudy, content)
    judges = read_judges(run).values()
    errors = {}
    for judge, row in product(judges, study.reviewers):
        error = row.mae_by_setting.get(judge.setting)
        if error is not None:
            dimension = row.dimension or min(judge.dimensions)  # unnamed: the only one
            errors[f"{judge.judge}/{dimension}@{row.reviewer}"] = (
                f"± {error:.2f} on average over {format_count(row.n, 'rating')}"
            )
    if not errors:
        raise InputError(
            f"{path}: does not measure {join_names(judge.setting for judge in judges)}; {hint}"
        )
    return errors
