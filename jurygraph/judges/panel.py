"""Combine the verdicts of a panel of judges, and report how far the judges disagree.

The `panel` section of the config decides beforehand which verdicts are effective: those below the confidence threshold
are discarded, and more than half of the seeds must agree. A question without a majority counts as abstained.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.decision.combiner import Component, ScoreMatrix
from jurygraph.decision.combiners import Mean


class Panel(Mean):
    """Mean of the judges, each judge a part; the diagnostics report their disagreement.

    `disagreement` is the mean of |r_i - r_j| over pairs of judges with an effective verdict, 0 if there is no pair (the
    paper finds that disagreement is structure, not noise). `lowest` and `highest` are the lowest and the highest score
    of a judge.
    """

    name = "panel"

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        mean = super().combine(matrices, params)
        means = [replace(matrix, applicable=matrix.applicable & matrix.judged).mean() for matrix in matrices.values()]
        value = np.stack([value for value, _ in means], axis=1)
        has_score = np.stack([present for _, present in means], axis=1)
        distance = np.abs(value[:, :, None] - value[:, None, :])
        is_pair = has_score[:, :, None] & has_score[:, None, :] & ~np.eye(len(matrices), dtype=np.bool_)
        pairs = np.asarray(aggregation.total(aggregation.total(np.where(is_pair, 1.0, 0.0))))
        diagnostics = {
            "disagreement": aggregation.total(aggregation.total(np.where(is_pair, distance, 0.0)))
            / np.maximum(pairs, 1.0),
            "lowest": np.where(has_score.any(axis=1), np.where(has_score, value, 1.0).min(axis=1), 0.0),
            "highest": np.where(has_score, value, 0.0).max(axis=1),
        }
        parts = {name: matrix.mean()[0] for name, matrix in matrices.items()}
        return Component(mean.value, mean.present, parts, diagnostics)
