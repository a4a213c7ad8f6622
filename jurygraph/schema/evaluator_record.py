"""The record of an evaluator that a run stores, for use without the evaluator itself."""

from pydantic import Field

from jurygraph.schema.frozen_model import FrozenModel, Id, Positive
from jurygraph.schema.task import Audience


class EvaluatorRecord(FrozenModel):
    """An evaluator's version and audience, and how its questions form a component of their own.

    `combiner` is the combiner of that component. `shares` are the weights of its questions by the first part of their
    subject, up to a slash; when empty, all questions weigh the same. `depends_on` is the digest of further inputs of
    its questions, such as a history that it read; empty without any.
    """

    version: str
    audience: Audience
    combiner: Id = Field(default="mean", exclude_if=lambda combiner: combiner == "mean")
    shares: dict[Id, Positive] = Field(default_factory=dict, exclude_if=lambda shares: not shares)
    depends_on: str = Field(default="", exclude_if=lambda depends_on: not depends_on)
