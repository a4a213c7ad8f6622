"""The figures of a report as `--json` prints them, with attributes."""

import json
from typing import Any

from jurygraph.studies.report import Report


class Figures(dict[str, Any]):
    """A JSON object whose values are also attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def figures_of(report: Report) -> Figures:
    return read_figures(report.to_json())


def read_figures(value: Any) -> Any:
    """Return a JSON value with attributes, also of the objects in it."""
    return json.loads(json.dumps(value), object_hook=Figures)
