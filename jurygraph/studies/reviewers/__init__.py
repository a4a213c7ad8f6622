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
from jurygraph.studies.reviewers.report import report

__all__ = ["NO_MODEL", "PEERS", "Predictions", "ScoredPart", "predict", "read_parts", "report", "texts_of"]
