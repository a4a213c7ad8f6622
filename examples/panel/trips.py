"""The trips of this example, invented: seven towns with what can be booked there, and who travels."""

from typing import Any, NamedTuple

HOME = "Velden"
NIGHTS, TRAVELLERS = 2, 3


class Town(NamedTuple):
    """A town: two hotels, of which the first is dear and by the water; tables; sights; the trains there and back.

    Prices are in euros: a hotel's a head and night, a table's and a train's a head. The first table has nothing for who
    eats no meat, the last sight is under a roof, and the dear hotel has steps. Where Oke is `thrifty`, he would rather
    spend no more than this on what Mara has a budget for: a tension between the two.
    """

    name: str
    query: str
    budget: int
    hotels: tuple[tuple[str, int], tuple[str, int]]
    tables: tuple[tuple[str, int], tuple[str, int], tuple[str, int]]
    sights: tuple[str, str, str]
    trains: tuple[tuple[str, str, str, int], tuple[str, str, str, int]]
    thrifty: int | None = None


TOWNS = (
    Town(
        "Sandhaven",
        "Three of us want two nights by the sea in Sandhaven, by train from Velden.",
        900,
        (("Hotel Miramar", 165), ("Pension Ebbe", 62)),
        (("The Crab Pot", 38), ("Green Table", 19), ("Harbour Kitchen", 24)),
        ("the lighthouse", "the dunes", "the herring museum"),
        (("IC 204", "08:10", "10:40", 34), ("IC 219", "17:20", "19:50", 34)),
    ),
    Town(
        "Oberquell",
        "A long weekend of two nights in Oberquell for three, with hot springs and without a car.",
        840,
        (("Kurhaus am See", 150), ("Gasthof Linde", 55)),
        (("Grillhof", 32), ("Quelle", 18), ("Zum Markt", 21)),
        ("the springs", "the gorge", "the clock museum"),
        (("RE 31", "09:05", "11:30", 28), ("RE 48", "16:40", "19:05", 28)),
    ),
    Town(
        "Vieux-Port",
        "We are three and have two nights for Vieux-Port: what should we do, and where should we stay?",
        960,
        (("Grand Quai", 180), ("Chez Odile", 66)),
        (("La Braise", 41), ("Le Potager", 22), ("Café des Halles", 23)),
        ("the citadel", "the market", "the ropewalk"),
        (("TE 712", "07:45", "11:15", 45), ("TE 731", "18:05", "21:35", 45)),
    ),
    Town(
        "Kalvik",
        "Two nights in Kalvik in early autumn for three friends who come by train.",
        930,
        (("Fjord Palace", 172), ("Kalvik Vandrerhjem", 58)),
        (("Smokehouse", 36), ("Root", 20), ("Brygge 7", 26)),
        ("the ferry round the islands", "the birch trail", "the boat museum"),
        (("R 10", "08:30", "12:00", 41), ("R 25", "15:50", "19:20", 41)),
    ),
    Town(
        "Montalba",
        "Plan two nights in Montalba for us three; we like to walk, and one of us does not walk much.",
        870,
        (("Villa Belvedere", 158), ("Casa Nilda", 54)),
        (("Braceria Alta", 34), ("Orto", 17), ("Da Pia", 22)),
        ("the cathedral square", "the vineyards", "the paper mill"),
        (("IR 88", "09:20", "12:05", 37), ("IR 95", "17:10", "19:55", 37)),
    ),
    Town(
        "Lindmouth",
        "Three people, two nights, Lindmouth, by rail: a plan that we can follow, please.",
        880,
        (("The Esplanade", 161), ("Number Nine", 59)),
        (("Chop House", 35), ("Sprout", 18), ("Tide", 25)),
        ("the pier", "the cliff path", "the aquarium"),
        (("LM 3", "08:55", "11:10", 30), ("LM 14", "18:15", "20:30", 30)),
    ),
    Town(
        "Strelna",
        "What would two nights in Strelna look like for three of us who take the train?",
        890,
        (("Hotel Regatta", 169), ("Dom Olga", 57)),
        (("Uhli", 33), ("Zelená", 16), ("U Mostu", 22)),
        ("the palace garden", "the river walk", "the glass works"),
        (("EC 55", "07:50", "10:55", 39), ("EC 62", "16:30", "19:35", 39)),
        thrifty=712,
    ),
)


