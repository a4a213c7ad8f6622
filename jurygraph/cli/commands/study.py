"""`jurygraph study`: the measurements of the papers, applied to your own runs and to simulations.

A command here is a function that returns the report of its study; `make_report_command` adds the options for its forms.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jurygraph.cli.options import (
    COLUMN_OPTION_BY_RATING_FIELD,
    LABEL_COLUMN_OPTIONS,
    AgentColumnOption,
    ByLabelOption,
    ClassWordsOption,
    CommandWithSingleColumns,
    ConfigSettingsOption,
    DimensionOption,
    DryRunOption,
    GateConditionsOption,
    GroupColumnOption,
    ItemColumnOption,
    JsonOption,
    LabelFilesOption,
    MaxCallsOption,
    MaxCostOption,
    ModelNameOption,
    PlotFileOption,
    RatingsFileArgument,
    RatingsFilesArgument,
    ReviewerColumnOption,
    RunFolderArgument,
    ScoreColumnOption,
    StepLabelOption,
    argument,
    list_option_words,
    option,
    select_named_columns,
    with_people_options,
)
from jurygraph.cli.render.report import ReportOutputOptions, make_report_command, read_from_each_run
from jurygraph.cli.render.summary import print_missed_conditions
from jurygraph.cli.render.text import print_message, print_messages, progress
from jurygraph.cli.streams import ExitCode
from jurygraph.errors import InputError
from jurygraph.inference.agreement import MeasurementLevel
from jurygraph.messages import notes_on_similar_names, select_known_names, shell_quote, split_names
from jurygraph.runs.reports.gate import parse_ci_thresholds
from jurygraph.runs.run import Run
from jurygraph.sources.file_rows import NO_NAMES, NameByField
from jurygraph.sources.people import PeopleChoice
from jurygraph.sources.ratings import read_prompts, read_rating_files, read_texts
from jurygraph.sources.table_rows import find_column, read_rows
from jurygraph.studies.report import Report

if TYPE_CHECKING:
    from jurygraph.cli.scoring import ScoreOptions
    from jurygraph.schema.rating import JudgedLabel
    from jurygraph.sources.file_rows import FileRows
    from jurygraph.studies.judge import JudgeStudy
    from jurygraph.studies.judgements import RunJudgements

study = typer.Typer(
    help="Apply the measurements of the papers, to runs or simulations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
RunFoldersArgument = Annotated[list[Path], argument("RUN", "Folders of runs.")]
_GATE_OPTION_EXAMPLE = '"tpr>=0.9" or "tpr>=0.9, tnr_low>=0.8"'


def register_study_command(function: Callable[..., Report | None], **forms: Any) -> None:
    study.command(cls=CommandWithSingleColumns)(make_report_command(function, **forms))


@register_study_command
def preference(run: RunFolderArgument) -> Report:
    """Measure accuracy by category on a preference set, such as RewardBench or JudgeBench.

    A task is right if the response labelled `preferred` has a higher reward than every other response. With verdicts
    on pairs, each verdict counts for the response that it prefers, and the preferred one needs more of both orders. A
    task with a missing judgement that could change its result has failed, and never counts as right.

    Exit codes: 0 done; 2 invalid input, such as a run whose tasks have no preferred response.

    \b
    Example:
        jurygraph study preference run
        jurygraph study preference run --json
    """
    from jurygraph.studies.preference import read_comparisons, report

    return report(*read_from_each_run([run], read_comparisons))


@register_study_command
@with_people_options
def agreement(
    ratings: RatingsFilesArgument,
    item: ItemColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    score: ScoreColumnOption = None,
    agent: AgentColumnOption = None,
    group: GroupColumnOption = None,
    dimension: DimensionOption = None,
    level: Annotated[
        MeasurementLevel, option(None, "What the difference of two scores means.")
    ] = "ordinal",
    classes: ClassWordsOption = None,
    *,
    people: PeopleChoice,
) -> Report:
    """Measure how far reviewers agree, for each dimension and domain.

    Krippendorff's alpha counts every score, with a 95 % interval over items. The Jaccard similarity compares what two
    reviewers with at least 10 common items rate above their own medians, beside that of selections by chance. A
    reviewer's strictness is how far the others' scores on the same items are above the own ones. Levels: `nominal` for
    classes, which may be words, `ordinal` for a scale, `interval` for numbers whose differences count. Words on a scale
    take --classes; other questions are numbers, or yes and no.

    Exit codes: 0 done; 2 invalid input, such as ratings of which no item has two.

    \b
    Example:
        jurygraph study agreement ratings.csv
        jurygraph study agreement votes.csv --id-column id --reviewer-column who --target-column stars --level interval
        jurygraph study agreement wide.xlsx --target-column helpful,tone,harmful --classes tone=rude,neutral,kind
    """
    from jurygraph.studies.agreement import report

    columns = select_named_columns(
        item=item, reviewer=reviewer, score=score, agent=agent, group=group
    )
    options = COLUMN_OPTION_BY_RATING_FIELD
    files = read_rating_files(ratings, columns, options, people, dimension, classes, level)
    return report(files, level, bool(classes))


@register_study_command
def reliability(run: RunFolderArgument) -> Report:
    """Measure how far rewards and scores would repeat.

    The variance of the rewards is split into that between tasks and that between responses to a task; that of each
    question's scores also into that between samples of the judge, where it has several (`samples`). The report also
    has correlations, how reliable a mean of several is, and the mean reward with its interval over tasks.

    Exit codes: 0 done; 2 invalid input, such as a run with rewards of one task.

    \b
    Example:
        jurygraph study reliability run
        jurygraph study reliability run --json
    """
    from jurygraph.studies.reliability import read_scores, report

    return report(*read_from_each_run([run], read_scores))


@register_study_command
def stability(
    sources: Annotated[
        list[Path], argument("RUN", "Runs, or tables of scores; with --config, TASKS.")
    ],
    config: Annotated[
        Path | None, option("F", "Config of the judge: makes and scores the variants of TASKS.")
    ] = None,
    out: Annotated[
        Path | None, option("FOLDER", "Folder of the runs that --config makes.", "-o", "--out")
    ] = None,
    repeats: Annotated[int, option("N", "Exact repeats of each response; 1 for none.", min=1)] = 5,
    versions: Annotated[int, option("N", "Versions of each family.", min=1)] = 5,
    model: ModelNameOption = None,
    writer: Annotated[str | None, option("M", "Model that writes the four other families.")] = None,
    reader: Annotated[str | None, option("M", "Model that reads responses without `data`.")] = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    quality: Annotated[
        str | None, option("A,B", "Quality bands that count.", show_default="all")
    ] = None,
    weights: Annotated[
        Path | None, option("F", "Fixed weights: a table of task, stakeholder and weight.")
    ] = None,
    json: JsonOption = False,
) -> Report | None:
    """Measure how much of a score is wording, and whose (DecompR, Tables 1, 2, 3, 5, 9 and 10).

    Responses of a run carry the labels `seed` (the id of the response that they say in other words), `family`,
    `version`, and `quality` if there are bands; one without `family` is an original. A table has these columns, `score`
    and `stakeholders`, and may have `repeat`, `protocol`, `judge`, `task`, `weights`, `utilities` and `difficulty`.
    σ²_Sem is the variance over variants, σ²_Rep that over exact repeats of one input, Growth σ²_Sem with the most
    stakeholders over that with the fewest, and S/R σ²_Sem over σ²_Rep: 1 on average for a judge blind to wording. With
    utilities, scores are recomputed under fixed weights; with the judge's weights, their drift is measured. Intervals
    are over tasks.

    With --config, responses have structured `data` (docs/stability.md has its form), or a model reads their text
    (--reader): then variants by rule keep the response's own words. FOLDER gets the runs `variants`,
    presentations of each response in other orders and words, and `repeats`, the originals with N samples of the same
    input. Costs come first; the same command continues. A text that says something else is discarded and counted.

    Exit codes: 0 done; 2 invalid input, such as a run without variants; with --config also those of `score`.

    \b
    Example:
        jurygraph study stability tasks.jsonl --config jury.yaml --out lab --dry-run
        jurygraph study stability variants repeats --quality medium,high --weights own.csv
    """
    from jurygraph.cli.presentation_runs import PresentationModels, score_presentation_variants
    from jurygraph.cli.scoring import ScoreOptions
    from jurygraph.studies.presentations import read_presentations_of_sources, read_weights
    from jurygraph.studies.stability import measure_stability

    fixed_weights = None if weights is None else read_weights(weights)
    quality_bands = split_names(quality or None)
    if config is None:
        options_with_config = {
            "--out": out,
            "--model": model,
            "--writer": writer,
            "--reader": reader,
            "--dry-run": dry_run or None,
            "--max-cost": max_cost,
            "--max-calls": max_calls,
        }
        for name, value in options_with_config.items():
            if value is not None:
                raise InputError(
                    f"{name}: is for the variants of TASKS; name the judge's config with --config"
                )
        return measure_stability(
            read_presentations_of_sources(sources, read_from_each_run), quality_bands, fixed_weights
        )
    if len(sources) != 1 or out is None:
        raise InputError("--config: expects one file of TASKS, and --out FOLDER for the runs")
    options = ScoreOptions(
        tasks=str(sources[0]),
        run=out,
        config=config,
        model=model,
        dry_run=dry_run,
        max_cost=max_cost,
        max_calls=max_calls,
    )
    models = PresentationModels(reader, writer, options)
    presentations, runs = score_presentation_variants(models, config, repeats, versions, json)
    if not runs:
        return None
    report = measure_stability(
        read_presentations_of_sources(runs, read_from_each_run), quality_bands, fixed_weights
    )
    figures = {**report.figures, "presentations": presentations.to_json()}
    return replace(report, figures=figures, sections=[*report.sections, *presentations.tables])


@register_study_command
def signal(
    sources: Annotated[list[Path], argument("RUN", "Folders of runs, or tables of scores.")],
    protocol: Annotated[
        str | None, option("NAME", "Component to measure.", show_default="the reward")
    ] = None,
    correct: Annotated[float, option("P", "Wanted probability of a correct sign.")] = 0.9,
    cut: Annotated[float | None, option("T", "Threshold of a decision, from 1 to 10.")] = None,
) -> Report:
    """Measure whether rewards still order a group through the noise of wording (DecompR, section 4).

    Reads what `study stability` reads; a group is the responses to a task, and σ²_ξ the variance over their variants.
    SNR is Var[R] between the responses, less the noise in it, over σ²_ξ; P(correct sign) is Proposition 2's, for a
    response one standard deviation off the group's mean. Both have an interval for all groups together; those of a
    single group are of one noisy draw. Then: how many variants (not repeats) to average for the
    wanted probability; the terms of Theorem 1, where the judge gives weights and utilities; and with --cut, which
    decisions flip with the wording.

    Exit codes: 0 done; 2 invalid input, such as a run without variants.

    \b
    Example:
        jurygraph study signal run
        jurygraph study signal variants --protocol direct --cut 7 --json
    """
    from jurygraph.studies.presentations import read_presentations_of_sources
    from jurygraph.studies.stability import measure_signal_to_noise

    if not 0.5 < correct < 1.0:
        raise InputError(f"--correct: is {correct:g}; write a number between 0.5 and 1")
    return measure_signal_to_noise(
        read_presentations_of_sources(sources, read_from_each_run), protocol, correct, cut
    )


QuestionOption = Annotated[
    str | None,
    option("Q", "Question to compare, and of labels that name none; `reward` for the reward."),
]


@partial(register_study_command, title="Certificate of a judge", kinds=("html", "json"))
@with_people_options
def certify(
    runs: RunFoldersArgument,
    labels: LabelFilesOption = None,
    item: ItemColumnOption = None,
    target: ScoreColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    agent: AgentColumnOption = None,
    question: QuestionOption = None,
    classes: ClassWordsOption = None,
    attacks: Annotated[
        Path | None, option("F", "What `jurygraph attack --json` printed of this judge.")
    ] = None,
    key: Annotated[
        Path | None, option("F", "Ed25519 private key, as of `seal`, to sign the page.")
    ] = None,
    *,
    people: PeopleChoice,
    output: ReportOutputOptions,
) -> None:
    """Print one page about a judge, from the studies of its runs: Markdown, with --html a file, or with --json JSON.

    It begins with what may be concluded. It has the noise of wording and of repeats, the drift of weights, signs of
    advantages, false credit, attacks, agreement with people and the corrected mean label, coverage, how far samples
    repeat, and the votes of a jury: each figure with its interval and its command. What was not measured says so, with
    the command that would measure it. There is no page of a run whose records or texts were changed.

    Exit codes: 0 done; 2 invalid input, such as a folder that is no run; 5 a run that was changed.

    \b
    Example:
        jurygraph study certify lab/variants lab/repeats
        jurygraph study certify run --labels people.csv --attacks attacks.json --html judge.html
        jurygraph study certify run --key key.pem > judge.md
        jurygraph verify judge.md --signer public.pem
    """
    from jurygraph.runs.integrity.signed_page import sign_page
    from jurygraph.runs.integrity.verification import load_private_key
    from jurygraph.studies.certificate import PeopleStudy
    from jurygraph.studies.certificate import certify as certify_runs
    from jurygraph.studies.judge import unnamed_question_note

    if key is not None:
        if output.json:
            raise InputError("--key: signs a page of Markdown or HTML; remove --json")
        private_key = load_private_key(key)
        output = replace(output, sign=partial(sign_page, key=private_key))
    people_study = None
    if labels:
        columns = select_named_columns(id=item, target=target, reviewer=reviewer, agent=agent)
        values: dict[str, Any] = {"--labels": labels}
        values |= {LABEL_COLUMN_OPTIONS[name]: column for name, column in columns.items()}
        values |= {"--question": question, "--classes": classes, **people.value_by_option}
        words = ["jurygraph", "study", "judge", *map(str, runs), *list_option_words(values)]

        def join(judged: "Sequence[RunJudgements]") -> "list[JudgeStudy]":
            people_labels, studies = _join_labels(
                judged, labels, columns, people, question, classes
            )
            note = unnamed_question_note(people_labels, studies, question)
            if note is not None:
                raise InputError(f"{people_labels.path}: {note}")
            return studies

        people_study = PeopleStudy(" ".join(map(shell_quote, words)), join, labels)
    report = certify_runs(runs, read_from_each_run, people_study, attacks)
    if key is not None:
        signer = private_key.public_key().public_bytes_raw().hex()
        line = (
            f"signed by the Ed25519 key {signer}; whether the page was changed since, "
            "`jurygraph verify PAGE --signer KEY` tells, with the key from its owner and not from here"
        )
        report.sections = [*report.sections, line]
    replace(output, markdown=not output.json).write(report)


def _join_labels(
    judged: "Sequence[RunJudgements]",
    labels: Sequence[str],
    columns: Mapping[str, str],
    people: PeopleChoice,
    question: str | None,
    classes: Sequence[str] | None,
    split: str | None = None,
    consensus: bool = False,
    should_leave_out_unknown: bool = False,
) -> "tuple[FileRows[JudgedLabel], list[JudgeStudy]]":
    """Return the labels of people, and the judges of runs with them; labels of other responses are an error unless
    they are to be left out."""
    from jurygraph.studies.judge import join_labels_with_judgements, read_labels
    from jurygraph.studies.judgements import leave_out_unknown_responses

    people_labels = read_labels(
        labels, judged, columns, LABEL_COLUMN_OPTIONS, question, classes, people
    )
    if should_leave_out_unknown:
        people_labels, notes = leave_out_unknown_responses(judged, people_labels)
        print_messages(notes)
    studies = join_labels_with_judgements(judged, people_labels, split, consensus, question)
    return people_labels, studies


@partial(register_study_command, title="Judges and people")
@with_people_options
def judge(
    runs: RunFoldersArgument,
    labels: LabelFilesOption = None,
    item: ItemColumnOption = None,
    target: ScoreColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    agent: AgentColumnOption = None,
    question: QuestionOption = None,
    classes: ClassWordsOption = None,
    split: Annotated[str | None, option("S", "Use the labels of this split only.")] = None,
    consensus: Annotated[
        bool,
        option(
            None, "Compare with the consensus of several people, not their majority.", "--consensus"
        ),
    ] = False,
    need: Annotated[
        float | None, option("W", "Half-width of the mean label, to count its labels.", min=1e-6)
    ] = None,
    epsilon: Annotated[
        float,
        option("E", "What a judge may be worse than a person; 0.2 for experts.", min=0, max=1),
    ] = 0.1,
    gate: GateConditionsOption = None,
    all_tables: Annotated[bool, option(None, "Print all tables.", "--all")] = False,
    *,
    people: PeopleChoice,
    output: ReportOutputOptions,
) -> None:
    """Measure judges against people.

    A row of the labels has `id` (a response) and `target` (true, false, or a number in the judge's units), and may have
    `question` (or `dimension`; its last part is enough; `reward` is the reward), `reviewer` and `split`. Labels on
    another scale, such as 1 to 5 for a criterion that is met or not, are compared by their order. With `other` it is of
    a pair: 1 if `id` is better, 0 if `other` is, 0.5 for a tie. Where each question has a column, --target-column takes
    all, each as COLUMN (called by the question's last part), QUESTION=COLUMN or PERSON:QUESTION=COLUMN.

    A judge is a question with its evaluator and model, and so are several models as folded, a jury. First stands who
    predicts the labels best, and the judges of each jury. With --all, --json, --markdown or --html, follow: a constant
    and the length of the response, each jury beside its judges, and without each of them (intervals
    allow for their number), confusions, accuracy (of numbers: distance) by agent, domain and length, calibration, the
    mean label as the judge gives it and corrected (PPI++, Rogan-Gladen), paired differences of judges (Holm), and the
    disagreements, worst first.
    Where three persons are named (`reviewer`), it is tested whether the judge is as near to the others as a
    person is. Intervals are over tasks. Responses without a judgement are counted apart; the table of all questions
    and that test take them as the reward counts them. No request is sent, and nothing is written.

    --gate takes conditions NAME OP NUMBER, joined by `,` or `and`, that every judge must meet: n, missing, failed,
    abstained, unsupported, accuracy, distance, tpr, tnr, kappa, rank_correlation, pairwise, bias, flips, strict (of
    pairs in both orders; each also with _low and _high), brier, ece. A statistic that is missing fails.

    Exit codes: 0 done; 1 done, but a threshold was missed; 2 invalid input, such as labels of unknown responses alone.

    \b
    Example:
        jurygraph study judge run --labels people.csv
        jurygraph study judge run --labels wide.csv --target-column helpful,tone=mood --classes tone=rude,plain,kind
        jurygraph study judge run --labels label.gold --need 0.02 --gate "tpr>=0.9, tnr>=0.9"
    """
    from jurygraph.studies import judge as judge_study
    from jurygraph.studies import judge_report
    from jurygraph.studies.judgements import read_judgements

    if not labels:
        hint = "name a file, or label.NAME of the runs"
        if target is not None and Path(target).is_file():
            hint = f"did you mean --labels {shell_quote(target)}?"
        raise InputError(f"--labels: is missing; {hint}")
    thresholds = parse_ci_thresholds(gate, judge_report.GATE_STATISTIC_NAMES, _GATE_OPTION_EXAMPLE)
    judged = read_from_each_run(runs, read_judgements)
    columns = select_named_columns(id=item, target=target, reviewer=reviewer, agent=agent)
    people_labels, studies = _join_labels(
        judged,
        labels,
        columns,
        people,
        question,
        classes,
        split,
        consensus,
        should_leave_out_unknown=True,
    )
    notes = judge_study.unlabelled_row_notes(people_labels)
    notes += judge_study.unpredicted_label_notes(judged, people_labels)
    notes += notes_on_similar_names(label.reviewer or "" for _, label in people_labels.rows)
    note = judge_study.unnamed_question_note(people_labels, studies, question)
    notes += [note] if note else []
    report = judge_report.report(studies, need, epsilon, notes, judged)
    if all_tables or output.json or output.markdown:
        output.write(report)
    else:
        output.write_report_files(report)
        replace(output, html=None, plot=None).write(judge_report.shorten(report))
    exit_code = ExitCode.SUCCESS
    for row in report.figures["judges"]:
        if print_missed_conditions(thresholds, judge_report.gate_values(row), row["judge"]):
            exit_code = ExitCode.SOME_FAILED
    raise typer.Exit(exit_code)


@register_study_command
def simulate(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART",
            help="Sweeps to simulate: labels, gaps, adversarial, strict, lenient, hard; or decompr.",
            show_default="all",
        ),
    ] = None,
    seeds: Annotated[int, option("N", "Evaluations of each configuration.", min=1)] = 100,
    seed: Annotated[int, option("S", "The first seed; the others follow it.", min=0)] = 0,
) -> Report:
    """Simulate annotators and measure what is recovered (STABLEVAL, Tables 4, 6 and 7).

    A sweep varies one property: labels of an item, gaps between agents, the pool of annotators, or hard items. Majority
    vote, hard Dawid-Skene and posterior expected credit are compared with the truth. Each mean has its standard error
    in parentheses, and the paper's number follows. `decompr` is DecompR's theory instead: the terms of Theorem 1 and
    Proposition 1 for a judge whose noise is known, Proposition 2 with the paper's numbers, the SNR by the number of
    stakeholders (Eq. 35), and what the mean of several calls leaves (B.3).

    Exit codes: 0 done; 2 invalid input, such as an unknown part.

    \b
    Example:
        jurygraph study simulate labels hard --seeds 10
        jurygraph study simulate decompr --seeds 20
    """
    from jurygraph.studies.simulate import SIMULATION_NAMES, count_evaluations, report

    chosen = select_known_names("unknown part", parts or SIMULATION_NAMES, SIMULATION_NAMES)
    all_seeds = range(seed, seed + seeds)
    with progress("simulating", count_evaluations(chosen, all_seeds), "evaluations") as advance:
        return report(chosen, all_seeds, advance)


@register_study_command
def disagreement(
    runs: RunFoldersArgument,
    components: Annotated[
        str | None,
        option(
            "A,B", "Components to compare.", show_default="accuracy,format,steps, or all that count"
        ),
    ] = None,
    step_label: StepLabelOption = None,
    every: Annotated[int | None, option("N", "Group into steps of N tasks.", min=1)] = None,
    plot: PlotFileOption = None,
) -> Report:
    """Measure where a reward's components disagree (MACRM, 4.5).

    D_pair is the mean absolute difference between the components of a response. A response above the 80th percentile
    of its own run is a conflict; the 20 % of responses with the largest D_pair are compared with the rest. With steps,
    mean reward, mean D_pair and conflict rate are reported by step.

    Exit codes: 0 done; 2 invalid input, such as a run with fewer than two components.

    \b
    Example:
        jurygraph study disagreement run
        jurygraph study disagreement macrm multi-head --step-label step --plot disagreement.svg
    """
    from jurygraph.studies.disagreement import collect_component_samples, report

    if step_label is not None and every is not None:
        raise InputError(
            "--step-label and --every: each cuts a run into steps; leave one of them out"
        )
    if plot is not None and step_label is None and every is None:
        raise InputError("--plot: the plot needs steps; add --step-label or --every")
    read = partial(
        collect_component_samples,
        components=split_names(components),
        step_label=step_label,
        every=every,
    )
    return report(read_from_each_run(runs, read))


@register_study_command
def credit(run: RunFolderArgument) -> Report:
    """Measure false credit over the edges of rubrics (GEAR).

    A criterion that is met while its parent is not is a leakage case; the credit that a rule leaves it, as a share of
    the rubric's total weight, is leakage. If both are met, the remaining share of the child's own score is
    preservation. Flat aggregation, both hard gates and GEAR are compared on the run's verdicts, with 95 % intervals
    over tasks; then random and untyped graphs, and values of κ. The criteria with the largest losses come last.

    Exit codes: 0 done; 2 invalid input, such as a run without a rubric that has edges.

    \b
    Example:
        jurygraph study credit run
        jurygraph study credit run --plot credit.svg
    """
    from jurygraph.studies.credit import read_rubric_scores, report

    (sheets,) = read_from_each_run([run], read_rubric_scores)
    return report(sheets)


@register_study_command
def ranking(
    run: RunFolderArgument, by: ByLabelOption = None, settings: ConfigSettingsOption = None
) -> Report:
    """Measure how far the order of the agents is from turning.

    By which components the best is ahead of each other. For each two agents that follow each other: whether their
    difference is larger than chance, by its 95 % interval over the tasks that both have; and the smallest change of a
    single setting (a weight, kappa, tau, a gate) that makes them change places. What each reviewer or stakeholder gets
    from each agent, and who pays for the choice of the best. The run is decided again from its verdicts, as `rescore`
    does, without a request. --set tries settings beforehand. --by LABEL compares the best two agents in each value of a
    label, such as a column of the table.

    Exit codes: 0 done; 2 invalid input, such as a setting that changes the questions.

    \b
    Example:
        jurygraph study ranking run
        jurygraph study ranking run --by language
        jurygraph study ranking run --set rubric.kappa=2 --json
    """
    from jurygraph.runs.workflows.deciding import read_packed_groups
    from jurygraph.studies.ranking import (
        RELATIVE_CHANGE_SIZES,
        AgentRanker,
        add_label,
        measure_ranking,
    )
    from jurygraph.views.labels import compare_by_label

    if by is not None and settings:
        raise InputError("--by shows rewards as they are; leave out --set, or rescore the run")
    with Run.open(run) as opened_run:
        with progress("reading", opened_run.tasks_scored, "tasks") as advance:
            ranker = AgentRanker(opened_run, read_packed_groups(opened_run, advance))
        with progress("searching", len(RELATIVE_CHANGE_SIZES), "sizes of a change") as advance:
            report = measure_ranking(ranker, settings or [], advance)
        return report if by is None else add_label(report, compare_by_label(opened_run, by))


@partial(register_study_command, title="How near judges are to each reviewer")
def reviewers(
    ratings: RatingsFileArgument,
    items: Annotated[
        Path | None, option("TEXTS", "File with the items' texts, if RATINGS has none.")
    ] = None,
    judges: Annotated[
        str | None, option("A,B", "Judges to compare.", show_default="all that need no model")
    ] = None,
    shots: Annotated[str, option("N,M", "Numbers of examples.")] = "0,1,2,5,10",
    seeds: Annotated[int, option("N", "Draws of examples.", min=1)] = 3,
    run: Annotated[
        list[Path] | None, option("RUN", "Run with judges of reviewers; repeat it for several.")
    ] = None,
    min_confidence: Annotated[
        float | None,
        option(
            "C",
            "Leave out less confident answers, 0 to 100.",
            min=0,
            max=100,
            show_default="as the runs do; of --out, as the config",
        ),
    ] = None,
    out: Annotated[
        Path | None, option("DIR", "Folder for runs of the judges with a model.", "-o", "--out")
    ] = None,
    model: Annotated[str | None, option("M", "Model of these runs.")] = None,
    config: Annotated[
        Path | None, option("F", "Config of these runs, with a judge of reviewers.")
    ] = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    max_calls: MaxCallsOption = None,
    embedder: Annotated[
        str | None, option("E", "Embedder of texts.", show_default="TF-IDF")
    ] = None,
    item: ItemColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    score: ScoreColumnOption = None,
    agent: AgentColumnOption = None,
    level: Annotated[
        Literal["ordinal", "interval"],
        option(None, "What the difference of two scores means."),
    ] = "ordinal",
    all_tables: Annotated[bool, option(None, "Print the tables of detail, too.", "--all")] = False,
    json: JsonOption = False,
) -> Report | None:
    """Measure how well judges predict each reviewer's scores, and whether a judge for each reviewer is worth it.

    Every score is predicted from other ratings: never from one of the judged item or its group. `own-history` is the
    mean of the reviewer's own scores, and `neighbours` that of the own scores of the items with the most similar texts.
    `item-mean` and `rater-offset` use what others gave the item: their mean, and that mean with the reviewer's usual
    distance from it. None of the four needs a model. The predictions of `zero-shot`, `aggregate` and `personalized` are
    taken from scored runs (--run), whose responses have the ids of the rated items, or of runs made for the study
    (--judges with --model and --out): one for each judge, number of examples and seed. What they cost is printed first;
    the same command continues them. Dimensions are described as in --config, or else by their names.

    Exit codes: 0 done; 2 invalid input; 3 the model could not be reached; 4 budget reached; 130 interrupted.

    \b
    Example:
        jurygraph study reviewers ratings.csv --items texts.jsonl
        jurygraph study reviewers votes.csv --id-column id --judges item-mean,rater-offset --json
        jurygraph study reviewers ratings.csv --run scored --min-confidence 0
        jurygraph study reviewers ratings.csv --judges zero-shot,personalized --model M --out runs --dry-run
    """
    from jurygraph.cli.jury_loading import describe_rare_majority
    from jurygraph.cli.scoring import ScoreOptions
    from jurygraph.schema.config import PanelConfig
    from jurygraph.sources import read_config
    from jurygraph.studies.reviewers import MODEL_JUDGES, find_judge_of_reviewers

    if min_confidence is not None and 0.0 < min_confidence < 1.0:
        raise InputError(
            f"--min-confidence: is {min_confidence:g} of 100; write {100 * min_confidence:g} for the share "
            f"{min_confidence:g}"
        )
    columns = select_named_columns(item=item, reviewer=reviewer, score=score, agent=agent)
    panel = PanelConfig()
    if config is not None:
        study_config = read_config(config)
        history: Any = find_judge_of_reviewers(study_config).params
        columns = {**history.get("columns", {}), **columns}
        panel = study_config.panel
    votes = {}
    if out is not None:
        votes = panel.model_dump(include={"min_confidence", "reduce", "vote"})
    if min_confidence is not None:
        votes["min_confidence"] = min_confidence / 100.0
    study = _ReviewerStudy(
        ratings=ratings,
        items=items,
        columns=columns,
        judges=judges,
        shots=shots,
        seeds=seeds,
        has_runs=bool(run),
    )
    options = ScoreOptions(
        tasks="",  # each run has its own
        run=out or Path(),
        config=config,
        model=model,
        dry_run=dry_run,
        max_cost=max_cost,
        max_calls=max_calls,
    )
    # the runs have no panel of their own, and this one counts when they are read
    unfit_notes = map(describe_rare_majority, MODEL_JUDGES if panel.reduce != "majority" else ())
    study_runs = study.score(options, out is not None, json, unfit_notes)
    if dry_run:
        return None
    return study.report(
        [*(run or ()), *study_runs],
        panel=votes,
        embedder=embedder,
        level=level,
        all_tables=all_tables,
    )


class _ReviewerStudy:
    """The ratings, the judges to compare, and the runs of those that ask a model. Raises `InputError`."""

    def __init__(
        self,
        ratings: Path,
        items: Path | None,
        columns: NameByField,
        judges: str | None,
        shots: str,
        seeds: int,
        has_runs: bool,
    ) -> None:
        from jurygraph.studies.agreement import read_parts
        from jurygraph.studies.reviewers import plan_runs, texts_of

        rating_columns = {name: column for name, column in columns.items() if name != "prompt"}
        (self._file,) = read_rating_files([ratings], rating_columns, COLUMN_OPTION_BY_RATING_FIELD)
        item_texts = {} if items is None else read_texts(items)
        self._texts = texts_of(self._file, item_texts)
        self._shots = [_parse_count(count) for count in split_names(shots)]
        self._seeds = seeds
        self._judges = _choose_compared_judges(judges, has_runs, has_runs or bool(self._texts))
        self._parts = read_parts([self._file], repeat_remedy="keep one of the scores")
        self._designs = plan_runs(self._judges, self._shots, seeds)
        self._prompts: dict[str, str] = {}
        for path, names in ((items, NO_NAMES), (ratings, columns)):
            if not self._designs or path is None:
                continue
            prompt = names.get("prompt", "prompt")
            if any(find_column(prompt, row) for _, row in read_rows(path)):
                self._prompts |= read_prompts(path, {**names, "prompt": prompt})
        source = {"history": str(ratings), "texts": items and str(items), "columns": columns}
        self._source = {name: value for name, value in source.items() if value}

    def score(
        self,
        options: "ScoreOptions",
        has_output_folder: bool,
        as_json: bool,
        unfit_notes: Iterable[str],
    ) -> list[Path]:
        """Score the runs of the judges with a model, and return them; none in a dry run."""
        from jurygraph.cli.scoring import StudyRun, score_study
        from jurygraph.studies.reviewers import default_config, task_lines

        if not self._designs:
            if options.dry_run or has_output_folder:
                raise InputError(
                    "--out and --dry-run: are for judges with a model; name some with --judges"
                )
            return []
        problem = f"--judges {self._designs[0].judge}: asks a model"
        if not has_output_folder and not options.dry_run:
            raise InputError(f"{problem}; name a folder for its runs with --out")
        if options.model is None and options.config is None:
            raise InputError(f"{problem}; name it with --model")
        tasks = task_lines(self._file, self._texts, self._prompts)
        has_question = [
            task["query"] != "" for task in map(loads, tasks) for _ in task["responses"]
        ]
        print_message(
            f"judges will see a question (`prompt`) with {sum(has_question)} of {len(has_question)} texts that they "
            "judge"
        )
        runs = [
            StudyRun(design.name, tasks, partial(design.revise, source=self._source))
            for design in self._designs
        ]
        with TemporaryDirectory() as folder:
            if options.config is None:
                path = Path(folder, "jury.yaml")
                path.write_text(dumps(default_config(self._parts)), encoding="utf-8")
                options = replace(options, config=path)
            return score_study(options.run, runs, options, as_json, unfit_notes)

    def report(
        self,
        run_folders: Sequence[Path],
        panel: dict[str, Any],
        embedder: str | None,
        level: MeasurementLevel,
        all_tables: bool,
    ) -> Report:
        """Compare the judges without a model and those of the runs, whose panels the settings of `panel` replace."""
        from jurygraph.models.embedding import open_embedder
        from jurygraph.studies.reasons import EmbeddedTexts, tf_idf
        from jurygraph.studies.reviewers import (
            join_runs,
            predict_after,
            read_earlier_ratings,
            read_run,
            refuse_unlike_runs,
            texts_of,
        )
        from jurygraph.studies.reviewers import report as compare_judges

        read_predictions = partial(read_run, panel=panel)
        runs = list(chain.from_iterable(read_from_each_run(run_folders, read_predictions)))
        ratings = self._file
        parts = self._parts
        refuse_unlike_runs(runs, ratings, parts)
        joined_predictions = join_runs(runs, parts)
        judged_texts = texts_of(ratings, ChainMap(self._texts, *(run.texts for run in runs)))
        earlier = read_earlier_ratings(runs, ratings, judged_texts)
        texts = {example.key: example.text for example in earlier} | judged_texts
        with progress("embedding", len(texts), "texts") as advance:
            vectorize = (
                tf_idf if embedder is None else EmbeddedTexts(open_embedder(embedder), advance)
            )
            settings = (self._judges, self._shots, self._seeds, texts, vectorize)
            predictions_by_part = [
                (part, [*predict_after(earlier, ratings, part, *settings), *predictions_from_runs])
                for part, predictions_from_runs in zip(parts, joined_predictions, strict=True)
            ]
            next_steps = self._next_steps(run_folders[-1]) if run_folders else ()
            return compare_judges(predictions_by_part, level, vectorize, next_steps, all_tables)

    def _next_steps(self, folder: Path) -> Iterator[str]:
        labels = shell_quote(self._file.path)
        for field in ("item", "reviewer", "score"):
            column = shell_quote(self._file.columns[field])
            labels += f" {COLUMN_OPTION_BY_RATING_FIELD[field]} {column}"
        yield f"next: jurygraph study judge {shell_quote(folder)} --labels {labels}"
        yield "next, with a run of new responses (who pays): jurygraph study ranking RUN"
        yield "next (how far off): this with --json > study.json; jurygraph export RUN -o F.xlsx --study study.json"


def _choose_compared_judges(judges: str | None, has_runs: bool, has_texts: bool) -> Sequence[str]:
    """Return the judges to compare, with the own mean, which one with a model has to beat."""
    from jurygraph.studies.reviewer_tables import BASELINES_WITHOUT_MODEL
    from jurygraph.studies.reviewers import MODEL_JUDGES

    if judges is None:
        return [name for name in BASELINES_WITHOUT_MODEL if has_texts or name != "neighbours"]
    names = select_known_names(
        "--judges: unknown judge", split_names(judges), (*BASELINES_WITHOUT_MODEL, *MODEL_JUDGES)
    )
    if "neighbours" in names and not has_texts:
        raise InputError("--judges neighbours: compares texts; name a file of them with --items")
    if has_runs or not {*names}.isdisjoint(MODEL_JUDGES):
        return [*names, "own-history"]
    return names


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise InputError(
            f"--shots: {text!r} is not a number of examples; write numbers such as 0,1,2,5,10"
        )
    return int(text)
