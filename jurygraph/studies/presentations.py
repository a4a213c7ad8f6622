"""Presentations of responses: tasks of them, and their scores, read from runs with labels of family, or a table.

Fixed weightings of stakeholders are applied to utilities that were estimated once (DecompR section 6.1, Table 5).
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from pydantic import Field, model_validator

from jurygraph.agents.checks.spec import find_tensions
from jurygraph.agents.presentation.prose import (
    Prose,
    keep_faithful_variants,
    make_prose_presentations,
    read_prose,
)
from jurygraph.agents.presentation.rewrites import rewrite_data, rewrite_statements
from jurygraph.agents.presentation.variants import PresentationSet, data_to_document, present
from jurygraph.agents.registry import load_evaluators
from jurygraph.aggregation import stakeholders
from jurygraph.aggregation.stakeholders import SUM_TOLERANCE
from jurygraph.concurrency import gather_all
from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import compute_rewards
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError, PlanError
from jurygraph.messages import quote, shorten
from jurygraph.runs.run import Run
from jurygraph.schema import (
    Config,
    FrozenModel,
    Response,
    Reward,
    Task,
    TaskLine,
    TaskView,
    Trace,
    WeightsConfig,
)
from jurygraph.schema.frozen_model import Count, Id, JsonFields, LongId, Number, UnitInterval
from jurygraph.sources.files import refuse_repeated_sources
from jurygraph.sources.ratings import read_validated_rows
from jurygraph.sources.user_modules import FolderModules, importing_from
from jurygraph.studies.report import Report, ReportTable

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient


T = TypeVar("T")
ORIGINAL_FAMILY = "original"
REPEAT_FAMILY = "repeat"
FAMILIES_OF_UNCHANGED_INPUTS = (ORIGINAL_FAMILY, REPEAT_FAMILY)
"""Families whose inputs are the response as it is; every other family is one of variants."""
REWARD_PROTOCOL = "reward"


_NumberByStakeholder = dict[Id, Number]


class PresentationScore(FrozenModel):
    """The score of one presentation of a response.

    `seed` is the id of the response of which it is a presentation, and `task` the cluster of units for intervals;
    `family` is that of the variant, `original` for the response as it is, or `repeat` for an exact repeat of it, and
    `repeat` numbers the scores of one input. `weights` are those that the judge gave, `utilities` û_i, and `difficulty`
    d_i, by stakeholder. Scores and utilities are on the scale from 1 to 10.
    """

    json_columns: ClassVar = frozenset(
        {"stakeholders", "repeat", "weights", "utilities", "difficulty"}
    )

    seed: LongId
    score: Number
    family: Id
    stakeholders: Count
    version: str | int = "0"
    repeat: Count = 0
    protocol: Id = "score"
    judge: str = "judge"
    quality: str = "-"
    task: LongId | None = None
    weights: _NumberByStakeholder = Field(default_factory=dict)
    utilities: _NumberByStakeholder = Field(default_factory=dict)
    difficulty: _NumberByStakeholder = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_utilities(self) -> Self:
        if self.weights and self.weights.keys() != self.utilities.keys():
            raise ValueError(
                "`weights` are of other stakeholders than `utilities`; give one of each for everybody"
            )
        return self

    @property
    def is_variant(self) -> bool:
        """Return False for the response as it is."""
        return self.family not in FAMILIES_OF_UNCHANGED_INPUTS

    @property
    def unit(self) -> tuple[str, str]:
        """Return the key of the unit s among the scores of a protocol."""
        return self.judge, self.seed

    @property
    def input(self) -> tuple[str, str]:
        """Return the key of the judge's input within the unit: scores of one input are exact repeats."""
        return (self.family, str(self.version)) if self.is_variant else (ORIGINAL_FAMILY, "")


class Presentations(FrozenModel):
    """Scores of presentations, and the number of those left out, by reason."""

    sources: tuple[str, ...]
    rows: tuple[PresentationScore, ...]
    left_out: dict[str, int] = Field(default_factory=dict)


RunsReader = Callable[[Sequence[Path], Callable[[Run, ProgressCallback], Any]], list[Any]]
"""A function that opens runs, and returns what another one reads of each; it shows the progress."""