def stakeholders(town: Town) -> list[dict[str, Any]]:
    """Who travels: what each needs and wishes. What states a `check` is decided by code, the rest by a model."""
    bill = [
        {"of": "trains", "column": "price", "people": TRAVELLERS},
        {"of": "stays", "column": "price", "times": "nights", "people": TRAVELLERS},
        {"of": "meals", "column": "price", "people": TRAVELLERS},
    ]
    mara = [
        _hard(
            "budget",
            f"at most {town.budget} euros for all three",
            {"sum": bill, "at_most": town.budget},
            2.0,
        ),
        _hard(
            "nights",
            f"a bed for {NIGHTS} nights",
            {"sum": [{"of": "stays", "column": "nights"}], "equals": NIGHTS},
        ),
        _soft("told", "wants to read what the whole trip costs, added up"),
    ]
    oke = [
        _hard(
            "no-meat",
            "eats no meat",
            {"share": "meals", "where": {"kitchen": {"has": "no meat"}}},
            1.5,
        ),
        _soft("slow", "wishes for a slow afternoon"),
    ]
    if town.thrifty is not None:
        wish = f"would rather spend {town.thrifty} euros or less for all three"
        oke.append(_soft("thrifty", wish, check={"sum": bill, "at_most": town.thrifty}))
    lin = [
        _hard(
            "step-free",
            "uses a wheelchair: no steps to the bed",
            {"share": "stays", "where": {"steps": {"equals": 0}}},
        ),
        _hard(
            "home",
            f"has to be back in {HOME}",
            {"values": "trains", "column": "to", "includes": [HOME]},
        ),
        _soft("rain", "wants to know beforehand what to do when it rains"),
    ]
    return [
        {
            "id": "mara",
            "profile": "pays for the others first, and counts afterwards",
            "constraints": mara,
        },
        {"id": "oke", "profile": "cooks for a living, and is tired", "constraints": oke},
        {"id": "lin", "profile": "travels with a wheelchair and a camera", "constraints": lin},
    ]


def _hard(
    name: str, text: str, check: dict[str, Any], restrictiveness: float = 1.0
) -> dict[str, Any]:
    return {
        "id": name,
        "text": text,
        "kind": "hard",
        "check": check,
        "restrictiveness": restrictiveness,
    }


def _soft(name: str, text: str, **check: Any) -> dict[str, Any]:
    return {"id": name, "text": text, "kind": "soft", **check}


RUBRIC = {
    "criteria": [
        {
            "id": "days",
            "weight": 3.0,
            "role": "core",
            "text": "Says for each day, in order, where the three sleep, eat and go.",
        },
        {
            "id": "total",
            "weight": 2.0,
            "role": "additional",
            "text": "Adds up what the trip costs, item by item.",
        },
        {
            "id": "rain",
            "weight": 1.0,
            "role": "additional",
            "text": "Says what takes the place of what when it rains.",
        },
        {
            "id": "for-whom",
            "weight": 1.0,
            "role": "additional",
            "text": "Says of choices for whom they were made.",
        },
        {
            "id": "given-up",
            "weight": 1.0,
            "role": "additional",
            "text": "Says what was given up, and why.",
        },
        {
            "id": "pushing",
            "weight": -2.0,
            "role": "penalty",
            "text": "Urges the reader to book at once.",
        },
    ]
}
"""Without edges: these are for the graph annotator to find."""


def facts(town: Town) -> dict[str, Any]:
    """What is true, and how a plan's claims are read."""
    (there, back), place = town.trains, town.name
    plain, *kind = town.tables
    rows = {
        "hotels": [
            {"name": name, "town": place, "price": price, "steps": steps}
            for (name, price), steps in zip(town.hotels, (4, 0), strict=True)
        ],
        "tables": [
            {"name": plain[0], "town": place, "price": plain[1], "kitchen": "grill"},
            *(
                {"name": name, "town": place, "price": price, "kitchen": "grill, no meat"}
                for name, price in kind
            ),
        ],
        "sights": [
            {"name": name, "town": place, "roof": name == town.sights[-1]} for name in town.sights
        ],
        "trains": [
            {
                "number": number,
                "from": start,
                "to": end,
                "departs": departs,
                "arrives": arrives,
                "price": price,
            }
            for (number, departs, arrives, price), (start, end) in zip(
                (there, back), ((HOME, place), (place, HOME)), strict=True
            )
        ],
    }
    tables: dict[str, Any] = {
        name: {"key": ["number"] if name == "trains" else ["name", "town"], "rows": own}
        for name, own in rows.items()
    }
    tables["tables"]["lists"] = {"kitchen": ","}
    return {"tables": tables, "claims": _CLAIMS}


def _named(table: str, at: list[str], **more: Any) -> dict[str, Any]:
    columns = {"name": "name", "town": "town"}
    forms = [{"table": table, "pattern": "(?P<name>.+), (?P<town>[^,]+)", "columns": columns}]
    return {"at": at, "forms": forms, "beside": {"day": {"field": "day"}}, "order": "day", **more}


_CLAIMS = {
    "meals": _named("tables", ["$[*].lunch", "$[*].dinner"]),
    "sights": _named("sights", ["$[*].sights"], split=";"),
    "stays": _named("hotels", ["$[*].night"], merged="nights"),
    "trains": {
        "at": ["$[*].train"],
        "forms": [
            {
                "table": "trains",
                "pattern": "(?P<number>.+) at (?P<departs>[0-9:]+)",
                "columns": {"number": "number", "departs": "departs"},
            }
        ],
        "beside": {"day": {"field": "day"}},
        "order": "day",
    },
}
