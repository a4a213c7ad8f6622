"""`jurygraph attack`: measure a judge under attack, with and without its defences; thresholds can fail a build."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurygraph.cli.exit_codes import ExitCode
from jurygraph.cli.jury_loading import open_jury
from jurygraph.cli.options import AsJson, Conditions, DryRun, FilesOutside, MaxCalls, MaxCost, ModelName
from jurygraph.cli.render import summary
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.text import format_table, print_json, print_message, print_result_lines
from jurygraph.cli.stdout_redirect import redirect_stdout_to_stderr
from jurygraph.errors import BudgetExceeded, ConfigError

if TYPE_CHECKING:
    import asyncio

    from jurygraph.jury import Jury
    from jurygraph.runs.canary import Proportion
    from jurygraph.runs.reports.estimate import CallCosts, CallEstimate
    from jurygraph.schema import Response, Task
    from jurygraph.studies.attack.report import ArmReport, AttackReport
    from jurygraph.studies.attack.study import AttackStudy

_MAX_ATTACKS = 20
_GATE_EXAMPLE = '"rate<=0.01" or "high<=0.02, honest_rate>=0.9"'


class Suite(StrEnum):
    """The suites of attacks."""

    all = "all"
    master_keys = "master-keys"
    null = "null"
    injection = "injection"
    reference = "reference"


def attack(
    config: Annotated[Path, typer.Option(metavar="F", help="Config.")] = Path("jury.yaml"),
    suite: Annotated[Suite, typer.Option(help="Suite of attacks.")] = Suite.all,
    model: ModelName = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="TASKS", help="JSONL file of tasks, .gz too, instead of the built-in ones.", show_default=False
        ),
    ] = None,
    gate: Conditions = None,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    allow_files_outside: FilesOutside = False,
    json: AsJson = False,
) -> None:
    """Attack the config's judge, and measure its false positives.

    They are measured with each defence alone, with all and with none. An attack is a response that does nothing of what
    the task requires, or copies its reference: a model's verdict that passes it (status ok, score 0.5 or more, for
    something good) is a false positive. Honest responses are judged too, because a defence that stops everything is
    useless; those of TASKS are used as they are. Every share has a 95 % Wilson interval.

    --gate takes conditions NAME OP NUMBER, joined by `,` or `and`, on the statistics with the config's own defences:
    rate, low and high of false positives among verdicts, hits and n; the same by response (responses_rate, …) and of
    honest verdicts that passed (honest_rate, …). Replies are cached: an interrupted study continues from the cache.

    Exit codes: 0 done; 1 done, but a threshold was missed; 2 invalid config or input; 3 inconclusive: too many failures
    of infrastructure; 4 --max-cost or --max-calls reached; 130 interrupted.

    \b
    Example:
        jurygraph attack --config jury.yaml --dry-run
        jurygraph attack --config jury.yaml --suite injection --gate "high<=0.02, honest_rate>=0.9"
    """
    from jurygraph.runs.reports.gate import Thresholds
    from jurygraph.studies.attack.report import Figures

    threshold = Thresholds.parse(",".join(gate), Figures, _GATE_EXAMPLE) if gate else None
    command = _AttackCommand(config, suite, tasks, dry_run, allow_files_outside)
    with redirect_stdout_to_stderr(), open_jury(config, model, dry_run, max_cost=max_cost, max_calls=max_calls) as jury:
        command.run(jury)
    if command.estimate is not None:
        _print_forecast(command.study, command.estimate, json)
        return
    missed = [] if threshold is None else threshold.failed_thresholds(command.report.figures)
    _print_report(command, json)
    summary.print_missed_conditions(missed)
    raise typer.Exit(_exit_code(command.report, jury.config.failure.max_error_rate, bool(missed)))


class _AttackCommand:
    """One run of the command: the study, and its report or estimate."""

    study: "AttackStudy"
    report: "AttackReport"
    requests: "CallCosts | None"

    def __init__(self, config: Path, suite: Suite, tasks: str | None, dry_run: bool, files_outside: bool) -> None:
        self.config, self.suite, self.tasks, self.dry_run = config, suite, tasks, dry_run
        self.files_outside = files_outside
        self.estimate: CallEstimate | None = None

    def run(self, jury: "Jury") -> None:
        """Judge everything in every arm; in a dry run only estimate the requests."""
        import asyncio

        from jurygraph.runs.reports.estimate import count_requests
        from jurygraph.studies.attack.study import largest_arms

        self.study = self._study(jury)
        doing, arms = ("estimating", largest_arms(self.study.arms)) if self.dry_run else ("attacking", self.study.arms)
        with asyncio.Runner() as runner, progress(doing, len(arms) * self.study.responses, "responses") as report:
            if self.dry_run:
                self.estimate = runner.run(self.study.forecast(report))
            else:
                self.report = _run_study(self.study, runner, report)
        self.requests = count_requests(jury)

    def _study(self, jury: "Jury") -> "AttackStudy":
        """Create the study from the tasks and the suite of attacks. Raises ConfigError that names the config."""
        from jurygraph.safety.attacks import load_attack_tasks, load_attacks
        from jurygraph.studies.attack.study import AttackStudy

        tasks = load_attack_tasks() if self.tasks is None else _read_tasks(self.tasks, self.files_outside)
        try:
            return AttackStudy(jury, tasks, load_attacks(self.suite.value))
        except ConfigError as error:
            raise ConfigError(f"{self.config.name}: {error}") from None


def _run_study(study: "AttackStudy", runner: "asyncio.Runner", report: Callable[[int], None]) -> "AttackReport":
    try:
        return runner.run(study.run(report))
    except KeyboardInterrupt:
        print_message(f"interrupted; {_RESUME_ADVICE}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except BudgetExceeded as error:
        raise BudgetExceeded(f"{error}; {_RESUME_ADVICE}") from None


_RESUME_ADVICE = "run the same command again: it continues from the cache"


def _read_tasks(path: str, files_outside: bool) -> "list[tuple[Task, tuple[Response, ...]]]":
    """Return the tasks of a file with their responses. Responses are optional, and are treated as honest ones."""
    from jurygraph.schema import TaskLine
    from jurygraph.sources.files import TextFile, require_temporary_space
    from jurygraph.sources.json_lines import read_lines
    from jurygraph.sources.table_rows import folder_of_tasks, require_files_inside

    tasks, folder = [], None if files_outside else folder_of_tasks(path)
    with require_temporary_space(), closing(TextFile(path)) as file:
        for line, task in read_lines(file, TaskLine):
            require_files_inside(file.name, line.number, task.facts, folder)
            tasks.append(task.split())
    return tasks


def _print_forecast(study: "AttackStudy", estimate: "CallEstimate", as_json: bool) -> None:
    from dataclasses import asdict

    summary.print_dry_run_note()
    counts = {"arms": len(study.arms), "responses": study.responses}
    if as_json:
        print_json({**counts, "model": asdict(estimate)})
        return
    print_result_lines(format_table(["to judge", ""], [[name, str(count)] for name, count in counts.items()]))
    summary.print_estimate(estimate)


def _print_report(command: _AttackCommand, as_json: bool) -> None:
    report, requests = command.report, command.requests
    if as_json:
        requests_json = None if requests is None else requests.to_json()
        print_json({"suite": command.suite.value, **report.to_json(), "requests": requests_json})
        return
    print_result_lines([*_report_lines(report), *summary.request_lines(requests)])
    if report.left_out:
        print_message(f"not attacked, because no model judges a single response: {', '.join(report.left_out)}")


def _report_lines(report: "AttackReport") -> Iterator[str]:
    attacks = f"{report.responses} responses by {len(report.attacks)} attacks"
    yield f"{attacks} and {report.honest} honest responses to {report.tasks} tasks"
    yield "false: share of verdicts that pass an attack, and of attacks with such a verdict, in % (95 % interval)"
    yield f"attacks with a false verdict: {_before_and_after(report)}"
    yield ""
    yield from _arm_table(report)
    other_arms = [name for name in report.arms if name not in _gate_names()]
    yield from _kind_table(report, "false verdicts by kind, in %", other_arms)
    yield from _kind_table(report, "... with one gate alone", _gate_names())
    yield from _attack_lines(report)


def _before_and_after(report: "AttackReport") -> str:
    """Return how many attacks fool the judge with no defence, and with the config's own."""
    before, after = report.arms["none"].attacks.responses, report.configured_arm.attacks.responses
    return f"{before.hits} of {before.n} without defences, {after.hits} of {after.n} with those of the config"


