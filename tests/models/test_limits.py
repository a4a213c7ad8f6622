"""The limits of the backends are those of the table in docs/models.md, as a server with faults meets them."""

from pathlib import Path

import pytest

from tests.models.fault_targets import HTTP_TARGETS, outcome
from tests.models.test_fault_modes import address, environment_of_targets, modes_of, provider
from tests.virtual_time import run_held

__all__ = ["environment_of_targets"]

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings(
        "ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"
    ),
]

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
COLUMNS = {
    "openai-compatible:": "openai-compatible",
    "provider/model by litellm": "litellm",
    "langchain:": "chat_model",
}
"""The columns of the table, each with the beginning of the names of its targets."""

ROWS = {
    "redirects the request": "redirect-307",
    "sends more than 8 MiB": "huge",
    "sends little that decompresses to 300 MiB": "gzip-bomb",
    "never answers": "hang",
    "sends a little now and then, without end": "drip",
    "breaks the connection off in the reply": "cut",
    "cuts the compressed reply short": "gzip-cut",
    "answers with half of the JSON": "half",
    "answers with a 503": "status-503",
}
"""The rows of the table, each with the fault mode of the server."""


def measured_cell(start: str, mode: str) -> str:
    """Return what becomes of a request to each target of a column, and of how many requests for a 503."""
    cells = set()
    for name in (name for name in HTTP_TARGETS if name.startswith(start)):
        if mode not in modes_of(name):
            cells.add("your client decides")
            continue
        with provider(name) as (server, other):
            kind = run_held(outcome(HTTP_TARGETS[name].call, address(server), mode))
            requests = f", {server.count} request" if mode == "status-503" else ""
            assert (server.count, other.count) == (1, 0)
        cells.add(kind + requests)
    return " or ".join(sorted(cells))


@pytest.mark.usefixtures("environment_of_targets")
def test_the_page_states_the_limits_that_hold() -> None:
    table = (
        PAGE.read_text("utf-8").split("## Limits of each backend")[1].split("\n\n")[2].splitlines()
    )
    heads = [head.strip(" `").replace("`", "") for head in table[0].split("|")[2:-1]]
    assert heads == list(COLUMNS)
    stated = {}
    for line in table[2:]:
        row, *cells = [cell.strip() for cell in line.split("|")[1:-1]]
        stated[row] = cells
    assert stated == {
        row: [measured_cell(start, mode) for start in COLUMNS.values()]
        for row, mode in ROWS.items()
    }