def read_presentations_of_sources(sources: Sequence[Path], read_runs: RunsReader) -> Presentations:
    """Return the scores of runs, which are folders, and of tables together.

    Raises InputError as `read_presentation_scores` and `read_run` do, and for a source that is named twice.
    """
    refuse_repeated_sources(sources)
    rows: list[PresentationScore] = []
    left_out = Counter[str]()
    for source in sources:
        if source.is_dir():
            (presentations,) = read_runs([source], read_run)
        else:
            presentations = read_presentation_scores(source)
        rows += presentations.rows
        left_out.update(presentations.left_out)
    return Presentations(sources=tuple(map(str, sources)), rows=tuple(rows), left_out=left_out)


def read_presentation_scores(path: Path) -> Presentations:
    """Read a table of scores: CSV, JSONL or Parquet with the fields of `PresentationScore` as columns.

    In CSV, the columns `weights`, `utilities` and `difficulty` hold JSON objects. Raises InputError with file, line and
    field.
    """
    rows = tuple(row for _, row in read_validated_rows(path, PresentationScore).rows)
    return Presentations(sources=(str(path),), rows=rows)


def read_run(run: Run, advance: ProgressCallback = ignore_progress) -> Presentations:
    """Return the scores of a run whose responses have the labels `family`, `version` and `seed`, and `quality`.

    A response without the label `family` is an original. The protocols are the reward, unless it is one component, and
    each of its components, all on the scale from 1 to 10. Where questions have several samples of the identical input
    (`rotate: false`), each sample is a repeat: the reward is recomputed from that sample alone. Left out and counted
    are failed rewards.

    Raises TraceMismatch where a record of the run has been changed, and InputError where its texts were erased.
    """
    combiners = run.load_combiners()
    rows: list[PresentationScore] = []
    left_out = Counter[str]()
    for record in run.group_records():
        traces = [trace for trace, _ in run.group(record)]
        if traces:
            rows += _presentation_scores_of_group(run, traces, combiners, left_out)
        advance(1)
    scores = tuple(_drop_reward_equal_to_component(rows))
    return Presentations(sources=(str(run.folder),), rows=scores, left_out=left_out)


def _drop_reward_equal_to_component(
    rows: Sequence[PresentationScore],
) -> Sequence[PresentationScore]:
    """Return the scores without the reward where it is one component throughout; that component comes first."""
    scores = defaultdict(list)
    for row in rows:
        scores[row.protocol].append(row.score)
    rewards = scores.pop(REWARD_PROTOCOL, None)
    reward_equal_protocol = next((name for name in scores if scores[name] == rewards), None)
    if reward_equal_protocol is None:
        return rows
    components = [row for row in rows if row.protocol != REWARD_PROTOCOL]
    return sorted(components, key=lambda row: row.protocol != reward_equal_protocol)


def _presentation_scores_of_group(
    run: Run, traces: Sequence[Trace], combiners: Combiners, left_out: Counter[str]
) -> Iterator[PresentationScore]:
    task_id = traces[0].task_id
    task = run.task_with_planning_results(task_id)
    if task is None:
        raise InputError(
            f"{run.folder}: the texts of task {task_id!r} were erased, its stakeholders with them"
        )
    people = sorted(person.id for person in task.stakeholders)
    difficulty = difficulty_by_stakeholder(task, run.config.weights)
    judge = str(run.config.model)
    qualities = {trace.response_id: trace.labels.get("quality", "-") for trace in traces}
    for repeat, rewards in enumerate(_rewards_by_repeat(run, traces, combiners)):
        for trace, reward in zip(traces, rewards, strict=True):
            if reward.value is None:
                left_out["presentations whose reward failed"] += 1
                continue
            labels = trace.labels
            seed = str(labels.get("seed", trace.response_id))
            common = {
                "seed": seed,
                "family": str(labels.get("family", ORIGINAL_FAMILY)),
                "version": str(labels.get("version", "0")),
                "quality": str(labels.get("quality", qualities.get(seed, "-"))),
                "stakeholders": len(people),
                "difficulty": difficulty,
                "repeat": repeat,
                "judge": judge,
                "task": task_id,
            }
            for name, value in {REWARD_PROTOCOL: reward.value, **reward.components}.items():
                if value is None:
                    left_out[f"presentations without a score of {name}"] += 1
                    continue
                fields = _utilities_and_weights(reward, name, people)
                score = _to_native_scale(value)
                yield PresentationScore(protocol=name, score=score, **common, **fields)


