"""The deriver `presentations` gives an evaluator variants that say the same, each with the data that its text gives."""

import asyncio

from jurygraph.agents.presentation.rewrites import PresentationDeriver
from jurygraph.agents.roles import DeriverInput
from jurygraph.schema import Response, TaskView
from tests.agents.presentation.test_families import trip


def test_variants_have_the_data_of_their_text_and_a_note_of_what_is_undefined() -> None:
    view = TaskView(id="t", query="?")
    deriver = PresentationDeriver(
        families=("stakeholder-section-order", "section-header"), versions=3
    )
    found = asyncio.run(
        deriver.derive(DeriverInput(view, Response(id="a", text="", data=trip(2)), {}))
    )
    assert [variant.response.id for variant in found.variants] == [
        f"~section-header-{number}" for number in (1, 2, 3)
    ]
    assert all(variant.response.data == trip(2) for variant in found.variants)
    assert found.note == "stakeholder-section-order: 1 of 3 versions exist"
    nothing = asyncio.run(deriver.derive(DeriverInput(view, Response(id="b", text="prose"), {})))
    assert (nothing.variants, "no structured response" in nothing.note) == ((), True)
