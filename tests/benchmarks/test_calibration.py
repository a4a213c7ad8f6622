"""Calibration of posteriors."""

import numpy as np
import pytest

from benchmarks.simulation.calibration import calibration_error

pytestmark = pytest.mark.exhaustive


def test_the_error_is_confidence_minus_accuracy() -> None:
    posterior = np.tile([0.05, 0.05, 0.9], (100, 1))
    truth = np.repeat([2, 0], 50)
    assert calibration_error(posterior, truth) == pytest.approx((0.4, 0.9, 0.5))


def test_errors_of_different_bins_do_not_cancel() -> None:
    posterior = np.repeat([[0.05, 0.05, 0.9], [0.3, 0.3, 0.4]], 50, axis=0)
    truth = np.concatenate([np.repeat([2, 0], [30, 20]), np.repeat([2, 0], [35, 15])])
    found = calibration_error(posterior, truth)
    assert found == pytest.approx((0.3, 0.65, 0.65))
