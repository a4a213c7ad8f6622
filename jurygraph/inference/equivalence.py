"""Is a difference small enough? Non-inferiority, equivalence, and the difference that a design can detect."""

from jurygraph.inference.clusters import Estimate, t_quantile

POWER = 0.8


def no_worse_p(estimate: Estimate, margin: float) -> float | None:
    """Return the one-sided p-value of "the true value is at or below -margin": small means no worse than by `margin`.

    It is below .025 where the lower end of the 95 % interval is above -margin. None where the error is unknown or 0:
    without spread there is nothing to test.
    """
    return _upper_tail(estimate, estimate.value + margin)


def equivalence_p(estimate: Estimate, margin: float) -> float | None:
    """Return the p-value of two one-sided tests (TOST, Schuirmann 1987) of "the true value is outside ± margin".

    It is the larger of the two. None where the error is unknown or 0.
    """
    above, below = _upper_tail(estimate, estimate.value + margin), _upper_tail(estimate, margin - estimate.value)
    return None if above is None or below is None else max(above, below)


def detectable_difference(estimate: Estimate) -> float | None:
    """Return the smallest true difference that a test at 5 %, two-sided, would find with power 0.8, given this error.

    It is the noncentrality of Student's t with the clusters' degrees of freedom that gives this power, times the error;
    the chance of a significant result of the wrong sign is neglected. None where the estimate has no error, or where
    that is 0.
    """
    from scipy import special

    if not estimate.error:
        return None
    freedom = estimate.clusters - 1
    return float(special.nctdtrinc(freedom, 1.0 - POWER, t_quantile(freedom))) * estimate.error


def _upper_tail(estimate: Estimate, distance: float) -> float | None:
    """Return P(T >= distance / error) for Student's T."""
    from scipy import special

    if not estimate.error:
        return None
    return float(special.stdtr(estimate.clusters - 1, -distance / estimate.error))
