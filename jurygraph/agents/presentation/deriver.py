"""The deriver of presentations: variants of a structured response that say the same."""

from typing import Any, Literal, get_args

from pydantic import Field

from jurygraph.agents.presentation.families import Family, present
from jurygraph.agents.presentation.rewrites import PROMPT, REWRITINGS, Rewriting, rewrite
from jurygraph.agents.roles import Deriver, DeriverInput
from jurygraph.prompts import load_prompt
from jurygraph.schema import Material, Response, Variant
from jurygraph.schema.frozen_model import ParamsModel

PRESENTATIONS = "presentations"


class PresentationDeriver(Deriver):
    """Write a structured response in other orders, layouts and words that say the same (DecompR, Table 7).

    The response's data is rendered as text. By rule: each variant is read back, and has the data that its own text
    gives. By a model: each variant's invariants are verified in code (`invariants`). Data of another form
    (`document_of`) has no presentations, and a family with fewer versions than wanted is left out.
    """

    class Params(ParamsModel):
        families: tuple[Literal[Family, Rewriting], ...] = Field(get_args(Family), min_length=1)
        """The families of variants; by default those by rule."""
        versions: int = Field(5, strict=True, ge=1, le=20)
        """The number of versions of each family."""

    name = PRESENTATIONS
    version = "1"
    gives = PRESENTATIONS
    reads_data = True

    bounds_its_time = True

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        families = self.settings.families
        self._by_rule = [family for family in get_args(Family) if family in families]
        self._by_model = [family for family in REWRITINGS if family in families]
        self.uses_model = bool(self._by_model)
        if self.uses_model:
            self.version = f"1 prompt {load_prompt(PROMPT).full_version}"

    async def derive(self, inputs: DeriverInput) -> Material:
        data = inputs.response.data
        versions = self.settings.versions
        found = present(data, versions, self._by_rule)
        if found is None:
            return Material(name=PRESENTATIONS, note="its data is no structured response (docs/stability.md)")
        if self._by_model:
            assert inputs.client is not None, "a model is required"
            written = await rewrite(data, inputs.client, versions, self._by_model)
            assert written is not None, "the data is structured"
            found = found.with_variants(written)
        variants = []
        for one in found.variants:
            response = Response(id=f"~{one.family}-{one.version}", text=one.text, data=one.data)
            variants.append(Variant(response=response, edit={"family": one.family, "version": one.version}))
        left_out = [f"{family}: {reason}" for family, reason in found.undefined.items()]
        return Material(name=PRESENTATIONS, variants=tuple(variants), note="; ".join(left_out))
