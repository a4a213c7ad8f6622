"""The tree of errors: what callers catch."""

import inspect
import re

import jurygraph
from jurygraph import GraphCycleError, JurygraphError, errors
from tests.rows import all_rows

OWN = {name: one for name, one in vars(errors).items() if inspect.isclass(one)}


@all_rows("name", OWN)
def test_every_error_is_public_documented_and_derived_from_the_base(name: str) -> None:
    assert issubclass(OWN[name], JurygraphError)
    assert getattr(jurygraph, name) is OWN[name]
    assert OWN[name].__doc__


def test_the_tree_in_the_docs_is_the_tree_in_the_code() -> None:
    lines = (errors.__doc__ or "").splitlines()
    drawn = [found for line in lines if (found := re.match(r"( {4}[│├└─ ]*)([A-Z]\w+)", line))]
    above: list[type] = []
    for branch, name in (found.groups() for found in drawn):
        depth = (len(branch) - 4) // 4
        above = [*above[:depth], OWN[name]]
        if depth:
            assert OWN[name].__mro__[1] is above[depth - 1], name
    assert {found[2] for found in drawn} == OWN.keys()


def test_a_cycle_error_shows_names_and_keeps_indices() -> None:
    error = GraphCycleError([0, 2, 0], ["a", "b", "c"])
    assert error.cycle == [0, 2, 0]
    assert str(error) == "the rubric graph has a cycle: a -> c -> a"
    assert str(GraphCycleError([0, 2, 0])) == "the rubric graph has a cycle: 0 -> 2 -> 0"


def test_a_plan_error_is_a_value_error() -> None:
    assert issubclass(GraphCycleError, ValueError)
    assert not issubclass(errors.ConfigError, ValueError)
