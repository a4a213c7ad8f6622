"""What every noun shares: it is frozen, refuses unknown fields, and has one digest."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite number. A number written as a string, or a boolean, is refused."""

Unit = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
"""A number in [0, 1]."""

Positive = Annotated[float, Field(strict=True, gt=0.0, allow_inf_nan=False)]
"""A finite number above 0."""

Id = Annotated[str, StringConstraints(min_length=1, max_length=512)]
LongId = Annotated[str, StringConstraints(min_length=1)]
"""An id made of others."""

Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]


WORKED_OUT = ("digest", "content_digest")
"""What nouns remember once it was asked for."""


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII, shortest floats. NaN and infinities are refused."""
    return _CANONICAL.encode(value).encode("ascii")


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical JSON of a plain JSON value, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


class Noun(BaseModel):
    """A frozen value. Equal content gives an equal `digest`, on any machine and in any order of keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the whole noun."""
        return digest_of(self.model_dump(mode="json"))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, which does not validate; what was worked out from the old content is forgotten."""
        copied = super().model_copy(update=update, deep=deep)
        for worked_out in WORKED_OUT:
            copied.__dict__.pop(worked_out, None)
        return copied
