"""How many people travel, in the phrasings that people use."""

from examples.group_trip.travelplanner.travellers import count_travellers
from tests.rows import all_rows

STATED = {
    1: "a single-person trip|a trip for one|a solo trip|by myself|I travel alone and love it|for a lone traveler|"
    "for an individual|on my own|just for myself|unaccompanied|one adult|a single traveller|1 passenger|a trip for me|"
    "it's just me|a one-person itinerary|traveling solo|one individual",
    2: "a trip for a couple|a duo of travelers|a pair of travelers|a couple of friends|my wife and I|me and my brother|"
    "my partner and I|the two of us|both of us|newlyweds|a trip for just two|our party of two|a two-person itinerary|"
    "two participants|for two (2) people|a trip for 2 in Boston|"
    "for two from New York City|2 of us will go|I have $700 per person, for 2",
    3: "two adults and a child|us three|a trio|for 3, leaving from Boston|me and my two kids|my wife, our son and I|"
    "one adult and two children|two colleagues and me|a mother and her two kids|I am traveling with my two kids|"
    "I'd like to travel with my two sons|for 3 visiting 2 cities|for my husband, our baby and me",
    4: "our group of four|my three friends and I|the four of us|We're 4|a 4-person trip|four friends|two couples|"
    "a group consisting of 4 people|for 4 people, including two children|my wife, my two sons and I|a family of 4|"
    "two kids under 10; we are 4 people|for 4, with 2 kids|my wife and I with our two kids|a couple with two children",
    5: "a party of 5|2 adults and 3 kids|We are five|five of us|the whole family of 5|a two-day trip for five",
    6: "a family of six|a six-member team|for 6|a group comprising six members|three couples|a group of 6, with 2 kids",
    7: "two couples and 3 children|seven close friends|for a group of seven (7) people|for 7",
    8: "an eight-person group|two families of four|group of 8 friends|an eight-strong group",
    9: "a party consisting of nine|number of travelers: 9|People: 9",
    10: "ten people",
    12: "a dozen people|12 colleagues",
}
SILENT = (
    "visiting a couple of cities|for two weeks|for one week|for three whole days|for 2 nights|one of us smokes|"
    "a solitary city|3 generations|my parents and I|a trip for me, where we pay|for 3 cities|for 900 dollars|"
    "my budget is $900 and I leave|my friends and I|a single city"
)


@all_rows(
    ("people", "words"), [(n, words) for n, all_ in STATED.items() for words in all_.split("|")]
)
def test_a_stated_number_is_read(people: int, words: str) -> None:
    query = f"Please plan it: {words}, from March 1st to March 5th, 2022, with a budget of $900, to see 2 cities."
    assert count_travellers(query) == people


@all_rows("words", SILENT.split("|"))
def test_numbers_of_other_things_are_not_people(words: str) -> None:
    assert (
        count_travellers(f"Please plan it: {words}, from March 1st to March 5th, 2022, with $900.")
        is None
    )
