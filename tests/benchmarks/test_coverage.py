"""Coverage of intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.simulation.coverage import known_posterior, mean_confusions
from jurygraph.studies.simulate import KINDS, Setting, stableval

pytestmark = pytest.mark.exhaustive


def test_mean_confusions_equal_label_frequencies_in_the_population() -> None:
    drawn = stableval(Setting(items=20_000), 0)
    mean = mean_confusions(drawn)
    truth = drawn.truth[drawn.item]
    for kind in KINDS:
        of = drawn.kinds.index(kind)
        for cls in range(3):
            labels = drawn.label[(drawn.annotator == of) & (truth == cls)]
            seen = np.bincount(labels, minlength=3) / len(labels)
            assert_allclose(seen, mean[of, cls], atol=4.5 * 0.5 / np.sqrt(len(labels)))


def test_the_known_posterior_is_bayes_rule() -> None:
    drawn = stableval(Setting(items=3), 0)
    mean, shares = mean_confusions(drawn), drawn.setting.shares.mean(axis=0)
    for item, found in enumerate(known_posterior(drawn)):
        joint = shares.copy()
        for annotator, label in zip(drawn.annotator[drawn.item == item], drawn.label[drawn.item == item], strict=True):
            joint *= mean[annotator, :, label]
        assert_allclose(found, joint / joint.sum())
