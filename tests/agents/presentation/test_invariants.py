"""What a model writes is verified in code: planted variants that break one invariant each, and true paraphrases."""

from typing import get_args

from jurygraph.agents.presentation.rewrites import (
    PassageReply,
    RewriteInvariant,
    broken_invariant,
    build_numbered_statements,
)
from jurygraph.agents.presentation.variants import data_to_document

PLAN = {
    "itinerary": [
        {"time": "09:00", "what": "ferry", "price": "¥35"},
        {"time": "12:30", "what": "noodles at Lotus House", "price": "¥48"},
    ],
    "stakeholders": {
        "ann": ["the ferry of Harbour Line must be step-free"],
        "bob": ["bob does not hike on day 2"],
    },
    "summary": {
        "ann": {"mobility": "met"},
        "bob": {"quiet": "not met", "rather no stairs": "in part"},
    },
    "shared": [{"item": "park", "serves": ["ann", "bob"]}],
    "tradeoffs": ["one museum less, because ann rests at least 30 minutes"],
}
DOCUMENT = data_to_document(PLAN)
assert DOCUMENT is not None
STATEMENTS = build_numbered_statements(DOCUMENT)
TRUE = {
    "s1": "The day begins at 09:00 with the ferry, for ¥35.",
    "s2": "At 12:30 there are noodles at Lotus House, which cost ¥48.",
    "s3": "Ann has to have no steps on her way: the ferry of Harbour Line has none.",
    "s4": "On day 2 there isn't a hike for bob.",
    "s5": "Ann's need of mobility is satisfied.",
    "s6": "For bob, quiet is violated.",
    "s7": "And rather no stairs? Partly so, for bob.",
    "s8": "The park is there for bob and ann alike.",
    "s9": "Because ann rests for 30 minutes at least, one museum is left out.",
}


def variant(**changed: str) -> list[PassageReply]:
    said = {**TRUE, "s3": "For ann, the ferry of Harbour Line has to be step-free.", **changed}
    said["s9"] = changed.get(
        "s9", "Since ann takes a rest of at least 30 minutes, it is one museum less."
    )
    return [
        PassageReply(statement=name, text=text) for name, text in reversed(said.items()) if text
    ]


def test_a_true_paraphrase_in_another_order_passes() -> None:
    assert list(STATEMENTS) == list(TRUE)
    assert broken_invariant(STATEMENTS, variant()) is None


PLANTED = {
    "statements": {"s8": ""},
    "times": {"s1": "The day begins at 10:00 with the ferry, for ¥35."},
    "prices": {"s2": "At 12:30 there are noodles at Lotus House, which cost ¥84."},
    "numbers": {"s4": "On day 3 there isn't a hike for bob."},
    "stakeholders": {"s8": "The park is there for ann alone."},
    "names": {"s2": "At 12:30 there are noodles at Jade House, which cost ¥48."},
    "status": {"s6": "For bob, quiet is met."},
    "strength": {"s3": "For ann, the ferry of Harbour Line may be step-free."},
}


def test_a_planted_break_of_each_invariant_is_found() -> None:
    assert tuple(PLANTED) == get_args(RewriteInvariant)
    found = {
        name: broken_invariant(STATEMENTS, variant(**changed)) for name, changed in PLANTED.items()
    }
    assert found == {name: name for name in PLANTED}


OTHERS = [
    (
        "times",
        {
            "s1": "At 12:30 comes the ferry, for ¥35.",
            "s2": "At 09:00 noodles at Lotus House, for ¥48.",
        },
    ),
    ("prices", {"s1": "At 09:00 the ferry, for ¥35, or $5."}),
    (
        "times",
        {"s9": "Since ann takes a rest of at least 30 minutes at noon, it is one museum less."},
    ),
    ("numbers", {"s8": "The park is there for bob and ann, with two benches."}),
    ("numbers", {"s4": "On the third day there isn't a hike for bob, nor on day 2."}),
    ("names", {"s1": "At 09:00 the bus, for ¥35."}),
    ("names", {"s8": "The park of Harbour Line is there for bob and ann."}),
    ("names", {"s8": "The park is there for bob and ann, and so is Mount Qing."}),
    ("stakeholders", {"s5": "Ann's and bob's need of mobility is satisfied."}),
    ("status", {"s5": "Ann's need of mobility is not satisfied."}),
    ("status", {"s7": "And rather no stairs? That holds for bob."}),
    ("strength", {"s5": "Ann's need of mobility is fully satisfied."}),
    ("strength", {"s4": "On day 2 there is a hike for bob."}),
    ("strength", {"s9": "Since ann takes a rest of up to 30 minutes, it is one museum less."}),
    (
        "strength",
        {"s9": "Since ann might take a rest of at least 30 minutes, it is one museum less."},
    ),
]


def test_so_are_others() -> None:
    for invariant, changed in OTHERS:
        assert broken_invariant(STATEMENTS, variant(**changed)) == invariant, changed


def test_a_statement_that_is_made_twice_or_unknown_is_a_break() -> None:
    assert (
        broken_invariant(STATEMENTS, [*variant(), PassageReply(statement="s1", text=TRUE["s1"])])
        == "statements"
    )
    joined = [
        PassageReply(statement="s1", text=f"{TRUE['s1']} {TRUE['s2']}"),
        *variant(s1="", s2=""),
    ]
    assert broken_invariant(STATEMENTS, joined) == "statements"
    unknown = PassageReply(statement="s99", text=TRUE["s1"])
    assert broken_invariant(STATEMENTS, [*variant(s1=""), unknown]) == "statements"
