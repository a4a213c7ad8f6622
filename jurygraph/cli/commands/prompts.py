"""`jurygraph prompts`: list, print and render the prompts that models get."""

from typing import Annotated

import typer

from jurygraph.agents.extraction import RecordParams
from jurygraph.cli.options import JsonOption, argument, option
from jurygraph.cli.render.text import format_table, print_report, print_result
from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import Problem, did_you_mean, shorten, validate
from jurygraph.prompts import (
    Prompt,
    RenderOptions,
    ShownExample,
    load_prompt,
    prompt_names,
    read_prompt_source,
)
from jurygraph.safety.gates import read_project_key
from jurygraph.safety.redaction import make_process_redactor
from jurygraph.schema import EvaluatorUse, Message
from jurygraph.sources.artifacts import read_json_object

prompts = typer.Typer(
    name="prompts",
    help="List, show or render the prompts of models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
PromptNameArgument = Annotated[str, argument("PROMPT", "Name of a prompt.")]


@prompts.command("list")
def list_prompts(json: JsonOption = False) -> None:
    """List the prompts and their purposes.

    A prompt may extend another. The version of a prompt is part of the identity of every call: a changed text has a
    new version.

    \b
    Example:
        jurygraph prompts list
    """
    entries = []
    rows = []
    for prompt in map(load_prompt, prompt_names()):
        entries.append(
            {
                "id": prompt.id,
                "version": prompt.version,
                "extends": prompt.extends,
                "purpose": prompt.purpose,
                "paper": prompt.paper,
                "edition": prompt.full_version,
                "variables": list(prompt.needs),
            }
        )
        rows.append([prompt.id, prompt.version, prompt.extends or "-", prompt.purpose])
    header = ["prompt", "version", "extends", "purpose"]
    print_report(json, entries, format_table(header, rows, left_aligned_count=4))


@prompts.command("show")
def show_prompt(name: PromptNameArgument) -> None:
    """Print a prompt's file: front matter and templates.

    \b
    Example:
        jurygraph prompts show criteria
    """
    _refuse_name_of_evaluator(name)
    print_result(read_prompt_source(name).rstrip("\n"))


@prompts.command("render")
def render_prompt(
    name: PromptNameArgument,
    values: Annotated[str, option("F", "JSON file with its variables; - for stdin.", "--with")],
    json: JsonOption = False,
) -> None:
    """Print the messages of a rendered prompt.

    They are the messages that a model receives; fences are marked with the project's key, JURYGRAPH_FENCE_KEY. Most
    variables are texts. Lists of objects are `items` (what is judged), each with `name` and `text`, and optionally
    `parts` (true) or `scale` ([low, high]); `people` (may be []), `responses` and `steps`, each with `name` and `text`;
    `examples` (may be []), each with `reviewer`, `text`, `score` (a text too) and optionally `reason`. `names` is a
    list of texts, `compact` true or false, `step` a number or null, `kinds` the records of extract as in a config.

    \b
    Example:
        echo '{"query": "Plan a trip.", "profile": "travels with a cat"}' | jurygraph prompts render profile --with -
        jurygraph prompts render criteria --with criteria.json
    where criteria.json contains
        {"query": "Say hello.", "reference": null, "response": "Hello, Ann!", "compact": false,
         "items": [{"name": "kind", "text": "It is kind."}]}
    """
    _refuse_name_of_evaluator(name)
    messages = _render_with_variables(load_prompt(name), values)
    lines = (f"## {message.role}\n{message.content}\n" for message in messages)
    print_report(json, [message.model_dump(mode="json") for message in messages], lines)


def _refuse_name_of_evaluator(name: str) -> None:
    """Raise `InputError` for the name of an evaluator that no prompt has, with the name of its prompt."""
    if name in prompt_names():
        return
    from jurygraph.agents.registry import BUILTIN_EVALUATOR_PATHS, load_evaluator

    if name not in BUILTIN_EVALUATOR_PATHS:
        return
    try:
        evaluator = load_evaluator(EvaluatorUse(use=name))
    except ConfigError:  # one that needs params
        return
    prompt = getattr(evaluator, "prompt", getattr(evaluator, "_prompt", None))
    if isinstance(prompt, Prompt):
        raise InputError(
            f"there is no prompt {name!r}; the evaluator of that name asks with the prompt "
            f"{prompt.id}"
        )


def _render_with_variables(prompt: Prompt, file: str) -> tuple[Message, ...]:
    """Render a prompt with the variables in a file. Raises `InputError` if they do not fit."""
    from jinja2 import TemplateError

    required_variables_text = (
        f"prompt {prompt.id!r} needs {', '.join(prompt.needs)} (null if there is none)"
    )
    variables = read_json_object(file, "the variables are", required_variables_text)
    for name in prompt.needs:
        if name not in variables:
            raise InputError(f"{file}: missing variable {name!r}; {required_variables_text}")
    for name in variables:
        if name not in prompt.needs:
            hint = did_you_mean(name, prompt.needs) or required_variables_text
            raise InputError(f"{file}: there is no variable {name!r}; {hint}")
    items = variables.get("items")
    if isinstance(items, list):
        optional = {"parts": False, "scale": None}
        variables["items"] = [optional | item if isinstance(item, dict) else item for item in items]
    if "kinds" in variables:
        params = validate(RecordParams, {"records": variables["kinds"]})
        if isinstance(params, Problem):
            raise InputError(
                f"{file}: variable kinds, as the params of extract: {params.field}: {params}"
            )
        variables["kinds"] = params.records
    try:
        if "examples" in variables:
            variables["examples"] = [ShownExample(**example) for example in variables["examples"]]
        return prompt.render(RenderOptions(key=read_project_key()), **variables).messages
    except (TemplateError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = shorten(make_process_redactor().redact_text(f"{type(error).__name__}: {error}"), 120)
        hint = "`jurygraph prompts render --help` describes them"
        raise InputError(
            f"{file}: prompt {prompt.id!r} cannot be rendered with these variables: {why}; {hint}"
        ) from None
