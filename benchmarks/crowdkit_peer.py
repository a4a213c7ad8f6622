"""Dawid and Skene's model by crowd-kit, run by a Python that has it: prints its seconds of CPU and its steps.

python crowdkit_peer.py ROWS ESTIMATE STEPS ROUNDS

ROWS is an .npz of codes `item`, `annotator`, `label`; ESTIMATE becomes one of `prior` [K] and `confusion` [A,K,K].
STEPS is a number of steps to take whatever they change, or 0 for crowd-kit's own settings.
"""

import sys
from time import process_time

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene


def fit_timed(rows: pd.DataFrame, steps: int) -> tuple[float, DawidSkene]:
    """Return the seconds of CPU, and the fit_timed model."""
    model = DawidSkene(n_iter=steps, tol=-np.inf) if steps else DawidSkene()
    start = process_time()
    model.fit(rows)
    return process_time() - start, model


def estimate(model: DawidSkene, annotators: int, classes: int) -> dict[str, np.ndarray]:
    """Return class shares, and confusions by annotator, true class and label."""
    places = pd.MultiIndex.from_product([range(annotators), range(classes)])
    errors = model.errors_.reindex(places, fill_value=0.0).reindex(columns=range(classes))
    confusion = errors.to_numpy().reshape(annotators, classes, classes).transpose(0, 2, 1)
    return {"prior": model.priors_.reindex(range(classes)).to_numpy(), "confusion": confusion}


if __name__ == "__main__":
    given, written, steps, rounds = sys.argv[1:]
    codes = np.load(given)
    rows = pd.DataFrame(
        {"task": codes["item"], "worker": codes["annotator"], "label": codes["label"]}
    )
    runs = [fit_timed(rows, int(steps)) for _ in range(int(rounds))]
    estimated = estimate(
        runs[0][1], int(codes["annotator"].max()) + 1, int(codes["label"].max()) + 1
    )
    np.savez(written, **estimated)  # type: ignore[arg-type]  # an older NumPy has arrays alone here
    print(min(seconds for seconds, _ in runs), len(runs[0][1].loss_history_))
