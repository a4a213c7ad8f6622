"""All commands by name; the module of one is imported when first needed. Errors become one line and an exit code."""

import logging
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from jurygraph.cli.options import CommandWithSingleColumns
from jurygraph.cli.render.text import command_line, print_message, print_messages, print_result
from jurygraph.cli.streams import ExitCode, make_current_redactor
from jurygraph.errors import BudgetExceeded, JurygraphError, ModelError, TraceMismatch
from jurygraph.messages import escape_multiline_text

COMMANDS_BY_HEADING = {
    "Begin": {
        "demo": "Show on real data what a reward can tell, without a key or a model.",
        "init": "Create a small project that runs as it is.",
        "doctor": "Check models, keys, extras and write access.",
        "preset": "List the presets, or print one as a config.",
        "schema": "Print the JSON Schema of tasks, responses, config, params or trace.",
        "prompts": "List, show or render the prompts of models.",
        "import": "Convert a file of another project to TASKS or RATINGS.",
        "integrate": "Write an example that gives a trainer the rewards of a jury.",
    },
    "Judge": {
        "score": "Score responses and store every reward with its full trace.",
        "merge": "Merge the shards of a run into one run, in the order of TASKS.",
        "plan": "Plan tasks before there are responses, for `serve --tasks`.",
        "serve": "Serve rewards to trainers over HTTP.",
        "profiles": "Read profiles in text as constraints, with a model.",
        "annotate": "Annotate which criteria depend on which (GEAR), with a model.",
        "assign": "Assign items to reviewers, as balanced and blinded sheets.",
    },
    "Look": {
        "show": "Show the rewards of a run, the full trace of a response, or the calls behind it.",
        "explain": "Explain a reward: the points gained and lost, in order of cost.",
        "view": "Look at a run in a browser: what its responses lost, and why.",
        "report": "Write a run, or one response, as a page that stands alone.",
        "export": "Export a run in another format.",
        "graph": "Draw a state machine, or the rubric graph of a task, as Mermaid.",
    },
    "Decide again, compare": {
        "rescore": "Compute a run's rewards again from its verdicts, without a request.",
        "compare": "Compare two runs: rewards, paired tests, flipped verdicts.",
    },
    "Measure": {
        "study": "Apply the measurements of the papers, to runs or simulations.",
        "consensus": "Aggregate annotators' labels, with their disagreement (STABLEVAL).",
        "watch": "Watch a run's rewards, and alert when they are being gamed.",
        "attack": "Attack the config's judge, and measure its false positives.",
        "power": "Estimate how many items or reviewers a study needs, from ratings of a first one.",
    },
    "Prove": {
        "verify": "Verify a run: its records, texts, rewards and seal.",
        "seal": "Verify a closed run and sign its head, into seal.json.",
        "close": "Close a run, so that nothing more is scored into it.",
        "erase": "Erase texts for good.",
    },
}
"""The first sentence of the help of each command, as the help groups them."""
COMMANDS = {}
for _commands in COMMANDS_BY_HEADING.values():
    COMMANDS.update(_commands)
_MODULE_BY_COMMAND = {
    **dict.fromkeys(("init", "doctor", "preset"), "setup"),
    **dict.fromkeys(("schema", "graph"), "draw"),
    **dict.fromkeys(("explain", "export"), "show"),
    **dict.fromkeys(("verify", "seal", "close", "erase"), "audit"),
    "import": "import_data",
    "profiles": "annotate",
}
"""The modules in `jurygraph.cli.commands` of the commands that have none of their own name."""


def command_module(name: str) -> str:
    """Return the full name of the module of a command."""
    return f"jurygraph.cli.commands.{_MODULE_BY_COMMAND.get(name, name)}"


_MESSAGE_BY_NUMBER_ERROR = {
    "unable to parse string as a number": "is no number; write one such as 1.5, with a decimal point",
    "unable to parse string as an integer": "is no whole number; write one, such as 100",
}
"""By the end of pydantic's message: what is said in its place."""


