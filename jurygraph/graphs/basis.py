"""Digest everything that a verdict of a survey depends on: where two digests are equal, a verdict can be reused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jurygraph.graphs.routing import required_material
from jurygraph.schema import FrozenModel, Survey, digest_of

SCHEDULING_FIELDS = frozenset({"when", "samples", "pairs"})
"""Scheduling fields of a question: if, how often and in which pairs it is judged. A verdict does not depend on them."""


@dataclass(frozen=True, slots=True)
class InputDigests:
    """Digests of the inputs of a single verdict, by question id, and of a single piece of material, by its name."""

    questions: Mapping[str, str]
    material: Mapping[str, str]


def input_digests(survey: Survey) -> InputDigests:
    """Return the basis of every question and of all material.

    Two plans can share a verdict on a question, or a piece of material, that has the same basis in both, for responses
    with the same ids and content digests.
    """
    derivations = {derivation.gives: derivation for derivation in survey.derivations}
    material: dict[str, str] = {}
    for wave in survey.waves:
        for name in wave.materials:
            material[name] = _digest_inputs(derivations[name], derivations[name].needs, material)
    questions = {q.id: _digest_inputs(q, required_material(q), material) for q in survey.questions}
    return InputDigests(questions, material)


def _digest_inputs(model: FrozenModel, names: Iterable[str], material: Mapping[str, str]) -> str:
    """Return the digest of a question or derivation together with the basis of the material that it needs."""
    return digest_of(
        [model.model_dump(mode="json", exclude=set(SCHEDULING_FIELDS)), {name: material[name] for name in names}]
    )
