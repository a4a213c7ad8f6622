"""`jurygraph rescore`: compute rewards from the same verdicts under other settings."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

from jurygraph.cli.options import (
    ConfigSettingsOption,
    JsonOption,
    RunFolderArgument,
    option,
)
from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.report import ReportOutputOptions
from jurygraph.cli.render.text import print_message, print_messages, progress
from jurygraph.cli.streams import redirect_stdout_to_stderr
from jurygraph.errors import InputError
from jurygraph.messages import format_count, shell_quote
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import (
    LearnedConfusionMatrices,
    RescoringResult,
    learn_confusion_matrices,
)
from jurygraph.runs.workflows.rescoring import rescore as rescore_run
from jurygraph.schema import CalibrationMethod, ScoreCalibration
from jurygraph.sources.artifacts import calibrations_to_json, confusions_to_json
from jurygraph.sources.config import apply_settings
from jurygraph.studies.report import Report, ReportTable


def rescore(
    run: RunFolderArgument,
    folder: Annotated[Path, option("RUN2", "Folder of the new run.", "-o", "--out")],
    settings: ConfigSettingsOption = None,
    learn: Annotated[
        list[str] | None,
        option(
            "COMPONENT",
            "Learn the confusions of judges in a component with combiner `consensus`; can be repeated.",
            "--learn",
        ),
    ] = None,
    calibrations: Annotated[
        list[str] | None,
        option(
            "QUESTION=LABEL",
            "Calibrate a question by labels: a file, or label.NAME; can be repeated.",
            "--calibrate",
        ),
    ] = None,
    method: Annotated[
        CalibrationMethod, option(None, "Form of the calibration.", "--map")
    ] = "platt",
    seed: Annotated[int, option("S", "Seed of the folds of --calibrate.", min=0)] = 0,
    false_positives: Annotated[
        float | None,
        option(
            "P",
            "Find the threshold that passes at most this share of what people reject.",
            min=1e-4,
            max=0.5,
        ),
    ] = None,
    artifact: Annotated[
        Path | None,
        option(
            "F", "Write the learned confusions, or the calibrations, to a JSON file.", "--artifact"
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compute a run's rewards again from its verdicts, without a request.

    The new run refers to RUN's verdicts, so keep RUN. You can set weights, rubric, criteria (`criteria.NAME.weight`),
    reward, components, panel, gates, scale, clip, failure, and the fold of evaluators (`evaluators.0.fold` is the first
    one's); values are YAML.

    `--learn` fits a consensus of a component's judges to the verdicts of the whole run (docs/consensus.md). If they are
    too few to be distinguished, their majority is used. A later config can name the artifact as `params:
    {confusions: F}` of such a component.

    `--calibrate` maps a question's scores to what people say of such responses, and uses the map in the new run
    (docs/reliability.md). Labels are those of `study judge`. The table compares each label with the map of other
    tasks. A later config can name the artifact as `calibration: F`.

    \b
    Example:
        jurygraph rescore run --out run2 --set reward.steps=0 --set failure.rule=strict
        jurygraph rescore run --out run2 --set criteria.accuracy.weight=2
        jurygraph rescore run --out run3 --learn panel --artifact panel.json
        jurygraph rescore run --out run4 --calibrate criteria@kind=people.csv --false-positives 0.05
        jurygraph compare run run2
    """
    if artifact is not None:
        if len(learn or []) + bool(calibrations) != 1:
            raise InputError(
                "--artifact: stores the confusions of one component, or calibrations; "
                "name one with --learn, or questions with --calibrate"
            )
        refuse_unwritable(artifact)
    learned_confusions = {}
    with redirect_stdout_to_stderr(), Run.open(run) as stored_run:
        config = apply_settings(stored_run.config, settings or [])
        for component in learn or []:
            with progress("learning", stored_run.tasks_scored, "tasks") as report:
                learned_confusions[component] = learn_confusion_matrices(
                    stored_run, config, component, report
                )
            config = learned_confusions[component].config
        calibration_by_question, report_by_question = _fit_calibrations(
            stored_run, calibrations or [], method, seed, false_positives
        )
        config = config.model_copy(
            update={"calibration": {**config.calibration, **calibration_by_question}}
        )
        trace_count = stored_run.ledger.count_records("trace")
        with progress("re-scoring", trace_count, "responses") as report:
            result = rescore_run(stored_run, folder, config, report)
    if artifact is not None:
        _write_artifact(artifact, calibration_by_question, learned_confusions)
    output = ReportOutputOptions(json=json)
    output.write(
        _make_rescoring_report(folder, result, learned_confusions, report_by_question.values())
    )
    if not json:
        print_message(f"compare: jurygraph compare {shell_quote(run)} {shell_quote(folder)}")


