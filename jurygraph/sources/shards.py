"""A shard: the share of a file's tasks, and of a command's limits, that one of several commands takes.

Which tasks these are follows from their ids alone, so that machines that know nothing of each other agree on it, and a
task stays in its shard whatever is added to the file. The shares of a limit never sum up to more than the limit.
"""

import math
import re
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel


class Shard(FrozenModel):
    """The shard numbered `index`, from 1, of as many as `of`."""

    index: int = Field(ge=1)
    of: int = Field(ge=1)

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard written as I/N. Raises `InputError` for another text."""
        numbers = re.fullmatch(r"0*([1-9][0-9]{0,8})/0*([1-9][0-9]{0,8})", text)
        if numbers is None or int(numbers[1]) > int(numbers[2]):
            raise InputError(f"--shard: {text!r} is not a shard; write I/N, such as 1/4 to 4/4")
        return cls(index=int(numbers[1]), of=int(numbers[2]))

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    def includes_task(self, task_id: str) -> bool:
        digest = sha256(task_id.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest, "big") % self.of == self.index - 1

    def call_limit_share(self, limit: int | None) -> int | None:
        """Return this shard's part of a number of calls; those of all shards sum up to the number."""
        if limit is None:
            return None
        return self.index * limit // self.of - (self.index - 1) * limit // self.of

    def budget_share(self, limit: float | None) -> float | None:
        """Return this shard's part of an amount, rounded down: a float that is `of` times within the amount."""
        if limit is None or not 0 <= limit < math.inf:  # a wrong limit is refused where it is used
            return limit
        amount = Fraction(Decimal(str(limit)))
        share = float(amount / self.of)
        while Fraction(Decimal(str(share))) * self.of > amount:
            share = math.nextafter(share, 0.0)
        return share
