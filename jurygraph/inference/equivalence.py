"""Is a difference small enough? Non-inferiority, and the difference that a design can detect."""

from jurygraph.inference.clusters import Estimate, t_quantile

POWER = 0.8


def no_worse_p(estimate: Estimate, margin: float) -> float | None:
    """Return the one-sided p-value of "the true value is at or below -margin": small means no worse than by `margin`.

    It is below .025 where the lower end of the 95 % interval is above -margin. None where the error is unknown or 0:
    without spread there is nothing to test.
    """
    from scipy import special

    if not estimate.error:
        return None
    return float(special.stdtr(estimate.clusters - 1, -(estimate.value + margin) / estimate.error))


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
