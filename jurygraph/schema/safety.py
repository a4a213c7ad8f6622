"""The config of a judge's defences against adversarial responses: all are on by default."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from jurygraph.schema.frozen_model import Count, Flag, FrozenModel, Unit

ResponseGate = Literal["empty-response", "punctuation-only", "bare-opener", "reference-copy", "addresses-grader"]
RESPONSE_GATES: tuple[ResponseGate, ...] = get_args(ResponseGate)
GROUP_OF_ONE = "group-of-one"
GATED_LAYERS = ("model", "residual")
"""Layers whose questions get their verdict from a gate that stops a response."""
NO_VARIANT = "no-variant"
"""Marks questions about the variants of a response for which no variant could be made."""
WORST_CASE_GATES: tuple[str, ...] = (*RESPONSE_GATES, NO_VARIANT)
"""The names under which a question gets the worst answer without its evaluator, because of the response itself."""


def _sort_unique(gates: tuple[ResponseGate, ...]) -> tuple[ResponseGate, ...]:
    return tuple(gate for gate in RESPONSE_GATES if gate in gates)


Suite = Literal["master-keys", "null", "injection", "reference"]
"""The four suites of attacks by responses on their judge."""


class CanaryConfig(FrozenModel):
    """Known-bad responses mixed into a run to measure how often its judge can be fooled.

    `rate` is the share of the tasks to which one is given, of which attacks (`suite`), and chosen by `seed`. Where more
    of the verdicts on them give credit than `alert`, the run warns.
    """

    rate: Annotated[float, Field(strict=True, gt=0.0, le=1.0)]
    suite: Suite | Literal["all"] = "all"
    seed: Count = 0
    alert: Unit = 0.05


class SafetyConfig(FrozenModel):
    """Defences of a judge. Turn one off only to measure its effect (`jurygraph attack`).

    `fence` sets texts by others between marks that they cannot forge; `reminder` repeats the question behind the
    response; `whole_reply` counts a reply as a whole or not at all, where else the first JSON object in it would do;
    `evidence` gives no credit without a quotation from the response. `gates` stop responses that need no model to be
    judged.
    """

    fence: Flag = True
    reminder: Flag = True
    whole_reply: Flag = True
    evidence: Flag = True
    gates: Annotated[tuple[ResponseGate, ...], AfterValidator(_sort_unique)] = RESPONSE_GATES
