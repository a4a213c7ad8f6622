"""`jurygraph doctor`: what works on this machine."""

import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jurygraph.cli.boundary import Exit
from jurygraph.cli.options import AsJson
from jurygraph.cli.text import out, out_json, visible

if TYPE_CHECKING:
    from jurygraph.schema import Config, Task

_KEY = re.compile(r"[A-Z0-9_]+_(API_KEY|API_TOKEN|AUTH_TOKEN)|HF_TOKEN|AWS_ACCESS_KEY_ID|JURYGRAPH_FENCE_KEY")


class Check(NamedTuple):
    """One thing looked at. `works` is None where it is neither needed nor there."""

    name: str
    works: bool | None
    detail: str


def doctor(
    config: Annotated[
        Path | None, typer.Option(metavar="F", help="Check that this config can run.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Say what works here: models, keys, extras, write access.

    Keys are told by their names alone. The maths worker compares two answers. A config is loaded, its evaluators are
    opened, and a made-up task that has everything is planned under it.

    Exit codes: 0 done; 2 the config cannot run.

    \b
    Example:
        jurygraph doctor --config jury.yaml
    """
    with redirect_stdout(sys.stderr):  # what a user's code prints is no part of the result
        checks = list(_checks(config))
    if json:
        out_json({"checks": [check._asdict() for check in checks]})
    else:
        for check in checks:
            mark = {True: "ok", False: "FAILED", None: "-"}[check.works]
            out(f"{check.name:<14}{mark:<8}{visible(check.detail)}")
    if any(check.name == "config" and not check.works for check in checks):
        raise typer.Exit(Exit.WRONG_INPUT)


def _checks(config: Path | None) -> Iterator[Check]:
    from importlib.metadata import version

    yield Check("python", True, platform.python_version())
    yield Check("jurygraph", True, version("jurygraph"))
    known = "none, openai-compatible:URL#model, gguf:PATH, replay:PATH, langchain:PATH.NAME, provider/model (litellm)"
    yield Check("models", True, known)
    keys = sorted(name for name, value in os.environ.items() if value and _KEY.fullmatch(name))
    yield Check("keys", True if keys else None, ", ".join(keys) or "no API key in the environment; none is needed")
    yield from _extras()
    yield _writable()
    yield _maths_worker()
    if config is not None:
        yield from _runs(config)


def _extras() -> Iterator[Check]:
    from importlib.metadata import distribution

    installed = distribution("jurygraph")
    for extra in installed.metadata.get_all("Provides-Extra") or []:
        needed = [r for r in installed.requires or [] if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", r)]
        missing = [name for name in (re.split(r"[^\w.-]", r, maxsplit=1)[0] for r in needed) if not _installed(name)]
        detail = f"{extra}: missing {', '.join(missing)}" if missing else f"{extra}: installed"
        yield Check("extra", None if missing else True, detail)


def _installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _writable() -> Check:
    here = Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=here):
            return Check("write access", True, str(here))
    except OSError as error:
        return Check("write access", False, f"{here}: {error.strerror}")


def _maths_worker() -> Check:
    """One real comparison, through the worker process in which answers are compared."""
    from jurygraph.cli.opening import send_nothing

    send_nothing()
    from jurygraph.errors import JurygraphError
    from jurygraph.jury import Jury
    from jurygraph.schema import Response, Task

    task = Task(id="doctor", query="What is one half?", reference="1/2")
    try:
        with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
            verdict = jury.score(task, [Response(id="doctor", text=r"\boxed{\frac{2}{4}}")])[0].verdicts[0]
    except JurygraphError as error:
        return Check("maths worker", False, str(error))
    if verdict.score == 1.0:
        return Check("maths worker", True, "compared 1/2 with 2/4")
    return Check("maths worker", False, verdict.reason or f"found 1/2 and 2/4 different ({verdict.status})")


def _runs(path: Path) -> Iterator[Check]:
    from jurygraph.cli.opening import notes_of, open_jury
    from jurygraph.errors import JurygraphError

    try:
        with open_jury(path) as jury:
            for evaluator in jury.evaluators.values():
                evaluator.open()
            jury.prepare(_made_up(jury.config))
            names = ", ".join(f"{e.name} {e.version}" for e in jury.evaluators.values())
            notes = notes_of(jury)
    except (JurygraphError, OSError) as error:
        yield Check("config", False, str(error))
        return
    yield Check("config", True, f"{path.name}: {names}")
    yield from (Check("history", None, note) for note in notes)


def _made_up(config: "Config") -> "Task":
    """A task that has everything which a recipe may count."""
    from jurygraph.schema import Constraint, Criterion, Rubric, Stakeholder, Task

    wish = Constraint(id="wish", text="It is brief.", kind="hard")
    names = tuple(config.weights.fixed) or ("ann", "ben")
    return Task(
        id="made-up",
        query="What is one half?",
        reference="1/2",
        stakeholders=tuple(Stakeholder(id=name, constraints=(wish,)) for name in names),
        rubric=Rubric(criteria=tuple(Criterion(id=name, text="It is so.", weight=1.0) for name in ("one", "two"))),
        reviewers=("reviewer",),
    )
