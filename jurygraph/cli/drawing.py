"""`jurygraph graph` and `jurygraph schema`: what a machine or an editor can draw or check."""

import json
from enum import StrEnum
from typing import Annotated, Literal

import typer

from jurygraph.cli.text import out


class Machine(StrEnum):
    """The state machines."""

    prepare = "prepare"
    score = "score"


class Document(StrEnum):
    """What a JSON Schema can be had of."""

    tasks = "tasks"
    responses = "responses"
    config = "config"
    trace = "trace"


def graph(
    machine: Annotated[Machine, typer.Argument(help="Which state machine.")] = Machine.score,
) -> None:
    """Draw a state machine as Mermaid.

    \b
    Example:
        jurygraph graph score > score.mmd
    """
    from jurygraph.graphs import draw

    out(draw(machine.value))


def schema(
    document: Annotated[Document, typer.Argument(help="Which document.", show_default=False)],
) -> None:
    """Print the JSON Schema of a line of TASKS, of a line of RESPONSES, of the config, or of a trace.

    \b
    Example:
        jurygraph schema config > jury.schema.json
    """
    from jurygraph.schema import Config, Noun, ResponseLine, TaskLine, Trace

    nouns: dict[Document, type[Noun]] = {
        Document.tasks: TaskLine,
        Document.responses: ResponseLine,
        Document.config: Config,
        Document.trace: Trace,
    }
    mode: Literal["serialization", "validation"] = "serialization" if document is Document.trace else "validation"
    out(json.dumps(nouns[document].model_json_schema(mode=mode), indent=2))
