"""What a model replies about the steps of a response: each aspect of each step sound or not, and every fault quoted."""

from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, create_model, model_validator

from jurygraph.agents.judging.forms import Reason
from jurygraph.schema import Noun
from jurygraph.schema.noun import Flag

Aspect = Literal["accuracy", "facts", "coherence"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


# A docstring would stand in the schema that a model is given, and a name in what it is told of a field that is missing.


class FaultStated(Noun):  # what is wrong with an aspect of a step, before it is said that it is
    aspect: Aspect
    reason: Reason
    quote: Annotated[str, Field(max_length=1000)]


class StepStated(Noun):
    step: Annotated[int, Field(strict=True, ge=1)]
    faults: Annotated[tuple[FaultStated, ...], Field(max_length=len(ASPECTS))]
    accuracy: Flag
    facts: Flag
    coherence: Flag

    @model_validator(mode="after")
    def _each_unsound_aspect_has_its_fault(self) -> "StepStated":
        named = sorted(fault.aspect for fault in self.faults)
        unsound = sorted(aspect for aspect in ASPECTS if not getattr(self, aspect))
        if named != unsound:
            given, said = ", ".join(named) or "none", ", ".join(unsound) or "none"
            raise ValueError(f"faults name {given}, and false are {said}: give one fault for each that is false")
        return self


class StepsStated(Noun):
    steps: tuple[StepStated, ...]

    @model_validator(mode="after")
    def _in_order(self) -> "StepsStated":
        given = [one.step for one in self.steps]
        if given != list(range(1, len(given) + 1)):
            raise ValueError(f"the steps are {given}: give each once, in order, from 1 to {len(given)}")
        return self


@lru_cache(maxsize=128)
def steps_stated(number: int) -> type[StepsStated]:
    """What is to be replied about so many steps."""
    fields: Any = {"steps": (Annotated[tuple[StepStated, ...], Field(min_length=number, max_length=number)], ...)}
    return create_model("StepsStated", __base__=StepsStated, **fields)
