"""Who travels: for ten of TravelPlanner's groups, three to five people with what they need and what they wish.

The queries say what the group asks for; here it is divided among its travellers, and each gets some needs of their own.
"""

from typing import Any

from examples.group_trip.travelplanner.trip_checks import cost_terms

Stated = dict[str, Any]


def budget(people: int, each: float) -> Stated:
    """A hard limit of what the trip costs a head."""
    return _hard(
        "budget",
        f"at most ${each:,.0f} a head",
        {"sum": cost_terms(people), "per": people, "at_most": each},
    )


def eats(*cuisines: str) -> Stated:
    """Cuisines without which somebody does not go."""
    check = {"values": "meals", "column": "Cuisines", "includes": list(cuisines), "partial": True}
    return _hard("cuisines", f"needs {' and '.join(cuisines)} food", check)


def likes(*cuisines: str) -> Stated:
    """Cuisines that would be nice."""
    check = {"values": "meals", "column": "Cuisines", "includes": list(cuisines), "partial": True}
    return _soft("taste", f"likes {' and '.join(cuisines)} food", check)


def allowed(what: str) -> Stated:
    """Something that every stay must allow, such as pets."""
    return _hard(
        f"{what.split()[0]}-allowed",
        f"{what} allowed",
        {"share": "stays", "where": _rule("has_not", what)},
    )


def rather_without(what: str) -> Stated:
    """Something that would better be forbidden where one sleeps."""
    return _soft(
        f"no-{what.split()[0]}",
        f"rather no {what}",
        {"share": "stays", "where": _rule("has", what)},
    )


def room(kind: str) -> Stated:
    """The type of every room."""
    return _hard("room", kind, {"share": "stays", "where": {"room type": {"equals": kind}}})


def rated(stars: float) -> Stated:
    """A wish for stays of at least so many stars."""
    check = {
        "share": "stays",
        "where": {"review rate number": {"at_least": stars}},
        "partial": True,
    }
    return _soft("stars", f"stays of {stars:g} stars or more", check)


def never_by(mode: str) -> Stated:
    """A way to travel that is out of the question."""
    check = {"count": "legs", "where": {"mode": {"equals": mode}}, "at_most": 0}
    return _hard(f"no-{mode.lower()}", f"no {mode.lower()}", check)


def flies_between(first: str, last: str) -> Stated:
    """No flight leaves earlier, and none arrives later."""
    where = {"DepTime": {"at_least": first}, "ArrTime": {"at_most": last}}
    check = {"share": "legs", "among": {"mode": {"equals": "Flight"}}, "where": where}
    return _hard("hours", f"flies between {first} and {last}", check)


def pace(least: int, most: int) -> Stated:
    """A wish for how many sights are seen."""
    return _soft(
        "pace",
        f"{least} to {most} sights",
        {"count": "attractions", "between": [least, most], "partial": True},
    )


def never_twice() -> Stated:
    """A wish to eat nowhere twice."""
    return _soft(
        "variety",
        "eats nowhere twice",
        {"values": "meals", "column": "Name", "distinct": True, "partial": True},
    )


def _rule(test: str, what: str) -> Stated:
    return {"house_rules": {test: f"No {what}"}}


def _hard(name: str, text: str, check: Stated) -> Stated:
    return {"id": name, "kind": "hard", "text": text, "check": check}


def _soft(name: str, text: str, check: Stated) -> Stated:
    return {"id": name, "kind": "soft", "text": text, "check": check}


ENTIRE, PRIVATE = "Entire home/apt", "Private room"
CHILDREN = "children under 10"

