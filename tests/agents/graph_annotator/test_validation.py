"""Validation of an annotator's reply: malformed answers are rejected with a reason, the others are kept."""

from typing import Any

import pytest

from jurygraph.agents.graph_annotator import (
    CriterionPair,
    EdgeReply,
    RoleReply,
    check_edges,
    check_roles,
)
from jurygraph.schema import Criterion
from jurygraph.schema.task import CriterionRole

ROLES: dict[str, CriterionRole] = {
    "a": "core",
    "b": "core",
    "more": "additional",
    "bad": "penalty",
    "if": "applicability",
}
REQUESTED = (CriterionPair("a", "more"), CriterionPair("if", "bad"), CriterionPair("a", "b"))


def answer(
    parent: str, child: str, relation: Any = "none", confidence: int = 50, reason: str = "so"
) -> EdgeReply:
    return EdgeReply(
        reason=reason, parent=parent, child=child, relation=relation, confidence=confidence
    )


GOOD = (answer("a", "more", "weak"), answer("if", "bad", "activation"), answer("a", "b"))
WRONG = {
    "unknown": (answer("a", "nobody", "weak"), "the pair was not asked about in this request"),
    "another kind": (
        answer("a", "more", "activation"),
        "activation does not go from core to additional, but weak or",
    ),
    "not asked": (answer("b", "a", "weak"), "the pair was not asked about in this request"),
}


@pytest.mark.parametrize(("wrong", "why"), WRONG.values(), ids=WRONG)
def test_malformed_answers_are_rejected_with_a_reason_and_the_rest_is_kept(
    wrong: EdgeReply, why: str
) -> None:
    good = [one for one in GOOD if (one.parent, one.child) != (wrong.parent, wrong.child)]
    checked = check_edges([*good, wrong], REQUESTED, ROLES)
    ((rejected_answer, reason),) = checked.rejected
    assert rejected_answer == wrong
    assert reason.startswith(why)
    assert list(checked.answers.values()) == sorted(good, key=lambda one: (one.parent, one.child))
    assert any(why in line for line in checked.problems), "the model is told of it"


def test_a_pair_answered_with_two_kinds_has_no_edge_and_both_are_reported() -> None:
    checked = check_edges([*GOOD, answer("a", "more", "strong")], REQUESTED, ROLES)
    assert CriterionPair("a", "more") not in checked.answers
    assert [(one.relation, why) for one, why in checked.rejected] == [
        ("strong", "the pair is said to be strong and weak"),
        ("weak", "the pair is said to be strong and weak"),
    ]
    assert not checked.reason_by_unanswered_pair, "it was answered, if badly"


# Roles


def criterion(name: str, weight: float = 1.0) -> Criterion:
    return Criterion(id=name, text=name, weight=weight)


def role(name: str, given: Any) -> RoleReply:
    return RoleReply(reason="so", criterion=name, role=given)


def test_a_single_role_that_fits_the_sign_of_the_points_counts() -> None:
    requested = {
        "good": criterion("good"),
        "bad": criterion("bad", -1.0),
        "lost": criterion("lost"),
    }
    checked = check_roles(
        [role("good", "core"), role("bad", "additional"), role("who", "core")], requested
    )
    assert checked.roles == {"good": "core"}
    assert checked.unassigned == {
        "bad": "has negative points and was given the role additional",
        "lost": "was given no role",
    }
    assert len(checked.problems) == 2


def test_a_role_against_the_sign_or_two_roles_are_refused() -> None:
    requested = {
        "good": criterion("good"),
        "both": criterion("both"),
        "when": criterion("when", -1.0),
    }
    said = [
        role("good", "penalty"),
        role("both", "core"),
        role("both", "additional"),
        role("when", "applicability"),
    ]
    checked = check_roles(said, requested)
    assert checked.roles == {"when": "applicability"}
    assert checked.unassigned["good"] == "has positive points and was given the role penalty"
    assert checked.unassigned["both"] == "was given the roles additional and core"
