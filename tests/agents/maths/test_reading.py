from fractions import Fraction

import pytest

from jurygraph.agents.maths.reading import Number, claims, folded, read, same_number

NUMBERS = {
    "18": 18,
    "18.0": 18,
    "$18": 18,
    "$18$": 18,
    "$-18$": -18,
    "-$18": -18,
    "1,000": 1000,
    r"1\,000": 1000,
    r"1{,}000": 1000,
    r"\$70,000": 70000,
    "1/2": Fraction(1, 2),
    r"\dfrac{1}{2}": Fraction(1, 2),
    "1 1/2": Fraction(3, 2),
    ".5": Fraction(1, 2),
    "1e5": 100000,
    "18 apples": 18,
    "$18 per day": 18,
    "$18/day": 18,
    "18 dollars": 18,
    "18m": 18,
    "18 cm^2": 18,
    r"18\text{ cm}^2": 18,
    r"18^\circ": 18,
    "2 million": 2000000,
    "$2 million": 2000000,
    "**18**.": 18,
    r"\boxed{\boxed{18}}": 18,
    r"\(18\)": 18,
}

REFUSED = [
    "",
    " ",
    "$",
    "not even",
    "Monday",
    "yes",
    "17 1",
    "18 20",
    "$17$ $18$",
    r"18\quad 20",
    "18_20",
    "18 or more",
]
REFUSED += ["about 18", "18 (eighteen)", "18 isn't it", "18, not seventeen", "1.2.3", "18 half", "1" * 1001, "18; 19"]
REFUSED += [r"\(17\) and \(18\)", r"18 \text{ unless } 19", r"$\boxed{17}\boxed{18}$", "18\n19", '18"', "18?"]


@pytest.mark.parametrize(("text", "value"), NUMBERS.items())
def test_numbers(text: str, value: Fraction) -> None:
    reading = read(text)
    assert reading is not None
    assert reading.number is not None
    assert (reading.number.value, reading.number.percent) == (value, False)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("text", ["5t", "18K", "$18m", "$18M", "2x", "18!", "17-18", "(1,2)", "18, 19", "18 or 20"])
def test_no_plain_number(text: str) -> None:
    reading = read(text)
    assert reading is None or reading.number is None


def test_units_leave_an_expression() -> None:
    reading = read(r"6\pi \text{ cm}^2")
    assert reading is not None
    assert reading.latex == r"6\pi"


@pytest.mark.parametrize(("a", "b"), [("50%", "50"), ("50%", "0.5"), ("0.333333", "1/3"), ("12.50", "12.5")])
def test_same_number(a: str, b: str) -> None:
    assert same_number(_number(a), _number(b))
    assert same_number(_number(b), _number(a))


@pytest.mark.parametrize(("a", "b"), [("0.33", "1/3"), ("0.0000001", "0"), ("18.001", "18"), ("50%", "5")])
def test_another_number(a: str, b: str) -> None:
    assert not same_number(_number(a), _number(b))
    assert not same_number(_number(b), _number(a))


CLAIMS = [
    ("18", "18", ("18",)),
    ("x = 18", "18", (" 18",)),
    ("3+15=18", "18", ("3+15", "18")),
    ("x=17=18", "18", ("17", "18")),
    ("x=17=18", "x=18", ("x=17", "x=18")),
    ("x=17, x=18", "18", ("17,18",)),
    ("x=1,2", "1,2", ("1,2",)),
    (r"\sum_{i=1}^{3} i", "6", (r"\sum_{i=1}^{3} i",)),
    ("17=18, 18", "18", ("17", "18, 18")),
    ("17=18, x=18", "18", None),
    ("=18", "18", None),
    ("18:1", "18", None),
]


@pytest.mark.parametrize(("answer", "reference", "expected"), CLAIMS)
def test_claims(answer: str, reference: str, expected: tuple[str, ...] | None) -> None:
    assert claims(answer, reference) == expected


def test_folded() -> None:
    assert folded(" The  Cat\n") == "the cat"


HOSTILE = ["1" * 10**4, "1 " * 5000, "{" * 10**4, r"\text{" * 1600, "a " * 5000, "1" + " apple" * 1600, "1=" * 5000]
HOSTILE += [r"\text{" * 1400 + "}" * 1400, "1," * 5000, "1," + "111," * 2400, "$" * 10**4, "1." * 5000]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:10])
def test_hostile_texts_claim_nothing(text: str) -> None:
    reading = read(text)
    assert reading is None or reading.number is None or reading.number != read("18").number  # type: ignore[union-attr]
    assert "18" not in (claims(text, "18") or ())


def _number(text: str) -> Number:
    reading = read(text)
    assert reading is not None
    assert reading.number is not None
    return reading.number
