"""What every noun shares: it is frozen, refuses unknown fields, and has one digest."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite number. A number written as a string, or a boolean, is refused."""

Unit = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
"""A number in [0, 1]."""

Id = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII, shortest floats. NaN and infinities are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical JSON of a plain JSON value, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


class Noun(BaseModel):
    """A frozen value. Equal content gives an equal `digest`, on any machine and in any order of keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the whole noun."""
        return digest_of(self.model_dump(mode="json"))
