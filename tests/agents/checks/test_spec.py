"""The vocabulary of checks: valid checks, and the messages for invalid ones."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.agents.checks.spec import Check
from jurygraph.messages import describe_validation_error
from tests.rows import all_rows

SHARE = {"share": "stays", "where": {"room": {"equals": "Private room"}}}
MEALS = {"of": "meals", "column": "price"}


def refusal(fields: dict[str, Any]) -> str:
    """Return the message for an invalid check: the field and the problem."""
    with pytest.raises(ValidationError) as caught:
        Check.model_validate(fields)
    found = describe_validation_error(caught.value, Check, fields)
    return f"{found.field}: {found}"


@all_rows(("fields", "words"), [
        ({"cuont": "meals", "at_least": 1}, "cuont: unknown; did you mean count?"),
        ({"count": "m", "at_least": 1, "where": {"x": {"equal": 1}}}, "where.x.equal: unknown; did you mean equals?"),
        ({"count": "m", "at_least": 1, "where": {"x": {"equals": {"col": "y"}}}},
         "where.x.equals.col: unknown; did you mean column?"),
        ({"at_most": 3}, ": measures nothing; give one of count, share, sum, values, text, function"),
        ({"count": "m", "share": "m", "at_least": 1}, ": measures count and share; give one of count, share, sum,"),
        ({"count": "meals"}, ": has no bound; give one of at_least, at_most, equals, between"),
        ({"sum": [], "at_most": 1}, "sum: has 0 entries; give it at least 1"),
        ({"count": "m", "at_least": 1, "at_most": 2}, ": has at_least and at_most; give one of"),
        ({**SHARE, "at_least": 0.5, "equals": 1}, ": a share has `where`, and at most one bound"),
        ({"share": "stays"}, ": a share has `where`, and at most one bound; without one all must pass"),
        ({**SHARE, "at_least": 60}, "at_least: can never be met: a share lies from 0 to 1"),
        ({**SHARE, "between": [1.1, 2]}, "between: can never be met: a share lies from 0 to 1"),
        ({"count": "m", "at_most": -1}, "at_most: can never be met: a count lies from 0 to any number"),
        ({"sum": [MEALS], "equals": -5}, "equals: can never be met: a sum lies from 0 to any number"),
        ({"count": "m", "equals": 2.5}, "equals: can never be met: a count is a whole number"),
        ({"count": "m", "at_least": 1, "where": {"x": {"at_least": 20, "at_most": 10}}},
         "where.x.at_most: lies below `at_least`, so no value passes; leave one of them out"),
        ({"count": "m", "at_least": 1, "where": {"x": {"at_most": "noon"}}},
         "where.x.at_most: is 'noon'; write a number, a time such as 9:30, or a date as 2022-03-01"),
        ({"text": ""}, "text: is empty; write at least one character"),
        ({"count": "m", "between": [3, 1]}, "between: does not rise; write the lower end first"),
        ({"count": "m", "at_least": 1, "where": {"x": {}}}, "where.x: says nothing of the value; write such as"),
        ({"values": "m", "column": "c"}, ": values have a `column`, and one of `includes`, `excludes` and `distinct`"),
        ({"values": "m", "column": "c", "distinct": True, "includes": ["a"]}, ": values have a `column`, and one of"),
        ({"values": "m", "column": "c", "includes": []}, "includes: has 0 entries; give it at least 1"),
        ({"values": "m", "column": "c", "distinct": False}, "distinct: is false; write True"),
        ({"count": "m", "at_least": 1, "per": 2},
         "per: has no meaning for `count`; it takes where, at_least, at_most, equals, between, partial"),
        ({"sum": [MEALS], "at_most": 1, "where": {"x": {"equals": 1}}},
         "where: has no meaning for `sum`; it takes per, at_least, at_most, equals, between, partial"),
        ({"values": "m", "column": "c", "distinct": True, "at_least": 1}, "at_least: has no meaning for `values`"),
        ({"function": "f", "at_least": 1}, "at_least: has no meaning for `function`; it takes params"),
        ({"sum": [{**MEALS, "places": 2}], "at_most": 1}, "sum[0].places: has no meaning without `people`; say how"),
        ({"text": "a(?=b)"}, "text: is not a valid RE2 pattern (invalid perl operator: (?=); RE2 has no look-around"),
        ({"count": "m", "at_least": 1, "where": {"x": {"matches": "("}}},
         "where.x.matches: is not a valid RE2 pattern (missing ): ()"),
        ({"count": "$[", "at_least": 1}, "count: is not a valid JSONPath (unbalanced brackets, line 1, column 2)"),
        ({"sum": [MEALS, {"of": "$x", "column": "c"}], "at_most": 1}, "sum[1].of: is not a valid JSONPath"),
    ])  # fmt: skip
def test_a_meaningless_check_is_refused_with_a_message(fields: dict[str, Any], words: str) -> None:
    assert refusal(fields).startswith(words)