def _arm_table(report: "AttackReport") -> list[str]:
    rows = [_arm_row(_arm_label(name, report), arm) for name, arm in report.arms.items()]
    return format_table([*_ATTACK_COLUMNS, *_HONEST_COLUMNS], rows)


_ATTACK_COLUMNS = ("defences", "verdicts", "false", "responses", "false", "stopped", "failed", "abstained")
_HONEST_COLUMNS = ("honest", "passed")


def _arm_label(arm: str, report: "AttackReport") -> str:
    return f"{arm} (config)" if arm == report.configured else arm


def _arm_row(name: str, arm: "ArmReport") -> list[str]:
    attacks, honest = arm.attacks, arm.honest
    return [
        name,
        str(attacks.verdicts.n),
        _percentage(attacks.verdicts),
        str(attacks.responses.n),
        _percentage(attacks.responses),
        *(str(sum(counts.values())) for counts in (attacks.stopped, attacks.failed)),
        str(attacks.abstained),
        str(honest.verdicts.n),
        _percentage(honest.verdicts),
    ]


def _gate_names() -> Sequence[str]:
    from jurygraph.schema import RESPONSE_GATES

    return RESPONSE_GATES


def _kind_table(report: "AttackReport", title: str, arms: Sequence[str]) -> Iterator[str]:
    columns = [report.arms[name].kinds for name in arms]
    rows = [
        [kind, str(own.verdicts.n), *(_percentage(column[kind].verdicts) for column in columns)]
        for kind, own in report.configured_arm.kinds.items()
    ]
    yield ""
    yield from format_table([title, "verdicts", *(_arm_label(name, report) for name in arms)], rows)


