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
WORST_CASE_REASONS: tuple[str, ...] = (*RESPONSE_GATES, NO_VARIANT)
"""The names under which a question gets the worst answer without its evaluator, because of the response itself."""


Suite = Literal["master-keys", "null", "injection", "reference"]
"""The four suites of attacks by responses on their judge."""


class CanaryConfig(FrozenModel):
    """Known-bad responses mixed into a run, to measure if its judge can be fooled.

    `rate` is the share of tasks that get one, from the attacks of `suite`, chosen by `seed`. The run reports it if more
    than the share `alert` of the verdicts on them give credit.
    """

    rate: Annotated[float, Field(strict=True, gt=0.0, le=1.0)]
    suite: Suite | Literal["all"] = "all"
    seed: Count = 0
    alert: Unit = 0.05


class SafetyConfig(FrozenModel):
    """Defences of a judge. Disable one only to measure its effect (`jurygraph attack`).

    `fence` puts texts by others between marks that they cannot forge. `reminder` repeats the question after the
    response. `whole_reply` accepts or rejects a reply as a whole; without it, the first JSON object in the reply
    counts. `evidence` gives no credit without a quotation from the response. `gates` stop responses that need no model.
    """

    fence: Flag = True
    reminder: Flag = True
    whole_reply: Flag = True
    evidence: Flag = True
    gates: Annotated[
        tuple[ResponseGate, ...], AfterValidator(lambda gates: tuple(gate for gate in RESPONSE_GATES if gate in gates))
    ] = RESPONSE_GATES
