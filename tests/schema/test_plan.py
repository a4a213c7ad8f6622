"""A plan contains no response, and each of its decisions changes its digest."""

from itertools import permutations

import pytest

from jurygraph import schema
from jurygraph.schema import (
    ComponentInput,
    ComponentSpec,
    FrozenModel,
    Plan,
    PrecisionShaping,
    TaskView,
)
from tests.schema.samples import plan


def test_no_model_of_a_plan_holds_a_response() -> None:
    fields = {name for model in (Plan, *_models_in(Plan)) for name in model.model_fields}
    assert not {"responses", "response", "verdicts", "score"} & fields


def _models_in(model: type[FrozenModel]) -> list[type[FrozenModel]]:
    return [
        vars(schema)[name] for name in model.model_json_schema()["$defs"] if name != "JsonValue"
    ]


def test_a_changed_view_changes_the_plan() -> None:
    made = plan()
    view = TaskView(id="t", query="1+2?", reference="3")
    survey = made.survey.model_copy(update={"views": {view.digest: view}})
    assert made.model_copy(update={"survey": survey}).digest != made.digest


@pytest.mark.parametrize("names", list(permutations(["a", "b", "c"])))
def test_the_inputs_of_a_component_are_sorted_by_name(names: tuple[str, ...]) -> None:
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


def test_auxiliary_components_are_sorted() -> None:
    one, other = (
        PrecisionShaping(auxiliary=names, fraction=0.5) for names in (("b", "a"), ("a", "b"))
    )
    assert one.digest == other.digest
