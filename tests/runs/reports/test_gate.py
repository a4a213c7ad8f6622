"""Thresholds on the statistics of a comparison."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.runs.reports.gate import CiThreshold, failed_thresholds, parse_ci_thresholds
from tests.rows import all_rows

EXAMPLE = '"mean_delta>-0.01"'

LESS = {"n": 1, "flips": 1, "mean_delta": -0.125, "pass_p": None}


def parse_thresholds(text: str) -> list[CiThreshold]:
    return parse_ci_thresholds([text], list(LESS), EXAMPLE, ["no_worse_than"])


@all_rows(
    ("text", "passes"),
    [
        ("mean_delta>-0.2", True),
        ("mean_delta>-0.125", False),
        ("mean_delta>=-0.125", True),
        ("mean_delta<-0.125", False),
        ("mean_delta<=-.125", True),
        ("mean_delta==-1.25e-1", True),
        ("mean_delta==0", False),
        ("n==1", True),
        (" n  >=  +1. ", True),
    ],
)
def test_a_condition_is_a_name_an_operator_and_a_number(text: str, passes: bool):
    assert (failed_thresholds(parse_thresholds(text), LESS) == []) is passes


@pytest.mark.parametrize(
    "text", ["n==1, flips<=3,mean_delta>0", "n==1 and flips<=3 and mean_delta>0"]
)
def test_failed_conditions_are_returned_with_their_values(text: str):
    assert failed_thresholds(parse_thresholds(text), LESS) == [
        (CiThreshold("mean_delta", ">", 0.0), -0.125)
    ]


@pytest.mark.parametrize("sign", [">", ">=", "<", "<=", "=="])
def test_a_missing_figure_never_passes(sign: str):
    assert failed_thresholds(parse_thresholds(f"pass_p{sign}0"), LESS) == [
        (CiThreshold("pass_p", sign, 0.0), None)
    ]


@given(st.sampled_from(sorted(LESS)), st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_condition_can_be_parsed(name: str, bound: float):
    condition = CiThreshold(name, "<=", bound)
    assert parse_thresholds(str(condition)) == [condition]


@all_rows("text", ["mean_delta", "mean_delta>", ">0", "mean_delta=>0", "mean_delta=0", "mean_delta!=0", "mean_delta>1%",
     "n>nan", "n>1e999", "mean_delta>−0.01", "0<mean_delta", "0<n<3", "n>__import__('os')", "n>1 or flips<1", "n>1_0",
     "n>١"])  # fmt: skip
def test_an_invalid_condition_is_refused_with_an_example(text: str):
    with pytest.raises(InputError, match=r'is not a condition; write it as in "mean_delta>-0\.01"'):
        parse_thresholds(text)


@pytest.mark.parametrize("text", ["", " ", "n>1,", ", n>1", "n>1,,n>2"])
def test_an_empty_condition_is_refused(text: str):
    with pytest.raises(InputError, match="a condition is missing; write it as in"):
        parse_thresholds(text)


def test_an_unknown_figure_is_refused_with_the_nearest_one():
    with pytest.raises(
        InputError,
        match=r"gate 'mean_detla>0': unknown statistic 'mean_detla'; did you mean mean_delta\?",
    ):
        parse_thresholds("mean_detla>0")


def test_an_unrelated_figure_is_refused_with_the_list():
    with pytest.raises(
        InputError, match="unknown statistic 'quux'; there are n, flips, mean_delta, pass_p"
    ):
        parse_thresholds("quux>0")


def test_margins_and_thresholds_can_be_joined():
    assert parse_thresholds(
        "mean_delta>-0.01, no_worse_than=0.02 and no_worse_than = .5,flips<=3"
    ) == [
        CiThreshold("mean_delta", ">", -0.01),
        CiThreshold("no_worse_than", "=", 0.02),
        CiThreshold("no_worse_than", "=", 0.5),
        CiThreshold("flips", "<=", 3.0),
    ]
    for wrong in ("no_worse_than>1", "no_worse_than", "no_worse_than=1e999", "no_worse_then=0.02"):
        with pytest.raises(InputError, match="is not a condition; write it as in"):
            parse_thresholds(wrong)
    with pytest.raises(InputError, match="the margin of no_worse_than must be above 0, got -1"):
        parse_thresholds("no_worse_than=-1")
