"""`jurygraph attack`: a judge under attack, with and without its defences, and a gate that a build can depend on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli import outcome
from jurygraph.cli.boundary import Exit
from jurygraph.cli.opening import open_jury
from jurygraph.cli.options import AsJson, Conditions, DryRun, FilesOutside, MaxCalls, MaxCost, ModelName
from jurygraph.cli.printing import kept_off_stdout
from jurygraph.cli.text import out, out_json, say, table

if TYPE_CHECKING:
    import asyncio

    from jurygraph.jury import Jury
    from jurygraph.runs.figures.bill import Tally
    from jurygraph.runs.figures.estimate import Estimate
    from jurygraph.runs.proportions import Proportion
    from jurygraph.schema import Response, Task
    from jurygraph.studies.attack.report import ArmReport, AttackReport
    from jurygraph.studies.attack.study import AttackStudy

_WORST = 20
_EXAMPLE = '"rate<=0.01" or "high<=0.02, honest_rate>=0.9"'


class Suite(StrEnum):
    """The suites of attacks."""

    all = "all"
    master_keys = "master-keys"
    null = "null"
    injection = "injection"
    reference = "reference"


def attack(
    config: Annotated[Path, typer.Option(metavar="F", help="Config.")] = Path("jury.yaml"),
    suite: Annotated[Suite, typer.Option(help="Attack by one suite alone.")] = Suite.all,
    model: ModelName = None,
    tasks: Annotated[
        str | None,
        typer.Option(metavar="TASKS", help="JSONL file of tasks, .gz too, instead of ours.", show_default=False),
    ] = None,
    gate: Conditions = None,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    allow_files_outside: FilesOutside = False,
    json: AsJson = False,
) -> None:
    """Attack the config's judge, and measure what passes.

    That is measured with each of its defences alone, with all and with none. Every attack is a response that does
    nothing of what the task asks for, or copies its reference: a verdict of a model on it that passes (status ok, score
    0.5 or more, on something good) is false. Beside them stand honest responses, since a defence that stops everything
    is of no use; those of TASKS are taken as they are. Each share has its 95 % Wilson interval.

    A gate has conditions NAME OP NUMBER, joined by `,` or `and`, on the figures of the config's own defences: rate, low
    and high of false positives among verdicts, hits and n; the same by response (responses_rate, …) and of honest
    verdicts that passed (honest_rate, …). Replies are kept in the cache: a study that was cut short goes on there.

    Exit codes: 0 done; 1 done, but the gate was missed; 2 wrong config or input; 3 inconclusive: too much failed that
    is no fault of the responses; 4 --max-cost or --max-calls is reached; 130 interrupted.

    \b
    Example:
        jurygraph attack --config jury.yaml --dry-run
        jurygraph attack --config jury.yaml --suite injection --gate "high<=0.02, honest_rate>=0.9"
    """
    from jurygraph.runs.figures.gate import Gate
    from jurygraph.studies.attack.report import Figures

    asked = Gate.parse(",".join(gate), Figures, _EXAMPLE) if gate else None
    sitting = _Sitting(config, suite, tasks, dry_run, allow_files_outside)
    with kept_off_stdout(), open_jury(config, model, dry_run, max_cost=max_cost, max_calls=max_calls) as jury:
        sitting.hold(jury)
    if sitting.estimate is not None:
        _print_forecast(sitting.study, sitting.estimate, json)
        return
    missed = [] if asked is None else asked.missed(sitting.report.figures)
    _print_report(sitting, json)
    outcome.say_missed(missed)
    raise typer.Exit(_exit_code(sitting.report, jury.config.failure.max_error_rate, bool(missed)))


class _Sitting:
    """What became of the command."""

    study: "AttackStudy"
    report: "AttackReport"
    requests: "Tally | None"

    def __init__(self, config: Path, suite: Suite, tasks: str | None, dry_run: bool, files_outside: bool) -> None:
        self.config, self.suite, self.tasks, self.dry_run = config, suite, tasks, dry_run
        self.files_outside = files_outside
        self.estimate: Estimate | None = None

    def hold(self, jury: "Jury") -> None:
        """Judge everything in every arm, or but for a dry run say what that would take."""
        import asyncio

        from jurygraph.cli.progress import progress
        from jurygraph.runs.figures.bill import requests
        from jurygraph.studies.attack.arms import asking_most

        self.study = self._study(jury)
        doing, arms = ("reckoning", asking_most(self.study.arms)) if self.dry_run else ("attacking", self.study.arms)
        with asyncio.Runner() as runner, progress(doing, len(arms) * self.study.responses, "responses") as report:
            if self.dry_run:
                self.estimate = runner.run(self.study.forecast(report))
            else:
                self.report = _judged(self.study, runner, report)
        self.requests = requests(jury)

    def _study(self, jury: "Jury") -> "AttackStudy":
        from jurygraph.errors import ConfigError
        from jurygraph.safety.attacks import load_attack_tasks, load_attacks
        from jurygraph.studies.attack.study import AttackStudy

        tasks = load_attack_tasks() if self.tasks is None else _read(self.tasks, self.files_outside)
        try:
            return AttackStudy(jury, tasks, load_attacks(self.suite.value))
        except ConfigError as error:
            raise ConfigError(f"{self.config.name}: {error}") from None


def _judged(study: "AttackStudy", runner: "asyncio.Runner", report: Callable[[int], None]) -> "AttackReport":
    from jurygraph.errors import BudgetExceeded

    try:
        return runner.run(study.run(report))
    except KeyboardInterrupt:
        say(f"interrupted; {_KEPT}")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BudgetExceeded as error:
        raise BudgetExceeded(f"{error}; {_KEPT}") from None


_KEPT = "what the cache holds is not asked again by the same command"


def _read(path: str, files_outside: bool) -> "list[tuple[Task, tuple[Response, ...]]]":
    """The tasks of a file. They need no responses: those that they have are taken for honest ones."""
    from jurygraph.schema import TaskLine
    from jurygraph.sources.fact_files import folder_of_tasks, refuse_file_outside
    from jurygraph.sources.files import TextFile, temporary_room
    from jurygraph.sources.json_lines import read_lines

    found, folder = [], None if files_outside else folder_of_tasks(path)
    with temporary_room(), closing(TextFile(path)) as file:
        for line, task in read_lines(file, TaskLine):
            refuse_file_outside(file.name, line.number, task.facts, folder)
            found.append(task.split())
    return found


def _print_forecast(study: "AttackStudy", estimate: "Estimate", as_json: bool) -> None:
    from dataclasses import asdict

    outcome.say_dry()
    counts = {"arms": len(study.arms), "responses": study.responses}
    if as_json:
        out_json({**counts, "model": asdict(estimate)})
        return
    for line in table(["to do", ""], [[name, str(count)] for name, count in counts.items()]):
        out(line)
    outcome.print_estimate(estimate)


def _print_report(sitting: _Sitting, as_json: bool) -> None:
    report, requests = sitting.report, sitting.requests
    if as_json:
        sent = None if requests is None else requests.plain()
        out_json({"suite": sitting.suite.value, **report.plain(), "requests": sent})
        return
    for line in (*_lines(report), *outcome.request_lines(requests)):
        out(line)
    if report.left_out:
        say(f"not attacked, since no model judges one response by itself there: {', '.join(report.left_out)}")


def _lines(report: "AttackReport") -> Iterator[str]:
    attacks = f"{report.responses} responses by {len(report.attacks)} attacks"
    yield f"{attacks}, and {report.honest} honest ones, to {report.tasks} tasks"
    yield "false: verdicts on attacks that passed, and attacks with such a verdict, in % (95 % interval)"
    yield f"attacks with a false verdict: {_before_and_after(report)}"
    yield ""
    yield from _by_arm(report)
    alone = [name for name in report.arms if name not in _gates()]
    yield from _by_kind(report, "false verdicts by kind, in %", alone)
    yield from _by_kind(report, "... with one gate alone", _gates())
    yield from _by_attack(report)


def _before_and_after(report: "AttackReport") -> str:
    """How many attacks fool the judge with no defence, and with the config's own."""
    before, after = report.arms["none"].attacks.responses, report.own.attacks.responses
    return f"{before.hits} of {before.n} before any defence, {after.hits} of {after.n} with the config's own"