def _write_artifact(
    artifact: Path,
    calibration_by_question: Mapping[str, ScoreCalibration],
    learned_confusions: Mapping[str, LearnedConfusionMatrices],
) -> None:
    """Write the calibrations, or else the confusions, which may be none."""
    confusions = (outcome.confusions for outcome in learned_confusions.values())
    contents = [confusions_to_json(matrices) for matrices in confusions if matrices is not None]
    if calibration_by_question:
        contents = [calibrations_to_json(calibration_by_question)]
    if contents:
        write_output(artifact, contents)


def _fit_calibrations(
    run: Run,
    settings: Sequence[str],
    method: CalibrationMethod,
    seed: int,
    false_positive_rate: float | None,
) -> tuple[dict[str, ScoreCalibration], dict[str, Report]]:
    """Return, by question, the map to its labels, and the report on it."""
    calibrations: dict[str, ScoreCalibration] = {}
    reports: dict[str, Report] = {}
    if not settings:
        return calibrations, reports
    from jurygraph.studies import calibration
    from jurygraph.studies.judge import (
        join_labels_with_judgements,
        read_labels,
        unlabelled_row_notes,
    )
    from jurygraph.studies.judgements import read_judgements

    with progress("reading", run.tasks_scored, "tasks") as advance:
        # A map is of the scores that count.
        judgements = read_judgements(run, advance, superseded=False)
    for setting in settings:
        question, _, label = setting.partition("=")
        if not question or not label:
            raise InputError(
                f"--calibrate {setting!r}: expected QUESTION=LABEL, such as criteria@kind=people.csv"
            )
        labels = read_labels([label], [judgements])
        print_messages(unlabelled_row_notes(labels))
        studies = join_labels_with_judgements([judgements], labels)
        scores = calibration.labelled_scores(studies, question)
        calibrations[scores.question], reports[scores.question] = calibration.report(
            scores, method, seed, false_positive_rate
        )
    return calibrations, reports


def _make_rescoring_report(
    folder: Path,
    result: RescoringResult,
    learned_confusions: Mapping[str, LearnedConfusionMatrices],
    calibrated: Collection[Report],
) -> Report:
    confusion_reports = {
        component: _make_confusion_report(component, outcome)
        for component, outcome in learned_confusions.items()
    }
    figures = {"run": str(folder), **result._asdict()}
    if confusion_reports:
        figures["learned"] = {name: report.figures for name, report in confusion_reports.items()}
    if calibrated:
        figures["calibrated"] = [report.figures for report in calibrated]
    counts = result._asdict()
    kept = counts.pop("kept")
    rows = [[name.replace("_", " "), value] for name, value in counts.items()]
    parts = [*confusion_reports.values(), *calibrated]
    sections = chain.from_iterable(part.sections for part in parts)
    notes = [*chain.from_iterable(part.notes for part in parts)]
    if kept:
        notes.append(
            f"not decided again: {format_count(kept, 'response')} to tasks whose texts were erased; "
            "they keep their rewards, also in the mean"
        )
    return Report(figures, [ReportTable(["rewards", ""], rows), *sections], notes)


def _make_confusion_report(component: str, outcome: LearnedConfusionMatrices) -> Report:
    """Return the judges of a component whose confusions were learned, or that their majority is used."""
    figures = {
        "confusions": outcome.confusions and outcome.confusions.digest,
        "responses": outcome.responses,
        "units": outcome.units,
        "judges": outcome.judges,
        "warnings": outcome.warnings,
    }
    notes = [f"{component}: {warning}" for warning in outcome.warnings]
    if outcome.confusions is None:
        notes.append(f"{component}: the majority of the judges is used; there is no artifact")
        return Report(figures, notes=notes)
    units = "" if outcome.units == outcome.responses else f", {outcome.units} with each reviewer"
    title = f"{component}: learned from {outcome.responses} responses{units}"
    rows = [
        [name, judge.accuracy, judge.leniency, judge.strictness, judge.labels]
        for name, judge in outcome.judges.items()
    ]
    table = ReportTable(["judge", "accuracy", "leniency", "strictness", "verdicts"], rows)
    return Report(figures, [title, table], notes)
