"""Groups of responses with a known SNR: how often does the interval of `study signal` contain it?"""

import numpy as np

from jurygraph.studies.presentations import Presentations, PresentationScore
from jurygraph.studies.stability import measure_signal_to_noise

_VARIANTS = 5


def cover_snr(tasks: int, group: int, snr: float, seed: int) -> bool:
    """Return whether the SNR of all groups together is within its interval.

    Rewards of a group differ with variance `snr`, and the noise of one wording has variance 1. Every response is scored
    in five wordings besides.
    """
    rng = np.random.default_rng((seed, tasks, group, round(10 * snr)))
    rows = []
    for task in range(tasks):
        signal = rng.normal(size=group)
        signal = np.sqrt(snr) * (signal - signal.mean()) / signal.std()
        scores = signal[:, None] + rng.normal(size=(group, 1 + _VARIANTS))
        for response, of_response in enumerate(scores.tolist()):
            fields = {"seed": f"r{task}.{response}", "task": f"t{task}", "stakeholders": 2}
            for version, score in enumerate(of_response):
                family = "order" if version else "original"
                rows.append(
                    PresentationScore(family=family, version=version, score=score, **fields)
                )
    found = measure_signal_to_noise(
        Presentations(sources=("simulated",), rows=tuple(rows))
    ).figures["together"]["SNR"]
    return found is not None and found.low is not None and bool(found.low <= snr <= found.high)
