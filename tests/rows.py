"""Tables of values that are one test each.

A table of texts or numbers with what is expected of each costs pytest more for every row than the row costs itself. So
`all_rows` stands where `pytest.mark.parametrize` would; tests with few or dear cases keep that.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

TestFunction = Callable[..., None]


def all_rows(
    names: str | Sequence[str], rows: Iterable[Any]
) -> Callable[[TestFunction], TestFunction]:
    """Try every row of a table in one test, with the arguments of `parametrize`; what fails is listed row by row."""
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(columns)) for row in rows]
    assert table, "a table without rows tests nothing"

    def decorate(test: TestFunction) -> TestFunction:
        def check_all_rows(*instance: Any, **others: Any) -> None:
            failures = []
            for values in table:
                row = dict(zip(columns, values, strict=True))
                try:
                    test(*instance, **row, **others)
                except Exception as error:  # noqa: BLE001 - raised again with the others
                    error.add_note(f"in the row {row!r:.2000}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in columns]
        check_all_rows.__name__, check_all_rows.__doc__ = test.__name__, test.__doc__
        check_all_rows.__module__, check_all_rows.__qualname__ = test.__module__, test.__qualname__
        check_all_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return check_all_rows

    return decorate


def _values(row: Any, columns: int) -> Sequence[Any]:
    """Return the values of a row; a `pytest.param` has them in it."""
    if hasattr(row, "marks"):
        assert not row.marks, "a row has no mark of its own"
        return list(row.values)
    return [row] if columns == 1 else list(row)
