"""The table of rewards of `jurygraph show`, as lines of text."""

from itertools import chain
from typing import Any

from jurygraph.cli.render.text import (
    format_component_value,
    format_table,
    print_message,
    print_messages,
    print_result_lines,
)
from jurygraph.display import format_number
from jurygraph.messages import format_count, join_names
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.views.agents import agent_label
from jurygraph.views.rewards import (
    PREDICTED_COLUMN_PREFIX,
    ComponentValue,
    RewardColumn,
    RewardTable,
)


def print_reward_table(table: RewardTable) -> None:
    """Print the rows, then how many responses the mean contains and leaves out."""
    names = [column.name for column in table.columns]
    text_column_count = sum(column.is_text for column in table.columns)
    rows = [list(map(_format_value, table.columns, row)) for row in table.rows]
    print_result_lines(format_table(names, rows, text_column_count))
    values = chain.from_iterable(table.rows)
    if any(isinstance(value, ComponentValue) and value.is_filled_in for value in values):
        print_result_lines(["* filled in by the failure rule; --response shows what was judged"])
    print_message(_format_mean_line(table))
    print_messages(filter(None, [table.left_out.warning, table.findings.warning]))


def _format_value(column: RewardColumn, value: Any) -> str:
    if isinstance(value, ComponentValue):
        return format_component_value(value.counted, value.is_filled_in)
    is_plain_number_column = column.name == "unsupported" or column.name.startswith(
        PREDICTED_COLUMN_PREFIX
    )
    if is_plain_number_column and value is not None:
        return f"{value:g}"
    if not column.is_text or value is None:
        return format_number(value)
    return '"-"' if value == "-" else json_value_to_text(value)  # a dash is no value


def _format_mean_line(table: RewardTable) -> str:
    if not table.rows:
        return "no response matches"
    scored = sum(row.scored for row in table.agents.values())
    if not scored:
        return f"no mean reward: all {len(table.rows)} failed (--response ID shows why)"
    means = {agent_label(name): format_number(row.mean) for name, row in table.agents.items()}
    texts = map(" ".join, means.items()) if len(means) > 1 else means.values()
    line = f"mean reward of {format_count(scored, 'response')}: {join_names(texts)}"
    failed_response_count = len(table.rows) - scored
    if failed_response_count:
        line += f", {failed_response_count} left out because they failed"
    return line
