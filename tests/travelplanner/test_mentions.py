"""Wishes and denials, in the phrasings that people use; each query has only the wishes that are listed."""

from examples.group_trip.travelplanner.queries import TripRequest, read_wishes
from tests.rows import all_rows

NOTHING = read_wishes("")
SMOKING, PARTIES, CHILDREN, PETS, VISITORS = (
    "No smoking", "No parties", "No children under 10", "No pets", "No visitors",
)  # fmt: skip
RULES = {
    SMOKING: "We need rooms where smoking is allowed.|We're smokers.|Lodging that does not prohibit smoking is a must.|"
    "The stay shouldn't have a no-smoking rule.|accommodations that aren't against smoking|We want to smoke.",
    PARTIES: "We want rooms in which parties are OK.|We'd love to host a party.|Our stay shouldn't prohibit parties.|"
    "Parties have to be possible.|"
    "We require lodgings that have no restrictions against parties.|The stay should be okay with parties.",
    CHILDREN: "We'll bring our kids, all under ten.|We travel with a 6-year-old.|It must be child-friendly.|"
    "The hotel should welcome young children.|There are children below the age of ten with us.",
    PETS: "A host who doesn't mind pets is needed.|There must be no ban on pets.|We bring our dog.|"
    "A place where pets aren't prohibited.|"
    "Our stay must not have a no-pet policy.|Since we have pets, we can't stay where pets are banned.",
    VISITORS: "Our friends should be able to visit us.|a stay with no restrictions on visitors|"
    "We want to have guests over.|We need to receive visitors.|"
    "Our lodging must not forbid visitors.|Visitors should be welcome where we stay.",
}
BARRED = {
    "Flight": "We'd rather not fly.|We are afraid of flying.|Flights are off the table.|No airplanes.|We can't fly.|"
    "We will drive, not fly.|a flight-free trip.|Flights should be avoided.|We'd drive instead of flying.|"
    "Air travel must be excluded.|We'd steer clear of planes.|We only use ground transportation.|"
    "We're open to any transportation except flights.|No need for a flight; we will drive.|Flights aren't an option.|"
    "Flights are off limits.|Flights are ruled out.",
    "Self-driving": "None of us can drive.|We won't rent a car.|Driving ourselves is not an option.|"
    "Self-driving is out.|Travel by car is not possible for us.|We'd like to fly rather than drive.|"
    "We'd like to forgo self-driving.|Nobody wants to drive.|We cannot self-drive, so please consider trains.|"
    "We rely on public transport.",
}
ROOMS = {
    "Entire home/apt": "We would like the entire place to ourselves.|We want a whole apartment.|entire rooms, please|"
    "entire-room lodging|The rooms must be entire.|Room type should be entire.",
    "Private room": "a private room each.|The rooms should be private, not shared.|Make sure our room is private.",
    "Shared room": "We would like a shared room.|We prefer to stay in shared rooms.",
}
NOT_SHARED = (
    "We don't want to share a room with strangers.|Rooms mustn't be shared.|No shared rooms, please.|unshared rooms|"
    "We'd rather not share rooms.|Anything but a shared room.|Shared rooms are not an option.|"
    "No room sharing.|Accommodation must not be shared.|We'd prefer not having to share rooms.|"
    "It is best if rooms are not shared."
)
SILENT = (
    "We don't mind flying.|Flying is fine.|Shared rooms are fine for us.|We have no issue flying.|Any room is fine.|"
    "We have no specific cuisine in mind.|We have no preference for private rooms.|We are a party of two.|"
    "Two friends visiting 3 cities|We prefer driving over flying.|We have no house rules in mind.|"
    "A hot dog would be nice."
)
SEVERAL = [
    ("Pets must be allowed and rooms must not be shared.", {"house_rules": (PETS,), "not_shared": True}),
    ("Rooms must not be shared, and visitors should be allowed.", {"house_rules": (VISITORS,), "not_shared": True}),
    ("We need pet-friendly non-shared rooms.", {"house_rules": (PETS,), "not_shared": True}),
    ("We won't fly, and want a stay that allows visitors.", {"house_rules": (VISITORS,), "barred": ("Flight",)}),
    ("Although we will not drive, we have parties.", {"house_rules": (PARTIES,), "barred": ("Self-driving",)}),
    ("Please avoid flights and find entire homes.", {"room": "Entire home/apt", "barred": ("Flight",)}),
    ("Neither flights nor self-driving, please.", {"barred": ("Flight", "Self-driving")}),
    ("We want neither shared rooms nor flights.", {"not_shared": True, "barred": ("Flight",)}),
    ("We eat Indian food, not Mexican.", {"cuisines": ("Indian",), "unwanted": ("Mexican",)}),
    ("We eat anything but French cuisine.", {"unwanted": ("French",)}),
    ("We'd not take flights and wish to dine on chinese food.", {"cuisines": ("Chinese",), "barred": ("Flight",)}),
    ("Bear in mind that pets must be allowed.", {"house_rules": (PETS,)}),
    ("No flights, with entire rooms that allow pets.",
     {"house_rules": (PETS,), "room": "Entire home/apt", "barred": ("Flight",)}),
    ("We'd avoid flights, shared rooms, and self-driving.", {"not_shared": True, "barred": ("Flight", "Self-driving")}),
    ("We want no flights, shared rooms, or self-driving.", {"not_shared": True, "barred": ("Flight", "Self-driving")}),
    ("We want no flights, and American food.", {"cuisines": ("American",), "barred": ("Flight",)}),
    ("We insist on no shared rooms and on no self-driving.", {"not_shared": True, "barred": ("Self-driving",)}),
    ("Our own private rooms rather than shared rooms.", {"room": "Private room"}),
    ("We can't miss Italian dishes.", {"cuisines": ("Italian",)}),
    ("There is no restriction on flights.", {}),
    ("We don't smoke.", {"unread": ("smoking",)}),
    ("Avoid places that don't allow smoking.", {"house_rules": (SMOKING,)}),
    ("Hotels with a no-party policy are not acceptable.", {"unread": ("parties",)}),
    ("Plan 3 days, and don't include flights.", {"barred": ("Flight",)}),
    ("We have a small purse and can't stay in shared rooms.", {"not_shared": True}),
    ("We want private rooms and won't fly.", {"room": "Private room", "barred": ("Flight",)}),
    ("We want entire rooms without any restrictions on pets.", {"house_rules": (PETS,), "room": "Entire home/apt"}),
    ("Rooms must not prohibit parties nor be shared.", {"house_rules": (PARTIES,), "not_shared": True}),
    ("We won't fly and that friend smokes.", {"house_rules": (SMOKING,), "barred": ("Flight",)}),
    ("We like Italian.", {"cuisines": ("Italian",)}),
    ("We fly American Airlines and are Mexican.", {}),
    ("Chinese, French, and Mediterranean.", {"cuisines": ("Chinese", "French", "Mediterranean")}),
    ("Room: entire; no flights.", {"room": "Entire home/apt", "barred": ("Flight",)}),
    ("We'd take private rooms or entire homes.", {"unread": ("Entire home/apt", "Private room")}),
    ("We'd like Thai and Indian food.", {"cuisines": ("Indian",), "unread": ("Thai",)}),
]  # fmt: skip
WISHES = [
    *(
        (words, {"house_rules": (rule,)})
        for rule, all_ in RULES.items()
        for words in all_.split("|")
    ),
    *((words, {"barred": (mode,)}) for mode, all_ in BARRED.items() for words in all_.split("|")),
    *((words, {"room": room}) for room, all_ in ROOMS.items() for words in all_.split("|")),
    *((words, {"not_shared": True}) for words in NOT_SHARED.split("|")),
    *((words, {}) for words in SILENT.split("|")),
    *SEVERAL,
]


@all_rows(("words", "wishes"), WISHES)
def test_a_query_has_the_wishes_that_a_person_reads_in_it(
    words: str, wishes: dict[str, object]
) -> None:
    found: TripRequest = read_wishes(f"Plan a trip for 2 people with a budget of $900. {words}")
    assert found == NOTHING._replace(**wishes)  # type: ignore[arg-type]