def _attack_lines(report: "AttackReport") -> Iterator[str]:
    """Return the attacks that pass the config's own defences, the worst first."""
    passed = sorted(
        (
            (name, outcome.verdicts)
            for name, outcome in report.configured_arm.by_attack.items()
            if outcome.verdicts.hits
        ),
        key=lambda item: (-(item[1].rate or 0.0), item[0]),
    )
    yield ""
    attacks = len(report.configured_arm.by_attack)
    yield f"with the defences of the config, {attacks - len(passed)} of {attacks} attacks never pass"
    if passed:
        header = ["the others, worst first", "suite", "kind", "language", "verdicts", "false"]
        yield from format_table(header, [_attack_row(report, *item) for item in passed[:_MAX_ATTACKS]], left=4)
    if len(passed) > _MAX_ATTACKS:
        yield f"... and {len(passed) - _MAX_ATTACKS} more (--json)"


def _attack_row(report: "AttackReport", name: str, verdicts: "Proportion") -> list[str]:
    attack = report.attacks[name]
    return [name, attack.suite, attack.kind, attack.language, str(verdicts.n), _percentage(verdicts)]


def _percentage(proportion: "Proportion") -> str:
    """Format a proportion in percent, with its interval."""
    if proportion.rate is None or proportion.low is None or proportion.high is None:
        return "-"
    return f"{100 * proportion.rate:.1f} ({100 * proportion.low:.1f}-{100 * proportion.high:.1f})"


def _exit_code(report: "AttackReport", most: float, missed: bool) -> ExitCode:
    if report.error_rate > most:
        summary.print_inconclusive(report.error_rate, most)
        for kind, count in report.lost.items():
            print_message(f"failed verdicts: {count} of kind {kind}")
        return ExitCode.INCONCLUSIVE
    return ExitCode.SOME_FAILED if missed else ExitCode.DONE
