"""Report models of a credit study."""

from pydantic import Field

from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Id, Number, Unit
from jurygraph.schema.rubric import Kind
from jurygraph.schema.task import NonNegative


class Estimate(FrozenModel):
    """A mean over `cases`, and its 95 % bootstrap interval over examples.

    `value` is None without a case; the ends are None also with fewer than two examples. `empty_resamples` resamples had
    no case and were left out of the interval.
    """

    value: Number | None
    low: Number | None
    high: Number | None
    cases: Count
    empty_resamples: Count


class Diagnosis(FrozenModel):
    """Leakage (GEAR Eq. 15, over leakage cases) and preservation (Eq. 16, over satisfied cases)."""

    leakage: Estimate
    preservation: Estimate


class Method(Diagnosis):
    """One aggregation rule: over all edges that count, by kind of edge, and the mean reward of the rubric.

    `change` is the mean change of the reward against flat aggregation.
    """

    kinds: dict[Id, Diagnosis]
    reward: Number
    change: Number


class Variant(FrozenModel):
    """One ablation, without intervals. The cases are those of the annotated graph, whatever graph the scores use."""

    leakage: Number | None
    preservation: Number | None
    reward: Number
    change: Number


class RandomGraphs(FrozenModel):
    """Random graphs: the mean over seeds, and the figures by seed.

    Of the `graphs` drawn, one for each seed and rubric with an edge, `unchanged` equal the graph they replace: the
    smaller the rubrics, the less a random graph differs.
    """

    mean: Variant
    by_seed: dict[str, Variant] = Field(min_length=1)
    graphs: Count
    unchanged: Count


class Untyped(Variant):
    """The annotated graph with the same λ for all edges."""

    retention: Unit


class Ablations(FrozenModel):
    """The ablations: random graphs (None without seeds), one λ for all edges, and GEAR by κ."""

    random: RandomGraphs | None
    untyped: Untyped
    kappas: dict[str, Variant]


class Census(FrozenModel):
    """Sizes of the data.

    `examples` are the responses with a reward from a rubric, of `rubrics` tasks, `graphs` of which have an edge. Of the
    `edges` (counted once for each example), `unjudged` are no cases, because an end was not judged or does not apply.
    `left_out` counts tasks and responses by reason.
    """

    tasks: Count
    responses: Count
    rubrics: Count
    graphs: Count
    examples: Count
    edges: Count
    unjudged: Count
    left_out: dict[str, Count]


class Agreement(FrozenModel):
    """Exact against approximate marginals, and the resulting rewards, over pairs of a graph and a response.

    `pairs` were compared. Left out were `too_large` pairs, of rubrics with more than 20 criteria, and `unjudged` pairs,
    in which a criterion was not judged or does not apply: its replacement score is not part of the model. Responses to
    rubrics without an edge are not pairs. The errors are None without a pair; `reward_correlation` (Pearson's) is None
    also if either kind of reward is constant.
    """

    pairs: Count
    too_large: Count
    unjudged: Count
    criteria: Number | None
    marginal_mae: Number | None
    reward_mae: Number | None
    reward_correlation: Number | None


class Loss(FrozenModel):
    """The loss of a criterion: (|w| / Σ_{w>0} w) · (p - q), a share of the total reward; for a penalty, the deduction
    avoided.

    `mean_loss` is the mean over the `responses` in which it was judged, `most` the greatest loss, of response
    `max_loss_response`. `parent` is the one that takes most over these responses: for q = p Π f, the mean of
    (|w| / Σ_{w>0} w) · p · (1 - f) is greatest for its factor f; `kind`, `retention` (λ at the run's κ) and `reason`
    are those of its edge.
    """

    task: Id
    criterion: Id
    weight: Number
    responses: Count
    mean_loss: Number
    most: Number
    max_loss_response: Id
    parent: Id
    kind: Kind
    retention: Unit
    reason: str


class CreditReport(FrozenModel):
    """The study of one run; `kappa` is the run's, used for `gear` and for the untyped and random graphs."""

    kappa: NonNegative
    threshold: Unit
    kinds: tuple[Id, ...]
    resamples: Count
    seed: Count
    census: Census
    methods: dict[Id, Method]
    ablations: Ablations
    exact: Agreement
    losses: tuple[Loss, ...]