TRAVELLERS: dict[str, dict[str, tuple[str, list[Stated]]]] = {
    "travelplanner-train-21": {
        "ana": ("keeps the purse and plans every hour", [budget(4, 3075), pace(8, 12)]),
        "ben": ("smokes, and sleeps badly where he may not", [allowed("smoking"), likes("Indian")]),
        "cleo": (
            "has asthma, and lives on Chinese food",
            [eats("Chinese"), rather_without("smoking"), rated(3)],
        ),
        "dov": ("gets up late", [budget(4, 3200), flies_between("07:00", "21:00"), never_twice()]),
    },
    "travelplanner-train-22": {
        "edda": ("pays for three others", [budget(7, 1985), never_twice()]),
        "finn": (
            "cooks, and travels for French kitchens",
            [eats("French"), likes("Italian", "Chinese"), rated(4)],
        ),
        "gita": ("asks her cousins in", [allowed("visitors"), eats("Indian"), pace(6, 10)]),
        "hugo": ("needs a door of his own", [room(ENTIRE), flies_between("09:00", "20:00")]),
    },
    "travelplanner-train-24": {
        "ines": ("counts every dollar", [budget(4, 3450), likes("Mexican")]),
        "jack": ("snores, and so does his dog", [room(PRIVATE), allowed("pets"), rated(3)]),
        "kim": ("eats Italian when far from home", [eats("Italian"), pace(6, 9)]),
    },
    "travelplanner-train-25": {
        "sam": ("pays for his daughter's holiday", [budget(4, 1450), rated(2)]),
        "tess": ("brings a child of six", [allowed(CHILDREN), pace(10, 15)]),
        "udo": ("grew up on Chinese food", [eats("Chinese"), likes("Italian"), never_twice()]),
        "vera": (
            "will not drive a metre without a map",
            [never_by("Flight"), likes("French", "Mediterranean")],
        ),
    },
    "travelplanner-train-28": {
        "lara": ("has the group's budget in her head", [budget(4, 4850), never_twice()]),
        "milo": (
            "wants a room for himself and his cat",
            [room(PRIVATE), allowed("pets"), likes("French", "Indian")],
        ),
        "nora": ("eats Mediterranean food alone", [eats("Mediterranean"), never_by("Flight")]),
        "omar": ("has walked enough in his life", [budget(4, 5000), pace(4, 8), rated(3)]),
    },
    "travelplanner-train-31": {
        "pia": ("never goes without her dog", [allowed("pets"), never_twice()]),
        "quin": (
            "does not drive, and likes to sleep alone",
            [room(ENTIRE), never_by("Self-driving"), rated(3)],
        ),
        "rosa": ("saves for a house", [budget(3, 1030), eats("Mexican"), pace(2, 4)]),
    },
    "travelplanner-train-36": {
        "xena": ("expects her sister to visit", [allowed("visitors"), rated(4)]),
        "yann": ("from Lyon", [eats("French"), likes("Mediterranean", "Italian"), pace(4, 7)]),
        "zoe": ("holds the purse for seven", [budget(7, 1214), room(ENTIRE)]),
        "abe": ("eats burgers", [eats("American"), never_twice()]),
    },
    "travelplanner-train-37": {
        "bea": (
            "is afraid of flying, and has friends on the way",
            [never_by("Flight"), allowed("visitors"), pace(4, 8)],
        ),
        "carl": ("loves a French table", [eats("French"), likes("Italian", "Chinese"), rated(3)]),
        "dina": ("works on the way", [room(ENTIRE), budget(3, 1200)]),
    },
    "travelplanner-train-39": {
        "elsa": ("smokes a pipe", [allowed("smoking"), pace(8, 14)]),
        "fred": ("hates to fly", [never_by("Flight"), budget(5, 1500)]),
        "gina": (
            "eats French, and nothing fried",
            [eats("French"), rather_without("smoking"), rated(2)],
        ),
        "hank": ("owes money to everybody", [budget(5, 1420), likes("American", "Mexican")]),
        "iris": ("eats Italian on Sundays and all other days", [eats("Italian"), never_twice()]),
    },
    "travelplanner-train-40": {
        "jana": ("brings two cats", [allowed("pets"), likes("Italian")]),
        "kurt": ("wants to be alone", [room(ENTIRE), rated(2)]),
        "lena": ("spent a year in Oaxaca", [eats("Mexican"), pace(7, 12)]),
        "mats": ("runs the numbers", [budget(5, 3020), never_twice()]),
        "nils": ("lives on dal", [eats("Indian"), rather_without("pets"), budget(5, 3100)]),
    },
}
