"""A plan holds decisions alone, and its digest changes with each of them."""

from itertools import permutations

import pytest

from jurygraph import schema
from jurygraph.schema import ComponentInput, ComponentSpec, FrozenModel, Plan, PrecisionShaping, TaskView
from tests.schema.samples import plan


def test_nothing_of_a_response_can_lie_in_a_plan() -> None:
    fields = {name for noun in (Plan, *_nouns_in(Plan)) for name in noun.model_fields}
    assert not {"responses", "response", "verdicts", "score"} & fields


def _nouns_in(noun: type[FrozenModel]) -> list[type[FrozenModel]]:
    return [vars(schema)[name] for name in noun.model_json_schema()["$defs"] if name != "JsonValue"]


def test_a_changed_view_changes_the_plan() -> None:
    made = plan()
    view = TaskView(id="t", query="1+2?", reference="3")
    survey = made.survey.model_copy(update={"views": {view.digest: view}})
    assert made.model_copy(update={"survey": survey}).digest != made.digest


@pytest.mark.parametrize("names", list(permutations(["a", "b", "c"])))
def test_the_inputs_of_a_component_stand_in_the_order_of_their_names(names: tuple[str, ...]) -> None:
    """Frozen params point at inputs by their places (GEAR's edges do): a store may reorder keys, not meanings."""
    spec = ComponentSpec(
        name="rubric",
        weight=1.0,
        combiner="gear",
        version="1",
        inputs={name: ComponentInput(questions=(name,), weights=(1.0,)) for name in names},
    )
    assert list(spec.inputs) == ["a", "b", "c"]
    assert list(ComponentSpec.model_validate_json(spec.model_dump_json()).inputs) == ["a", "b", "c"]


def test_the_order_of_auxiliary_components_is_none() -> None:
    one, other = (PrecisionShaping(auxiliary=names, fraction=0.5) for names in (("b", "a"), ("a", "b")))
    assert one.digest == other.digest
