"""`jurygraph init`, `doctor` and `preset`: a first project, what works on this machine, and ready-made configs."""

import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.metadata import version
from importlib.resources import as_file, files
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from jurygraph.cli.jury_loading import collect_jury_notes, open_jury
from jurygraph.cli.options import JsonOption, argument, option
from jurygraph.cli.render.text import escape_line, print_message, print_report, print_result
from jurygraph.cli.streams import ExitCode
from jurygraph.errors import InputError, JurygraphError
from jurygraph.messages import select_known_names, shell_quote

_KEY_VARIABLE_PATTERN = re.compile(
    r"[A-Z0-9_]+_(API_KEY|API_TOKEN|AUTH_TOKEN)|HF_TOKEN|AWS_ACCESS_KEY_ID|JURYGRAPH_FENCE_KEY"
)


def init(
    folder: Annotated[Path, argument("DIR", "Folder to create.")],
    template: Annotated[
        str,
        option(
            None,
            "maths, judge, rag, trip, rubric, reviewers, ideas, agent, evaluator or ci.",
        ),
    ] = "maths",
) -> None:
    """Create a small project that runs as it is.

    It has tasks.jsonl, jury.yaml, README.md, and the files that these need. The template judge has a table of answers
    and a rubric, rag one of answers with their passages; both need a model. evaluator is a package of your own
    evaluators. ci has a workflow for GitHub that scores a change, compares it with a baseline, comments on it, and
    fails where the gate is missed.

    \b
    Example:
        jurygraph init my-jury
        jurygraph score my-jury/tasks.jsonl --out my-jury/run
        jurygraph init my-judge --template judge
    """
    create_folder_from_template("jurygraph.cli", "template", template, folder)
    tasks = "tasks.jsonl"
    if template in _TABLE_COLUMN_OPTIONS:
        tasks = f"answers.csv {_ANSWER_OPTIONS} {_TABLE_COLUMN_OPTIONS[template]}"
    if template in _TEMPLATES_THAT_NEED_MODEL:
        tasks += " --model openai/gpt-5-mini"
    out = "baseline" if template == "ci" else "run"
    print_message(f"next: cd {shell_quote(folder)}, then jurygraph score {tasks} --out {out}")


_ANSWER_OPTIONS = "--prompt-column question --response-column answer"
_TABLE_COLUMN_OPTIONS = {
    "judge": "--agent-column who --group-by question",
    "rag": "--agent-column system --context-column passages --group-column question",
}
_TEMPLATES_THAT_NEED_MODEL = ("judge", "rag", "reviewers", "ideas")
"""Templates whose questions all abstain without a model."""


def create_folder_from_template(
    package: str, kind: str, name: str, folder: Path, common: str = ""
) -> None:
    """Create a folder from the template of this name in a package, and from a `common` one, and list its files.

    Raises `InputError` for another name, or if the folder is there and not empty.
    """
    source = files(package) / "templates"
    templates = {entry.name for entry in source.iterdir() if entry.is_dir()} - {common}
    select_known_names(f"unknown {kind}", [name], sorted(templates))
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and was not overwritten; name another folder")
    for part in filter(None, (common, name)):
        with as_file(source / part) as content:
            _copy_files(content, folder)
    for path in sorted(folder.iterdir()):
        print_result(str(path))


def _copy_files(content: Path, folder: Path) -> None:
    """Copy all files into a new folder, with the permissions of new files."""
    for path in content.rglob("*"):
        if path.is_file() and path.parent.name != "__pycache__":
            target = folder / path.relative_to(content)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())


class SetupCheck(NamedTuple):
    """The result of one check. `works` is None for an optional part that is missing."""

    name: str
    works: bool | None
    detail: str


def doctor(
    config: Annotated[Path | None, option("F", "Check that this config can run.")] = None,
    json: JsonOption = False,
) -> None:
    """Check models, keys, extras and write access.

    Keys are listed by name only. With --config, the config is loaded and its jury opened: evaluators, models, and the
    files and examples that it names. Nothing is sent to a model; `jurygraph score --dry-run` plans tasks without one.

    Exit codes: 0 done; 2 the config cannot be loaded, or its jury not be opened.

    \b
    Example:
        jurygraph doctor --config jury.yaml
    """
    with redirect_stdout(sys.stderr):  # output of user code must not mix with the result
        checks = list(_run_checks(config))
    marks = {True: "ok", False: "FAILED", None: "-"}
    lines = []
    for check in checks:
        mark = marks[check.works]
        lines.append(f"{check.name:<14}{mark:<8}{escape_line(check.detail)}")
    print_report(json, {"checks": [check._asdict() for check in checks]}, lines)
    if any(check.name == "config" and not check.works for check in checks):
        raise typer.Exit(ExitCode.WRONG_INPUT)