def _to_native_scale(value: float) -> float:
    """Return a value in [0, 1] on the native scale from 1 to 10: 1 + 9 · value, as in A.2."""
    return 1.0 + 9.0 * value


def _utilities_and_weights(
    reward: Reward, component: str, people: Sequence[str]
) -> dict[str, JsonFields]:
    """Return û_i on the scale from 1 to 10, if there is one of each person, and the judge's weights, if any."""
    parts = reward.parts.get(component, {})
    if not people or not parts.keys() >= set(people):
        return {}
    fields = {"utilities": {person: _to_native_scale(parts[person]) for person in people}}
    figures = reward.diagnostics.get(component, {})
    weights = {person: figures.get(f"weight of {person}") for person in people}
    return fields if None in weights.values() else {**fields, "weights": weights}


def _rewards_by_repeat(
    run: Run, traces: Sequence[Trace], combiners: Combiners
) -> Iterator[Sequence[Reward]]:
    """Yield the rewards of a group by each exact repeat alone; those of the run itself where nothing is repeated."""
    survey = run.survey_without_texts_of(traces[0].task_id)
    samples = {}
    questions = []
    for question in survey.questions:
        # samples that are answers to the identical input
        if question.samples > 1 and question.params.get("rotate") is False:
            samples[question.id] = question.samples
            question = question.model_copy(update={"samples": 1})
        questions.append(question)
    if not samples:
        yield [trace.reward for trace in traces]
        return
    # a pair's verdict is in two traces
    verdicts = {}
    for trace in traces:
        for verdict in trace.verdicts:
            verdicts[verdict.key] = verdict
    names = [trace.response_id for trace in traces]
    decision = run.decision_of(traces[0].task_id)
    for repeat in range(max(samples.values())):
        chosen = []
        for verdict in verdicts.values():
            if verdict.question not in samples:
                chosen.append(verdict)
            # of a question with fewer samples, the last one again
            elif verdict.sample == min(repeat, samples[verdict.question] - 1):
                chosen.append(verdict.model_copy(update={"sample": 0}))
        yield compute_rewards(decision, questions, names, chosen, combiners)


PAPER_TAUS = (3.0, 5.0, 8.0)
"""τ of DecompR's Table 5."""
UNIFORM_WEIGHTS_NAME = "uniform"


class StakeholderWeight(FrozenModel):
    json_columns: ClassVar = frozenset({"weight"})

    task: LongId
    stakeholder: Id
    weight: UnitInterval


class StakeholderWeightsFromFile(NamedTuple):
    """The weights of a file, by task and stakeholder."""

    name: str
    weights_by_task: Mapping[str, Mapping[str, float]]


def difficulty_by_stakeholder(task: Task, config: WeightsConfig) -> dict[str, float]:
    """Return d_i by stakeholder (DecompR Eq. 9) with the discounts of a config; empty where a profile is text alone."""
    calibrated = config.model_copy(update={"method": "calibrated", "fixed": {}})
    try:
        _, terms = weigh_stakeholders(task, calibrated, ("stakeholder",), find_tensions)
    except PlanError:
        return {}
    return {person: term["difficulty"] for person, term in terms.items()}


def read_weights(path: Path) -> StakeholderWeightsFromFile:
    """Read weights from a table with the columns `task`, `stakeholder` and `weight`, which sum to 1 in each task.

    Raises InputError with file, line and field.
    """
    weights_by_task: dict[str, dict[str, float]] = defaultdict(dict)
    for line, row in read_validated_rows(path, StakeholderWeight).rows:
        stakeholder_weights = weights_by_task[row.task]
        if row.stakeholder in stakeholder_weights:
            raise InputError(
                f"{path}, {line}: a second weight of {quote(row.stakeholder)} in task {quote(row.task)}"
            )
        stakeholder_weights[row.stakeholder] = row.weight
    for task, weights in weights_by_task.items():
        total = sum(weights.values())
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InputError(
                f"{path}: the weights of task {quote(task)} sum to {total:g}; they have to sum to 1"
            )
    return StakeholderWeightsFromFile(path.name, weights_by_task)


