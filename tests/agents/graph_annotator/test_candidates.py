"""Candidate pairs: by role alone."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.graph_annotator import (
    EDGE_KINDS_BY_ROLES,
    CriterionPair,
    candidate_pairs,
    possible_edge_kinds,
)
from jurygraph.schema.task import CriterionRole

ROLES: tuple[CriterionRole, ...] = ("core", "additional", "penalty", "applicability")
roled = st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from(ROLES), max_size=7)


@given(roled)
def test_candidates_are_every_ordered_pair_that_roles_allow_and_no_other(
    roles: dict[str, CriterionRole],
) -> None:
    found = candidate_pairs(roles)
    assert set(found) == {
        pair
        for pair in permutations(roles, 2)
        if (roles[pair[0]], roles[pair[1]]) in EDGE_KINDS_BY_ROLES
    }
    assert len(set(found)) == len(found)


@given(roled, st.randoms(use_true_random=False))
def test_candidates_are_in_id_order_with_both_directions_adjacent(
    roles: dict[str, CriterionRole], random: object
) -> None:
    shuffled = list(roles.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = candidate_pairs(dict(shuffled))
    assert found == candidate_pairs(roles)
    for one, other in permutations([name for name in roles if roles[name] == "core"], 2):
        assert (
            abs(found.index(CriterionPair(one, other)) - found.index(CriterionPair(other, one)))
            == 1
        )


def test_no_edge_without_a_role_or_to_itself() -> None:
    assert possible_edge_kinds({"a": "core"}, CriterionPair("a", "b")) == ()
    assert possible_edge_kinds({"a": "core"}, CriterionPair("a", "a")) == ()