def _run_checks(config: Path | None) -> Iterator[SetupCheck]:
    from jurygraph.models.factory import list_model_forms

    yield SetupCheck("python", True, platform.python_version())
    yield SetupCheck("jurygraph", True, version("jurygraph"))
    yield SetupCheck("for agents", True, str(files("jurygraph") / "SKILL.md"))
    yield SetupCheck("models", True, f"{list_model_forms('and')} (litellm)")
    keys = [
        name
        for name, value in os.environ.items()
        if value and _KEY_VARIABLE_PATTERN.fullmatch(name)
    ]
    keys_text = ", ".join(sorted(keys)) or "no API key in the environment; none is required"
    yield SetupCheck("keys", True if keys else None, keys_text)
    for extra, modules in _MODULES_BY_EXTRA.items():
        missing = [module for module in modules if find_spec(module) is None]
        detail = f"missing {', '.join(missing)}" if missing else "installed"
        yield SetupCheck("extra", None if missing else True, f"{extra}: {detail}")
    try:
        with tempfile.TemporaryFile(dir=Path.cwd()):
            yield SetupCheck("write access", True, str(Path.cwd()))
    except OSError as error:
        yield SetupCheck("write access", False, f"{Path.cwd()}: {error.strerror}")
    if config is not None:
        yield from _check_config(config)


_MODULES_BY_EXTRA = {
    "embeddings": ["sentence_transformers"],
    "local": ["xllamacpp"],
    "pandas": ["pandas", "pyarrow"],
    "parquet": ["pyarrow"],
    "plot": ["matplotlib"],
    "ray": ["ray"],
    "xlsx": ["openpyxl"],
}
"""The modules of the extras that a user installs."""


def _check_config(path: Path) -> Iterator[SetupCheck]:
    try:
        with open_jury(path) as jury:
            jury.open()
            reviewers = jury.config.task_defaults.reviewers
            for evaluator in jury.evaluators.values():
                if evaluator.predictable_reviewers:  # else it predicts any, or none
                    problem = f"task_defaults.reviewers: {evaluator.name} has no ratings of"
                    select_known_names(problem, reviewers, evaluator.predictable_reviewers)
            names = ", ".join(jury.evaluators)
            notes = collect_jury_notes(jury, is_check=True)
            if jury.gateways:
                notes.append(
                    "no model was contacted; this plans your tasks without a call: "
                    f"jurygraph score TASKS --config {shell_quote(path)} --dry-run"
                )
    except (JurygraphError, OSError) as error:
        yield SetupCheck("config", False, str(error))
        return
    yield SetupCheck("config", True, f"{path.name}: {names}")
    yield from (SetupCheck("note", None, note) for note in notes)


def preset(
    name: Annotated[str | None, argument("NAME", "Preset to print.")] = None,
    model: Annotated[str, option("M", "Model of the config.")] = "none",
    json: JsonOption = False,
) -> None:
    """List the presets, or print one as a config.

    A config can also use `preset: NAME`. The presets are MACRM with two, three and four agents, without a global signal
    (vanilla), with a ranker (rerank) or with the similarity of embeddings (emb), and its two baselines.

    \b
    Example:
        jurygraph preset
        jurygraph preset macrm-vanilla-3 > jury.yaml
    """
    from ruamel.yaml import YAML

    from jurygraph.sources.config import PRESETS, PresetUse, expand_preset, parse_config_mapping

    if name is None:
        print_report(json, list(PRESETS), PRESETS)
        return
    select_known_names("unknown preset", [name], list(PRESETS))
    parse_config_mapping(
        {"preset": name, "model": model}
    )  # raises ConfigError if the model is invalid
    config = {"model": model, **expand_preset(PresetUse(name=name), {"model": model})}
    text = StringIO()
    yaml_writer = YAML()
    yaml_writer.default_flow_style = None
    yaml_writer.width = 110
    yaml_writer.dump({key: value for key, value in config.items() if value not in ([], {})}, text)
    print_report(json, config, [text.getvalue().rstrip("\n")])