def check_stakeholder_weights(
    file_weights: StakeholderWeightsFromFile, scores: Iterable[PresentationScore]
) -> Iterator[str]:
    """Yield a note on the tasks of scores that have no weights, if there are some.

    Raises InputError where the weights are of no task, or of other stakeholders than a task has.
    """
    people = {
        score.task: score.utilities.keys()
        for score in scores
        if score.utilities and score.task is not None
    }
    tasks_with_file_weights = file_weights.weights_by_task.keys() & people.keys()
    if not tasks_with_file_weights:
        hint = f"such tasks: {shorten(', '.join(people))}" if people else "no task has any"
        raise InputError(
            f"{file_weights.name}: has no weights of a task whose scores have utilities; {hint}"
        )
    for task in sorted(tasks_with_file_weights):
        if file_weights.weights_by_task[task].keys() != people[task]:
            found = ", ".join(sorted(file_weights.weights_by_task[task]))
            people_text = ", ".join(sorted(people[task]))
            raise InputError(
                f"{file_weights.name}: the weights of task {quote(task)} are of {found}; write "
                f"those of {people_text}"
            )
    left_out = len(people) - len(tasks_with_file_weights)
    if left_out:
        yield f"left out of Table 5's row {file_weights.name}, tasks without weights there: {left_out}"


def fixed_weights(
    score: PresentationScore, file_weights: StakeholderWeightsFromFile | None
) -> dict[str, np.ndarray]:
    """Return the weights [n] of the stakeholders with utilities, by the name of each weighting that is defined.

    They are uniform, DecompR's for each τ of `PAPER_TAUS` where every difficulty is known, and those of a file.
    """
    people = list(score.utilities)
    by_name = {UNIFORM_WEIGHTS_NAME: np.full(len(people), 1.0 / len(people))}
    if score.difficulty.keys() >= score.utilities.keys():
        d = [score.difficulty[person] for person in people]
        for tau in PAPER_TAUS:
            by_name[f"DecompR τ={tau:g}"] = stakeholders.weights(d, tau)
    if file_weights is not None:
        weights = file_weights.weights_by_task.get(score.task or "")
        if weights is not None:
            by_name[file_weights.name] = np.array([weights[person] for person in people])
    return by_name


TasksWithResponses = Sequence[tuple[Task, Sequence[Response]]]


def repeating(config: Config, samples: int, folder: Path) -> Config:
    """Return the config of exact repeats: so many samples of one input from every evaluator that can repeat it.

    With one sample, each variant is judged in the same form as a repeat. Evaluators may be modules in the folder.
    """
    with importing_from(FolderModules(folder, config)):
        evaluators = load_evaluators(config)
    uses = []
    for use in config.evaluators:
        if "rotate" in evaluators[use.known_as].Params.model_fields:
            params = {**use.params, "rotate": False}
            use = use.model_copy(update={"samples": samples, "params": params})
        uses.append(use)
    return config.model_copy(update={"evaluators": tuple(uses)})


ResponseProseById = Mapping[str, Prose]
"""Responses that a model has read, by their ids."""


def prose_responses_by_task(pairs: TasksWithResponses) -> list[tuple[Task, list[Response]]]:
    """Return the responses without structured data, with their tasks."""
    found = []
    for task, responses in pairs:
        texts = [response for response in responses if data_to_document(response.data) is None]
        if texts:
            found.append((task, texts))
    return found


async def ask_about_each_response(
    pairs: TasksWithResponses,
    ask: Callable[[Task, Response, "JudgeClient"], Awaitable[T | None]],
    client: "JudgeClient",
    advance: ProgressCallback,
) -> dict[str, T]:
    """Return what `ask` gives for each response, by its id, without those for which it gives None.

    Raises what ends a run.
    """
    result_by_id = {}
    for task, responses in pairs:
        answers = await gather_all(ask(task, response, client) for response in responses)
        for response, answer in zip(responses, answers, strict=True):
            if answer is not None:
                result_by_id[response.id] = answer
        advance(len(responses))
    return result_by_id


async def read_response(task: Task, response: Response, client: "JudgeClient") -> Prose | str:
    """Return a response as a model reads it, or the reason why it cannot."""
    people = [person.id for person in task.stakeholders]
    return await read_prose(_view_of_query(task), response, people, client)