def _by_arm(report: "AttackReport") -> list[str]:
    rows = [_arm_row(_known_as(name, report), arm) for name, arm in report.arms.items()]
    return table([*_OF_ATTACKS, *_OF_HONEST], rows)


_OF_ATTACKS = ("defences", "verdicts", "false", "responses", "false", "stopped", "failed", "abstained")
_OF_HONEST = ("honest", "passed")


def _known_as(arm: str, report: "AttackReport") -> str:
    return f"{arm} (the config's)" if arm == report.configured else arm


def _arm_row(name: str, arm: "ArmReport") -> list[str]:
    attacks, honest = arm.attacks, arm.honest
    return [
        name,
        str(attacks.verdicts.n),
        _share(attacks.verdicts),
        str(attacks.responses.n),
        _share(attacks.responses),
        *(str(sum(counts.values())) for counts in (attacks.stopped, attacks.failed)),
        str(attacks.abstained),
        str(honest.verdicts.n),
        _share(honest.verdicts),
    ]


def _gates() -> Sequence[str]:
    from jurygraph.schema import RESPONSE_GATES

    return RESPONSE_GATES


def _by_kind(report: "AttackReport", title: str, arms: Sequence[str]) -> Iterator[str]:
    columns = [report.arms[name].kinds for name in arms]
    rows = [
        [kind, str(own.verdicts.n), *(_share(column[kind].verdicts) for column in columns)]
        for kind, own in report.own.kinds.items()
    ]
    yield ""
    yield from table([title, "verdicts", *(_known_as(name, report) for name in arms)], rows)


def _by_attack(report: "AttackReport") -> Iterator[str]:
    """The attacks that the config's own defences let through, the worst first."""
    passed = sorted(
        ((name, found.verdicts) for name, found in report.own.each.items() if found.verdicts.hits),
        key=lambda one: (-(one[1].rate or 0.0), one[0]),
    )
    yield ""
    held = len(report.own.each) - len(passed)
    yield f"with the config's own defences {held} of {len(report.own.each)} attacks let nothing through"
    if passed:
        header = ["the others, the worst first", "suite", "kind", "language", "verdicts", "false"]
        yield from table(header, [_attack_row(report, *one) for one in passed[:_WORST]], left=4)
    if len(passed) > _WORST:
        yield f"... and {len(passed) - _WORST} more (--json)"


def _attack_row(report: "AttackReport", name: str, verdicts: "Proportion") -> list[str]:
    about = report.attacks[name]
    return [name, about.suite, about.kind, about.language, str(verdicts.n), _share(verdicts)]


def _share(one: "Proportion") -> str:
    """In percent, with its interval."""
    if one.rate is None or one.low is None or one.high is None:
        return "-"
    return f"{100 * one.rate:.1f} ({100 * one.low:.1f}-{100 * one.high:.1f})"


def _exit_code(report: "AttackReport", most: float, missed: bool) -> Exit:
    if report.error_rate > most:
        outcome.say_inconclusive(report.error_rate, most)
        for kind, lost in report.lost.items():
            say(f"failed verdicts: {lost} of kind {kind}")
        return Exit.INCONCLUSIVE
    return Exit.SOME_FAILED if missed else Exit.DONE