class _LazyCommandGroup(TyperGroup):
    """A group that imports a command when it is first needed, and lists all commands without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # None until it is loaded

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            module = import_module(command_module(cmd_name))
            function_name = "import_" if cmd_name == "import" else cmd_name  # `import` is a keyword
            self.commands[cmd_name] = _to_click_command(cmd_name, getattr(module, function_name))
        return self.commands.get(cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run a command. An error about an option loses the words that pydantic, which typer uses, puts in front.

        One about an option or argument that is missing ends with an example of the command's help that has it.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ") or _find_command_example(
                error
            )
            for error_ending, message in _MESSAGE_BY_NUMBER_ERROR.items():
                if error.message.endswith(error_ending):
                    error.message = message
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, commands in COMMANDS_BY_HEADING.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


def _find_command_example(error: typer.BadParameter) -> str:
    """Return the first example of a command that has the parameter of an error; empty if none has it."""
    if error.ctx is None or error.param is None:
        return ""
    is_option_parameter = error.param.param_type_name == "option"
    for line in map(str.strip, (error.ctx.command.help or "").splitlines()):
        shows_failed_parameter = not is_option_parameter or not set(error.param.opts).isdisjoint(
            line.split()
        )
        if line.startswith(f"{error.ctx.command_path} ") and shows_failed_parameter:
            return f"For example: {line}"
    return ""


def _to_click_command(name: str, target: Any) -> Any:
    if isinstance(target, typer.Typer):
        return typer.main.get_group(target)
    single_command_app = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    single_command_app.command(name, cls=CommandWithSingleColumns)(target)
    return typer.main.get_command(single_command_app)


app = typer.Typer(
    name="jurygraph",
    cls=_LazyCommandGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print_result(f"jurygraph {version('jurygraph')}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Rewards from judges, checks and people that can be trusted, explained and defended."""


root_command = typer.main.get_command(app)
"""The command `jurygraph`; calling `app` would build it again each time."""


_EXIT_CODE_BY_ERROR = {
    TraceMismatch: ExitCode.INTEGRITY_ERROR,
    ModelError: ExitCode.INCONCLUSIVE,
    BudgetExceeded: ExitCode.BUDGET_EXCEEDED,
}


def main(argv: Sequence[str] | None = None) -> None:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _run_command(argv)
    except SystemExit as end:
        time_limits_module = sys.modules.get("jurygraph.graphs.time_limits")
        # The interpreter could not destroy these tasks.
        if (
            argv is None
            and time_limits_module is not None
            and time_limits_module.ABANDONED_ASYNCIO_TASKS
        ):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(end.code or 0))
        raise


def _run_command(argv: Sequence[str] | None) -> None:
    if logging.lastResort:  # it writes warnings to standard error
        logging.lastResort.setFormatter(_PrintableLogFormatter())
        logging.lastResort.filters = [partial(_is_new_notice, {})]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    command_line.set(shlex.join(["jurygraph", *arguments]))
    try:
        try:
            root_command(None if argv is None else arguments, prog_name="jurygraph")
        finally:
            sys.stdout.flush()
    except JurygraphError as error:
        codes = (code for kind, code in _EXIT_CODE_BY_ERROR.items() if isinstance(error, kind))
        _exit_with_message(
            str(error), next(codes, ExitCode.WRONG_INPUT), getattr(error, "__notes__", ())
        )
    except OSError as error:
        problem = f"{error.filename or 'a file'}: {error.strerror or error}"
        _exit_with_message(problem, ExitCode.WRONG_INPUT)
    except Exception as error:  # noqa: BLE001 - the outermost handler: any other exception is a bug
        sys.stderr.write(_make_printable(traceback.format_exc()))
        _exit_with_message(
            f"this is a bug in jurygraph, please report it: {type(error).__name__}: {error}",
            ExitCode.INTERNAL_ERROR,
        )


def _make_printable(text: str) -> str:
    """Return a text without secrets, and with escapes for control characters, which would control the terminal."""
    return escape_multiline_text(make_current_redactor().redact_text(text))


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning, which user code may have written with a key in it."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    sys.stderr.write(_make_printable(text))


class _PrintableLogFormatter(logging.Formatter):
    """Log formatter for the terminal; a log record may repeat a key, or contain control characters."""

    def format(self, record: logging.LogRecord) -> str:
        # in Python the hint would mean nothing
        return _make_printable(super().format(record) + getattr(record, "command_hint", ""))


def _is_new_notice(first_records: dict[str, logging.LogRecord], record: logging.LogRecord) -> bool:
    """Return whether a record is no notice on a file that was logged before: a command may read it several times."""
    is_on_file = record.name.startswith("jurygraph.sources")  # a server may repeat another one
    return not is_on_file or first_records.setdefault(record.getMessage(), record) is record


def _exit_with_message(message: str, code: ExitCode, notes: Iterable[str] = ()) -> None:
    print_message(f"error: {message}")
    # LangGraph adds a note on its own task, which says nothing to whoever scores
    print_messages(note for note in notes if not note.startswith("During task with name "))
    sys.exit(code)
