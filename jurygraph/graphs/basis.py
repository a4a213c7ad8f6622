"""What each verdict of a survey rests on, as digests: where two are equal, a verdict can serve both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jurygraph.graphs.routing import rests_on
from jurygraph.schema import Noun, Survey, digest_of

WHETHER = frozenset({"when", "samples", "pairs"})
"""What of a question says whether, how often and with whom it is asked, and nothing of what a verdict on it says."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Digests of what a single verdict rests on, by question id, and a single piece of material, by its name."""

    questions: Mapping[str, str]
    material: Mapping[str, str]


def basis(survey: Survey) -> Basis:
    """The basis of every question and of all material.

    Two plans may share a verdict on a question, or a piece of material, that has one basis in both: about the same
    responses, by ids and content digests.
    """
    derivations = {derivation.gives: derivation for derivation in survey.derivations}
    material: dict[str, str] = {}
    for wave in survey.waves:
        for name in wave.materials:
            material[name] = _resting(derivations[name], derivations[name].needs, material)
    questions = {q.id: _resting(q, rests_on(q), material) for q in survey.questions}
    return Basis(questions, material)


def _resting(noun: Noun, names: Iterable[str], material: Mapping[str, str]) -> str:
    """Digest of a question or derivation, and of the basis of the material that it rests on."""
    return digest_of([noun.model_dump(mode="json", exclude=set(WHETHER)), {name: material[name] for name in names}])
