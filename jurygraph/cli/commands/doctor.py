"""`jurygraph doctor`: check which parts work on this machine."""

import asyncio
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from importlib.metadata import Distribution, distribution, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import jury_notes, locate_config_errors, open_jury
from jurygraph.cli.options import AsJson, option
from jurygraph.cli.render.text import escape_line, print_report
from jurygraph.errors import JurygraphError
from jurygraph.schema import Constraint, Criterion, Rubric, Stakeholder, Task, TaskDefaults

if TYPE_CHECKING:
    from jurygraph.jury import Jury

_KEY_PATTERN = re.compile(r"[A-Z0-9_]+_(API_KEY|API_TOKEN|AUTH_TOKEN)|HF_TOKEN|AWS_ACCESS_KEY_ID|JURYGRAPH_FENCE_KEY")


class SetupCheck(NamedTuple):
    """The result of one check. `works` is None for an optional part that is missing."""

    name: str
    works: bool | None
    detail: str


def doctor(
    config: Annotated[Path | None, option("F", "Check that this config can run.")] = None,
    json: AsJson = False,
) -> None:
    """Check models, keys, extras and write access.

    Keys are listed by name only. The maths worker compares two answers. With --config, the config is loaded, its
    evaluators are opened, and an example task with all fields is planned, with the config's `task_defaults`. Nothing is
    sent to a model.

    Exit codes: 0 done; 2 the config cannot run.

    \b
    Example:
        jurygraph doctor --config jury.yaml
    """
    with redirect_stdout(sys.stderr):  # output of user code must not mix with the result
        checks = list(_run_checks(config))
    marks = {True: "ok", False: "FAILED", None: "-"}
    lines = (f"{check.name:<14}{marks[check.works]:<8}{escape_line(check.detail)}" for check in checks)
    print_report(json, {"checks": [check._asdict() for check in checks]}, lines)
    if any(check.name == "config" and not check.works for check in checks):
        raise typer.Exit(ExitCode.WRONG_INPUT)


def _run_checks(config: Path | None) -> Iterator[SetupCheck]:
    from jurygraph.models.factory import model_forms

    yield SetupCheck("python", True, platform.python_version())
    yield SetupCheck("jurygraph", True, version("jurygraph"))
    yield SetupCheck("models", True, f"{model_forms('and')} (litellm)")
    keys = sorted(name for name, value in os.environ.items() if value and _KEY_PATTERN.fullmatch(name))
    yield SetupCheck(
        "keys", True if keys else None, ", ".join(keys) or "no API key in the environment; none is required"
    )
    yield from _check_extras()
    try:
        with tempfile.TemporaryFile(dir=Path.cwd()):
            yield SetupCheck("write access", True, str(Path.cwd()))
    except OSError as error:
        yield SetupCheck("write access", False, f"{Path.cwd()}: {error.strerror}")
    yield _check_maths_worker()
    if config is not None:
        yield from _check_config(config)


def _check_extras() -> Iterator[SetupCheck]:
    this = distribution("jurygraph")
    for extra in this.metadata.get_all("Provides-Extra") or []:
        needed = [r for r in this.requires or [] if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", r)]
        names = [re.split(r"[^\w.-]", r, maxsplit=1)[0] for r in needed]
        missing = [name for name in names if not any(Distribution.discover(name=name))]
        detail = f"{extra}: missing {', '.join(missing)}" if missing else f"{extra}: installed"
        yield SetupCheck("extra", None if missing else True, detail)


def _check_maths_worker() -> SetupCheck:
    """Run one comparison in the worker process that compares answers."""
    from jurygraph.agents.maths.comparison import EquivalencePool

    try:
        with closing(EquivalencePool()) as pool:
            status = asyncio.run(pool.compare(r"\frac{2}{4}", "1/2"))
    except JurygraphError as error:
        return SetupCheck("maths worker", False, str(error))
    if status == "equal":
        return SetupCheck("maths worker", True, "compared 1/2 with 2/4")
    return SetupCheck("maths worker", False, f"compared 1/2 with 2/4: {status}")


def _check_config(path: Path) -> Iterator[SetupCheck]:
    from jurygraph.planner import Planner  # imported lazily: only needed with a config

    try:
        with open_jury(path) as jury, locate_config_errors(path):
            for evaluator in jury.evaluators.values():
                evaluator.open()
            jury.run(Planner(jury).aestimate_plan(_example_task(jury)))
            names = ", ".join(f"{e.name} {e.version}" for e in jury.evaluators.values())
            notes = jury_notes(jury)
    except (JurygraphError, OSError) as error:
        yield SetupCheck("config", False, str(error))
        return
    yield SetupCheck("config", True, f"{path.name}: {names}")
    yield from (SetupCheck("history", None, note) for note in notes)


def _example_task(jury: "Jury") -> Task:
    """Return an example task that has everything a recipe may use: the config's `task_defaults`, or else an example.

    Without default reviewers, it has one whom all histories have. Its criteria and people include those that inputs of
    components name.
    """
    known = [set(one.known_reviewers) for one in jury.evaluators.values() if one.known_reviewers]
    reviewers = sorted(set.intersection(*known)) if known else ["reviewer"]
    constraint = Constraint(id="brief", text="The answer is brief.", kind="hard")
    inputs = (one for component in jury.config.components.values() for one in component.inputs.values())
    members = {one.verdicts_of.partition("@")[2] for one in inputs} - {""}  # of questions such as criteria@polite
    names = sorted(members | {"one", "two"})
    criteria = tuple(Criterion(id=name, text=f"The answer is correct ({name}).", weight=1.0) for name in names)
    people = tuple(jury.config.weights.fixed) or names
    example = Task(
        id="example",
        query="What is one half?",
        reference="1/2",
        stakeholders=tuple(Stakeholder(id=name, constraints=(constraint,)) for name in people),
        rubric=Rubric(criteria=criteria),
        reviewers=tuple(reviewers[:1]),
    )
    defaults = jury.config.task_defaults
    parts = {name: part for name in TaskDefaults.model_fields if (part := getattr(defaults, name))}
    return example.model_copy(update=parts)