async def rewrite_response(
    _: Task, response: Response, client: "JudgeClient", versions: int, prose: ResponseProseById
) -> PresentationSet | None:
    """Return the variants that a model writes of a structured or read response; None of any other."""
    read = prose.get(response.id)
    if read is None:
        return await rewrite_data(response.data, client, versions)
    return await rewrite_statements(read.original, read.statements_by_name(), client, versions)


async def check_response(
    task: Task,
    response: Response,
    client: "JudgeClient",
    prose: ResponseProseById,
    written: Mapping[str, PresentationSet],
) -> PresentationSet | None:
    """Return what was written of a read response, as far as a model reads the same in it; None of any other."""
    if response.id not in prose:
        return None
    view = _view_of_query(task)
    return await keep_faithful_variants(prose[response.id], view, written[response.id], client)


def _view_of_query(task: Task) -> TaskView:
    return TaskView(id=task.id, query=task.query)


def generate_presentations(
    pairs: TasksWithResponses,
    versions: int = 5,
    should_include_originals: bool = True,
    written: Mapping[str, PresentationSet] = MappingProxyType({}),
    prose: ResponseProseById = MappingProxyType({}),
) -> tuple[list[bytes], Report]:
    """Return the lines of a TASKS file, and a report of the variants by family; without `versions`, originals alone.

    `written` are variants by a model, and `prose` responses that one has read. The figures are `variants`, `undefined`
    and `discarded` by family, `broken` by invariant, and the number of responses with `structured` data and of those in
    `prose`; the others are left out. Raises InputError if there is none of these.
    """
    counts = {name: Counter[str]() for name in ("variants", "undefined", "discarded", "broken")}
    sizes = {"structured": 0, "prose": 0, "left_out": 0}
    lines = []
    for task, responses in pairs:
        output_responses = []
        for response in responses:
            origin = "structured"
            presentation = present(response.data, versions)
            if presentation is None and response.id in prose:
                origin = "prose"
                presentation = make_prose_presentations(prose[response.id], versions)
            if presentation is None:
                sizes["left_out"] += 1
                continue
            sizes[origin] += 1
            if response.id in written:
                presentation.add(written[response.id])
            original, *variants = _variants_as_responses(response, presentation)
            output_responses += [original, *variants] if should_include_originals else variants
            counts["variants"].update(variant.family for variant in presentation.variants)
            counts["undefined"].update(presentation.undefined.keys())
            counts["discarded"].update(presentation.discarded)
            counts["broken"].update(presentation.broken)
        if output_responses:
            content = {name: getattr(task, name) for name in Task.model_fields}
            line = TaskLine.model_construct(**content, responses=tuple(output_responses))
            lines.append(line.model_dump_json(exclude_defaults=True).encode() + b"\n")
    response_count = sizes["structured"] + sizes["prose"]
    left_out = sizes["left_out"]
    if not response_count:
        raise InputError(
            f"none of {left_out} responses has structured data; give `data` the form of "
            "docs/stability.md, or name a model that reads them with --reader"
        )
    title = f"{response_count} responses, {counts['variants'].total()} variants"
    *counts_by_family, broken = counts.values()
    rows = [
        [family, *(count[family] for count in counts_by_family)]
        for family in dict.fromkeys(chain.from_iterable(counts_by_family))
    ]
    table = ReportTable(("family", "variants", "responses where undefined", "discarded"), rows)
    discarded_variants_table = ReportTable(
        ("discarded, because it breaks", "variants"), broken.most_common()
    )
    notes = [f"omitted, responses without structured data: {left_out}"] if left_out else []
    return lines, Report({**sizes, **counts}, [title, table, discarded_variants_table], notes)


def _variants_as_responses(response: Response, presentation: PresentationSet) -> Iterator[Response]:
    for variant in (presentation.original, *presentation.variants):
        labels = {**response.labels, "seed": response.id}
        name = response.id
        if variant is not presentation.original:
            labels |= {"family": variant.family, "version": variant.version}
            name = f"{response.id}~{variant.family}-{variant.version}"
        changes = {"id": name, "text": variant.text, "data": variant.data, "labels": labels}
        yield response.model_copy(update=changes)
