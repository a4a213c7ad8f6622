"""The deriver of presentations: variants of a structured response that say the same."""

from typing import get_args

from pydantic import Field

from jurygraph.agents.presentation.families import Family, present
from jurygraph.agents.roles import Deriver, DeriverInput
from jurygraph.schema import Material, Response, Variant
from jurygraph.schema.params import ParamsModel

PRESENTATIONS = "presentations"


class PresentationDeriver(Deriver):
    """Write a structured response in other orders and layouts, by rule (DecompR, Table 7).

    The response's data is rendered as text; each variant is read back, and has the data that its own text gives. Data
    of another form (`document_of`) has no presentations, and a family with fewer versions than wanted is left out.
    """

    class Params(ParamsModel):
        families: tuple[Family, ...] = Field(get_args(Family), min_length=1)
        """The families of variants; all by default."""
        versions: int = Field(5, strict=True, ge=1, le=20)
        """The number of versions of each family."""

    name = PRESENTATIONS
    version = "1"
    gives = PRESENTATIONS
    reads_data = True

    settings: Params

    def derive(self, inputs: DeriverInput) -> Material:
        found = present(inputs.response.data, self.settings.versions, self.settings.families)
        if found is None:
            return Material(name=PRESENTATIONS, note="its data is no structured response (docs/stability.md)")
        variants = []
        for one in found.variants:
            response = Response(id=f"~{one.family}-{one.version}", text=one.text, data=one.data)
            variants.append(Variant(response=response, edit={"family": one.family, "version": one.version}))
        left_out = [f"{family}: {reason}" for family, reason in found.undefined.items()]
        return Material(name=PRESENTATIONS, variants=tuple(variants), note="; ".join(left_out))
