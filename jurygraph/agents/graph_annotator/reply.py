"""The models of the annotator's replies.

The schema sent to the model allows only existing ids; the reply is parsed with any id, so that an unknown one
invalidates an answer and not the whole reply.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from jurygraph.schema import FrozenModel
from jurygraph.schema.rubric import Role

_MAX_ENTRIES = 1024
_MAX_PERCENT = 100

Reason = Annotated[str, Field(max_length=1000)]
Named = Annotated[str, Field(max_length=600)]
Percent = Annotated[int, Field(strict=True, ge=0, le=_MAX_PERCENT)]
Relation = Literal["none", "weak", "strong", "activation"]


# No docstrings below: they would be part of the JSON schema that a model is given.


class RoleReply(FrozenModel):
    reason: Reason
    criterion: Named
    role: Role


class RolesReply(FrozenModel):
    roles: tuple[RoleReply, ...] = Field(max_length=_MAX_ENTRIES)


class EdgeReply(FrozenModel):
    reason: Reason
    parent: Named
    child: Named
    relation: Relation
    confidence: Percent

    @property
    def confidence_share(self) -> float:
        """Return the confidence, in [0, 1]."""
        return self.confidence / _MAX_PERCENT


class EdgesReply(FrozenModel):
    pairs: tuple[EdgeReply, ...] = Field(max_length=_MAX_ENTRIES)


@lru_cache(maxsize=256)
def roles_reply_model(criteria: tuple[str, ...]) -> type[FrozenModel]:
    """Return the schema of a reply about the roles of these criteria."""
    role_model = create_model(
        "RoleReply", __base__=FrozenModel, reason=(Reason, ...), criterion=_one_of(criteria), role=(Role, ...)
    )
    return create_model("RolesReply", __base__=FrozenModel, roles=_list_of(role_model, len(criteria)))


@lru_cache(maxsize=256)
def edges_reply_model(pairs: tuple[tuple[str, str], ...]) -> type[FrozenModel]:
    """Return the schema of a reply about these pairs, each a parent and a child."""
    parents, children = (tuple(sorted(set(ends))) for ends in zip(*pairs, strict=True))
    fields: dict[str, Any] = {
        "reason": (Reason, ...),
        "parent": _one_of(parents),
        "child": _one_of(children),
        "relation": (Relation, ...),
        "confidence": (Percent, ...),
    }
    return create_model(
        "PairsReply",
        __base__=FrozenModel,
        pairs=_list_of(create_model("PairReply", __base__=FrozenModel, **fields), len(pairs)),
    )


def _one_of(names: Sequence[str]) -> Any:
    return Literal[tuple(names)], ...


def _list_of(entry_model: type[FrozenModel], count: int) -> Any:
    return tuple[entry_model, ...], Field(min_length=count, max_length=count)  # type: ignore[valid-type]
