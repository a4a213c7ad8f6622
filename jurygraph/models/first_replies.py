"""Stop a run early whose model never answers in the form that is asked for."""

from jurygraph.errors import UnusableRepliesError
from jurygraph.messages import shorten
from jurygraph.models.faults import Fault
from jurygraph.models.request import AnsweredCall

LOOKED_AT = 20
_EXAMPLE = 200  # characters of a reply that are shown
_CHANGES = {
    "malformed": "set calls.form (native or instructed), raise calls.max_tokens, or name another model",
    "truncated": "raise calls.max_tokens, or name another model",
    "empty": "raise calls.max_tokens, as a model may think before it writes, or name another model",
    "refused": "name another model",
}
"""What to change in the config, by the kind of fault."""


class FirstReplies:
    """The first replies of a session, by their arrival: whether all are unusable for one reason.

    Stored and cached replies are left out: they say nothing about the settings of today.
    """

    def __init__(self) -> None:
        self._awaited: set[str] = set()
        self._arrived = 0
        self._unusable = 0
        self._kind: str | None = None
        self._example = ""
        self._has_usable = False

    def expect(self, call: str) -> None:
        """Note that the reply of a call has arrived."""
        if self._arrived < LOOKED_AT:
            self._arrived += 1
            self._awaited.add(call)

    def note(self, answered: AnsweredCall, fault: Fault | None) -> None:
        """Note a reply that was read, with its fault if it cannot be used.

        Raises UnusableRepliesError with the last of the first `LOOKED_AT`, if none can be used.
        """
        if answered.call.id not in self._awaited:
            return
        self._awaited.remove(answered.call.id)
        if fault is None or fault.kind not in _CHANGES or self._kind not in (None, fault.kind):
            self._has_usable = True
            return
        self._kind = fault.kind
        self._example = f"{fault}; such as {shorten(answered.reply.text, _EXAMPLE)!r}"
        self._unusable += 1
        if self._unusable == LOOKED_AT:
            raise UnusableRepliesError(f"none of the first {LOOKED_AT} replies can be used: {self.problem}")

    @property
    def problem(self) -> str | None:
        """The fault of all replies so far, with one of them and what to change; None if one could be used."""
        if self._has_usable or self._kind is None:
            return None
        return f"{self._example}; {_CHANGES[self._kind]}"
