"""The models of a reply about the steps of a response: each aspect of each step sound or not, every fault quoted."""

from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, create_model, model_validator

from jurygraph.agents.judging.forms import Reason
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag

Aspect = Literal["accuracy", "facts", "coherence"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


# The next models have no docstrings because these would be part of the JSON schema that a model is given. Class names
# are visible too, in messages about missing fields.


class FaultReply(FrozenModel):  # comes before the flags of the aspects, so that the fault is described first
    aspect: Aspect
    reason: Reason
    quote: Annotated[str, Field(max_length=1000)]


class StepReply(FrozenModel):
    step: Annotated[int, Field(strict=True, ge=1)]
    faults: Annotated[tuple[FaultReply, ...], Field(max_length=len(ASPECTS))]
    accuracy: Flag
    facts: Flag
    coherence: Flag

    @model_validator(mode="after")
    def _check_faults(self) -> "StepReply":
        fault_aspects = sorted(fault.aspect for fault in self.faults)
        unsound = sorted(aspect for aspect in ASPECTS if not getattr(self, aspect))
        if fault_aspects != unsound:
            named, unsound_text = ", ".join(fault_aspects) or "none", ", ".join(unsound) or "none"
            raise ValueError(
                f"faults name {named}, and false are {unsound_text}: give one fault for each that is false"
            )
        return self


class StepsReply(FrozenModel):
    steps: tuple[StepReply, ...]

    @model_validator(mode="after")
    def _check_numbers(self) -> "StepsReply":
        numbers = [step.step for step in self.steps]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(f"the steps are {numbers}: give each once, in order, from 1 to {len(numbers)}")
        return self


@lru_cache(maxsize=128)
def steps_reply_model(number: int) -> type[StepsReply]:
    """Return the reply model about so many steps."""
    fields: Any = {"steps": (Annotated[tuple[StepReply, ...], Field(min_length=number, max_length=number)], ...)}
    return create_model("StepsReply", __base__=StepsReply, **fields)
