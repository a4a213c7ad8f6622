"""Contrasts that a model proposes and confirms in a second call: a single statement of the model is not enough."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, create_model

from jurygraph.agents.data_synthesizer.edits import Edit, Kind, replace_passage
from jurygraph.agents.judging.evaluator import shared_prompt_variables
from jurygraph.agents.roles import DeriverInput
from jurygraph.prompts import load_prompt
from jurygraph.schema import FrozenModel

_Passage = Annotated[str, Field(min_length=1, max_length=1000)]
_Sentence = Annotated[str, Field(max_length=1000)]


class Proposals(NamedTuple):
    """Edits confirmed to make the text worse; a note on the rejected ones; and the call that proposed them."""

    edits: list[Edit]
    note: str
    call: str


class Proposer:
    """Ask the model for contrasts, and then which of two texts is worse."""

    def __init__(self) -> None:
        self._propose, self._compare = load_prompt("contrast"), load_prompt("contrast-check")
        self.edition = f"{self._propose.full_version} {self._compare.full_version}"

    async def edits(self, inputs: DeriverInput, kinds: Sequence[Kind]) -> Proposals:
        """Return the edits that the model proposes and, without knowing which text is edited, confirms. Raises Fault.

        Every passage must occur in the response exactly once: other proposals are shown to the model once for repair,
        then dropped.
        """
        assert inputs.client is not None, "a model is required"
        text, reply_model = inputs.response.text, _proposals(tuple(kinds))
        variables = {**shared_prompt_variables(inputs), "edits": tuple(kinds)}
        request = inputs.client.request(self._propose, reply_model, variables)
        result = await inputs.client.judge(request, reply_model, lambda reply: _flaw(text, reply))
        proposed: Sequence[Any] = result.value.contrasts  # type: ignore[attr-defined]
        edits = [_edit(text, proposal) for proposal in proposed if not _proposal_flaw(text, proposal)]
        worse = await asyncio.gather(*(self._is_worse(inputs, edit) for edit in edits))
        confirmed = [edit for edit, is_worse in zip(edits, worse, strict=True) if is_worse]
        dropped = {
            "changes no passage": len(proposed) - len(edits),
            "is no worse": len(edits) - len(confirmed),
        }
        note = "; ".join(f"{number} proposed that {problem}" for problem, number in dropped.items() if number)
        return Proposals(confirmed, note, result.call.id)

    async def _is_worse(self, inputs: DeriverInput, edit: Edit) -> bool:
        """Return true if the model finds the edited text worse; the order of the texts depends on the edited one."""
        assert inputs.client is not None, "a model is required"
        edited = edit.apply(inputs.response.text)
        is_first = hashlib.sha256(edited.encode()).digest()[0] % 2 == 1
        texts = (edited, inputs.response.text) if is_first else (inputs.response.text, edited)
        responses = [{"name": name, "text": text} for name, text in zip("AB", texts, strict=True)]
        variables = {key: value for key, value in shared_prompt_variables(inputs).items() if key != "response"}
        request = inputs.client.request(self._compare, Comparison, {**variables, "responses": responses})
        result = await inputs.client.judge(request, Comparison)
        return result.value.worse == ("A" if is_first else "B")


def _edit(text: str, proposal: Any) -> Edit:
    start = text.index(proposal.passage)
    return replace_passage(proposal.kind, start, start + len(proposal.passage), proposal.instead, proposal.says)


def _proposal_flaw(text: str, proposal: Any) -> str | None:
    """Return why a proposal is invalid, or None."""
    times = text.count(proposal.passage)
    if times != 1:
        return f"the passage {proposal.passage!r} stands in the response {times} times, and has to stand there once"
    return f"the passage {proposal.passage!r} is put in its own place" if proposal.instead == proposal.passage else None


def _flaw(text: str, reply: Any) -> str | None:
    flaws = [flaw for proposal in reply.contrasts if (flaw := _proposal_flaw(text, proposal))]
    return f"{'; '.join(flaws)}. So copy each `passage` letter by letter from the response" if flaws else None


# No docstrings below: they would be part of the JSON schema that a model is given.


@lru_cache(maxsize=64)
def _proposals(kinds: tuple[Kind, ...]) -> type[FrozenModel]:
    fields: Any = {
        "kind": (Literal[kinds], ...),
        "passage": (_Passage, ...),
        "instead": (_Sentence, ...),
        "says": (_Sentence, ...),
    }
    contrast_model = create_model("Contrast", __base__=FrozenModel, **fields)
    contrasts_field: Any = Annotated[tuple[contrast_model, ...], Field(max_length=12)]
    return create_model("Contrasts", __base__=FrozenModel, contrasts=(contrasts_field, ...))


class Comparison(FrozenModel):
    reason: _Sentence
    worse: Literal["A", "B", "neither"]
