"""A comparison of judges of reviewers: whose scores each predicts, how well, and what that costs.

The comparison of "Aggregate vs. Personalized Judges", with judges that need no model and judges that do.
"""

from jurygraph.studies.reviewers.baselines import (
    NO_MODEL,
    PEERS,
    Predictions,
    ScoredPart,
    predict,
    read_parts,
    texts_of,
)
from jurygraph.studies.reviewers.design import default_config, plan_runs, tasks_of
from jurygraph.studies.reviewers.report import report
from jurygraph.studies.reviewers.runs import MODEL_JUDGES, RunPredictions, join_runs, read_run, unrated_notes
from jurygraph.studies.reviewers.texts import EmbeddedTexts, tf_idf

__all__ = [
    "MODEL_JUDGES",
    "NO_MODEL",
    "PEERS",
    "EmbeddedTexts",
    "Predictions",
    "RunPredictions",
    "ScoredPart",
    "default_config",
    "join_runs",
    "plan_runs",
    "predict",
    "read_parts",
    "read_run",
    "report",
    "tasks_of",
    "texts_of",
    "tf_idf",
    "unrated_notes",
]
