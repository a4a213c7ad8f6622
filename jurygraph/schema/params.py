"""Parameters as models: what a config may write as `params` of an evaluator, a deriver or a combiner."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ConfigDict

from jurygraph.errors import JurygraphError
from jurygraph.messages import Problem, validate
from jurygraph.schema.frozen_model import FrozenModel

M = TypeVar("M", bound="ParamsModel")

PlainParams = Mapping[str, Any]
"""Params as a config has them, or as a plan stores them."""


class ParamsModel(FrozenModel):
    """Base class of params, and no params by itself; the docstring below a field is its description in schemas."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def read_params(owner: str, model: type[M], params: PlainParams, error: type[JurygraphError]) -> M:
    """Return params as their model. Raises `error`, which names the owner, the first wrong one and what is right."""
    settings = validate(model, params)
    if isinstance(settings, Problem):
        raise error(f"{owner}: {'.'.join(filter(None, ('params', settings.field)))}: {settings}")
    return settings
