"""Re-score a run: decide its verdicts under another config, as a new run that refers to the first, without requests.

That config can have the confusion matrices of a panel of judges, learned from the verdicts of the whole run.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from jurygraph.agents.checks.spec import find_tensions
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AnnotatorQuality
from jurygraph.decision.combiners import Combiners
from jurygraph.decision.recipe import (
    RUBRIC_COMPONENT_NAME,
    STAKEHOLDERS_COMPONENT_NAME,
    build_decision,
    check_recipe,
    refuse_unknown_criteria,
)
from jurygraph.decision.table import build_verdict_table
from jurygraph.decision.weighting import refuse_unknown_stakeholders, weigh_stakeholders
from jurygraph.display import ProgressCallback
from jurygraph.errors import ConfigError, InputError
from jurygraph.inference.sign_flips import ROUNDING_TOLERANCE
from jurygraph.judges.panel import (
    ConsensusOfJudges,
    judge_name,
    nearest_level_index,
    read_level_values,
    to_confusions,
)
from jurygraph.messages import shell_quote
from jurygraph.runs.integrity.verification import recompute_rewards
from jurygraph.runs.reports.summary import mean_without_none
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import relative_folder
from jurygraph.runs.store.header import RunExtent, RunHeader, changes, format_value
from jurygraph.runs.store.ledger import RecordDraft
from jurygraph.runs.store.packing import RecordBody, read_planning_results, read_views
from jurygraph.runs.stored_groups import StoredGroup, TraceWithoutTexts, read_stored_groups
from jurygraph.runs.writable_run import WritableRun, append_close_record, refuse_existing_run
from jurygraph.schema import (
    ComponentSpec,
    Config,
    Decision,
    Survey,
    SurveyWithoutTexts,
    Task,
    digest_of,
)
from jurygraph.schema.frozen_model import JsonObject
from jurygraph.schema.plan import task_as_planned
from jurygraph.schema.rating import Confusions

_RECORDS_PER_BATCH = 1000

DECISION_CONFIG_KEYS = frozenset(
    {
        "weights",
        "rubric",
        "criteria",
        "panel",
        "calibration",
        "reward",
        "components",
        "gates",
        "scale",
        "clip",
        "failure",
    }
)
"""Config keys that decide how verdicts count. The other keys affect the questions: changing them needs a branch."""
_CRITERION_WEIGHT_KEY_PATTERN = re.compile(
    r".*\bcriteria[.\[](?P<name>[^\[\].]+)\]?\.(?P<field>weight|must)"
)
_FOLD_CONFIG_KEY_PATTERN = re.compile(r"evaluators\[\d+\]\.(fold|turns)")
_OldAndNewReward = tuple[float | None, float | None]


class RescoringResult(NamedTuple):
    """The result of re-scoring: the number of changed rewards, and the means and failure counts before and after.

    `largest_change` is of rewards that have a value before and after; None without one.

    `kept` responses have the reward that they had: the texts of their task, of which a decision is made, are erased.
    """

    responses: int
    changed: int
    mean_before: float | None
    mean_after: float | None
    failed_before: int
    failed_after: int
    largest_change: float | None
    kept: int


def rescore(run: Run, folder: Path, config: Config, report: ProgressCallback) -> RescoringResult:
    """Decide every trace of a run again under a config, and write the new run completely or not at all.

    Where the texts of a task were erased and the config is another one, its responses keep their decision.
    `report` receives the number of newly written traces. Raises `InputError` where the config changes the questions,
    or where the folder is not empty, and `ConfigError` or `PlanError` where the recipe does not fit.
    """
    refuse_changed_questions(run, config)
    combiners = run.load_combiners(config)
    check_recipe(config, run.header.evaluators)
    refuse_existing_run(folder)
    header = _build_run_header(run, folder, config, combiners)
    with WritableRun.create(folder, header, uuid.uuid4().hex) as new_run:
        decision_for_task = make_decision_finder(run, config, combiners)
        decision_by_task = {
            group.key: decision_for_task(group.key) for group in run.group_records()
        }
        refuse_unknown_member_names(run, config, decision_by_task.values())
        rewards = recompute_rewards(
            run,
            read_stored_groups(run),
            lambda group: decision_by_task[group.record.key],
            combiners,
        )
        values: list[_OldAndNewReward] = []
        drafts = chain(_decision_drafts(decision_by_task), _trace_drafts(rewards, values))
        while draft_batch := list(islice(drafts, _RECORDS_PER_BATCH)):
            new_run.ledger.append(*draft_batch)
            report(sum(draft.kind == "trace" for draft in draft_batch))
        append_close_record(new_run)
    erased_sizes = (
        group.content["size"]
        for group in run.group_records()
        if run.stored_task_record(group.key) is None
    )
    differences = [new - old for old, new in values if old is not None and new is not None]
    before = [old for old, _ in values]
    after = [new for _, new in values]
    return RescoringResult(
        responses=len(values),
        changed=sum((old is None) != (new is None) for old, new in values)
        # as a comparison of both runs would say it
        + sum(abs(difference) >= ROUNDING_TOLERANCE for difference in differences),
        mean_before=mean_without_none(before),
        mean_after=mean_without_none(after),
        failed_before=before.count(None),
        failed_after=after.count(None),
        largest_change=max(differences, key=abs, default=None),
        kept=0 if config == run.config else sum(erased_sizes),
    )


def refuse_unknown_member_names(run: Run, config: Config, decisions: Iterable[Decision]) -> None:
    """Raise ConfigError for a new name in `weights.fixed` or `criteria` that no task of the run has.

    `decisions` are those of its tasks.
    """
    names = config.weights.fixed.keys() - run.config.weights.fixed.keys()
    members: dict[str, set[str]] = {
        STAKEHOLDERS_COMPONENT_NAME: set(),
        RUBRIC_COMPONENT_NAME: set(),
    }
    for spec in chain.from_iterable(decision.specs for decision in decisions):
        members.get(spec.name, set()).update(spec.inputs)
    if members[STAKEHOLDERS_COMPONENT_NAME]:
        refuse_unknown_stakeholders(sorted(names), members[STAKEHOLDERS_COMPONENT_NAME])
    for evaluator in config.evaluators_with_criteria:
        members[RUBRIC_COMPONENT_NAME].update(run.header.evaluators[evaluator].shares)
    refuse_unknown_criteria(
        config.criteria.keys() - run.config.criteria.keys(), members[RUBRIC_COMPONENT_NAME], config
    )


def _decision_drafts(decision_by_task: Mapping[str, Decision]) -> Iterator[RecordDraft]:
    written_digests = set()
    for task_id, decision in decision_by_task.items():
        if decision.digest not in written_digests:
            written_digests.add(decision.digest)
            yield RecordDraft("decision", decision.digest, decision.model_dump(mode="json"))
        yield RecordDraft("task", task_id, {"decision": decision.digest})


def _trace_drafts(
    rewards: Iterator[tuple[TraceWithoutTexts, RecordBody]],
    values: list[_OldAndNewReward],
) -> Iterator[RecordDraft]:
    for trace, reward in rewards:
        values.append((trace.reward["value"], reward["value"]))
        yield RecordDraft("trace", trace.response_id, {"base": trace.record.seq, "reward": reward})


def refuse_changed_questions(run: Run, config: Config) -> None:
    settings_in_run = run.config.model_dump(mode="json")
    for key, old, new in changes(settings_in_run, config.model_dump(mode="json")):
        section = key.split(".")[0].split("[")[0]
        if section not in DECISION_CONFIG_KEYS and not _FOLD_CONFIG_KEY_PATTERN.fullmatch(key):
            hint = f"use `jurygraph score --branch {shell_quote(run.folder)}` with the other config"
            if key == "safety.evidence" and "off" not in (old, new):
                raise InputError(
                    f"{key} changes the verdicts, which re-scoring keeps; {hint}: "
                    "it reads the stored replies again, and sends requests only for what failed"
                )
            if weight_key := _CRITERION_WEIGHT_KEY_PATTERN.fullmatch(key):
                name = "NAME" if weight_key["name"].isdecimal() else weight_key["name"]
                setting = f"criteria.{name}.{weight_key['field']}={format_value(new)}"
                raise InputError(
                    f"{key} is part of a question, which re-scoring keeps; write "
                    f"--set {shell_quote(setting)}"
                )
            raise InputError(
                f"{key} changes the questions, and re-scoring keeps them; {hint}: "
                "its --dry-run says what would be requested again"
            )


def _build_run_header(run: Run, folder: Path, config: Config, combiners: Combiners) -> RunHeader:
    origin = run.header.base or run.origin(folder)
    versions = {name: combiner.version for name, combiner in combiners.items()}
    extent = RunExtent(tasks=run.tasks_scored, responses=run.ledger.count_records("trace"))
    # the base of a run that is re-scored itself is reached from another folder now
    base = origin.model_copy(update={"folder": relative_folder(folder, run.source.folder)})
    return run.header.model_copy(
        update={
            "config": config,
            "combiners": versions,
            "code": relative_folder(folder, run.code_folder),
            "extent": extent,
            "base": base,
            "branch": None,
            "shard": None,
            "file_extent": None,
            "merged": (),
        }
    )


def digest_decision_inputs(content: RecordBody, survey: SurveyWithoutTexts) -> str:
    """Return the digest of what a decision takes of a task, from its stored content; the rest is of the config."""
    planning_results = (content.get("profiles"), content.get("rubric"))
    names = ("stakeholders", "tensions", "rubric", "reviewers")
    decision_fields = [content["task"][name] for name in names]
    return digest_of([survey.digest, decision_fields, *planning_results])


class TaskWithSurvey(NamedTuple):
    """A task with its profiles and rubric, and its survey: a decision needs these and a config."""

    task: Task
    survey: Survey

    @classmethod
    def read(cls, content: RecordBody, survey: SurveyWithoutTexts) -> Self:
        """Return what the stored content of a task and its survey without texts contain."""
        task = task_as_planned(
            Task.model_validate(content["task"]), **read_planning_results(content)
        )
        return cls(task, survey.with_views(read_views(content)))

    def decide(self, run: Run, config: Config, combiners: Combiners) -> Decision:
        """Return the decision of the task under a config."""
        evaluators = run.header.evaluators
        audiences = [record.audience for record in evaluators.values()]
        weights = weigh_stakeholders(self.task, config.weights, audiences, find_tensions)
        return build_decision(self.task, self.survey, config, evaluators, combiners, *weights)


def make_decision_finder(
    run: Run,
    config: Config,
    combiners: Combiners,
    revise: Callable[[Task], Task] | None = None,
) -> Callable[[str], Decision]:
    """Return a function that returns a task's decision under another config; tasks with the same inputs share one.

    `revise` changes each task beforehand. A task whose texts were erased has its stored decision under every config.
    """
    if config == run.config and revise is None:
        return run.decision_of
    decision_by_digest = {}

    def decision_for_task(task_id: str) -> Decision:
        content = run.stored_task_record(task_id)
        if content is None:
            return run.decision_of(task_id)
        survey = run.survey_without_texts_of(task_id)
        inputs_digest = digest_decision_inputs(content, survey)
        if inputs_digest not in decision_by_digest:
            task_with_survey = TaskWithSurvey.read(content, survey)
            if revise is not None:
                task_with_survey = task_with_survey._replace(task=revise(task_with_survey.task))
            decision_by_digest[inputs_digest] = task_with_survey.decide(run, config, combiners)
        return decision_by_digest[inputs_digest]

    return decision_for_task


class JudgeVote(NamedTuple):
    """A judge's verdict on a response: the reviewer whom its panel predicts, or "", and the index of the level."""

    response: str
    reviewer: str
    judge: str
    level: int

    @property
    def unit(self) -> str:
        """The item of the consensus: the response, or the response with its reviewer."""
        return f"{self.response}@{self.reviewer}" if self.reviewer else self.response


class LearnedConfusionMatrices(NamedTuple):
    """A config for re-scoring with the learned confusion matrices of a panel, and the quality of its judges by name.

    Where the panel is too small, `confusions` is None and `judges` is empty, `config` uses the majority vote, and
    `warnings`, of one sentence each, has the reason. `responses` is the number of judged responses, and `units` that of
    the truths they are judged on: one for each response and reviewer, if the panels are of reviewers.
    """

    config: Config
    confusions: Confusions | None
    judges: dict[str, AnnotatorQuality]
    responses: int
    units: int
    warnings: tuple[str, ...]


def learn_confusion_matrices(
    run: Run, config: Config, component: str, report: ProgressCallback
) -> LearnedConfusionMatrices:
    """Return the confusions of a component's judges, fitted to a run's verdicts (STABLEVAL, Algorithm 1, converged).

    `report` receives 1 for each group. Raises `ConfigError` where the config has no such component with combiner
    `consensus`, and `InputError` where nothing of it was judged.
    """
    component_config = config.components.get(component)
    if component_config is None or component_config.combiner != ConsensusOfJudges.name:
        names = ", ".join(
            name
            for name, use in config.components.items()
            if use.combiner == ConsensusOfJudges.name
        )
        hint = f"there are {names}" if names else "the config has none; add one, or --set it"
        raise ConfigError(
            f"components.{component}: is not a component with combiner 'consensus'; {hint}"
        )
    params = {key: value for key, value in component_config.params.items() if key != "confusions"}
    config_without_confusions = _replace_component_params(config, component, params)
    levels = []
    votes: list[JudgeVote] = []
    combiners = run.load_combiners(config_without_confusions)
    decision_for_task = make_decision_finder(run, config_without_confusions, combiners)
    for group in read_stored_groups(run):
        task = group.record.key
        # an erased task keeps its decision, which may have other levels, or not this component
        if config_without_confusions == run.config or run.stored_task_record(task) is not None:
            decision = decision_for_task(task)
            spec = next(spec for spec in decision.specs if spec.name == component)
            levels = read_level_values(spec.params).tolist()
            votes += _votes(group, run.survey_without_texts_of(task), spec, decision.rule)
        report(1)
    if not votes:
        raise InputError(
            f"{run.folder}: nothing of component {component!r} was judged, so there is nothing to learn"
        )
    return _fit_confusion_matrices(config_without_confusions, component, votes, levels)


def _fit_confusion_matrices(
    config: Config, component: str, votes: list[JudgeVote], levels: Sequence[float]
) -> LearnedConfusionMatrices:
    """Fit a panel; each response, or each with one of its reviewers, is an item of the consensus."""
    sorted_votes = sorted(votes)
    responses = len({vote.response for vote in votes})
    fitted_consensus = consensus.fit(
        [vote.unit for vote in sorted_votes],
        [vote.judge for vote in sorted_votes],
        [vote.level for vote in sorted_votes],
        classes=range(len(levels)),
    )
    units = len(fitted_consensus.items)
    reason = consensus.too_small(fitted_consensus.votes)
    if reason is not None:
        return LearnedConfusionMatrices(config, None, {}, responses, units, (reason,))
    confusions = to_confusions(fitted_consensus, levels)
    params = {
        **config.components[component].params,
        "confusions": confusions.model_dump(mode="json"),
    }
    quality_by_judge = {
        str(name): quality for name, quality in fitted_consensus.annotators().items()
    }
    return LearnedConfusionMatrices(
        _replace_component_params(config, component, params),
        confusions,
        quality_by_judge,
        responses,
        units,
        fitted_consensus.warnings,
    )


def _replace_component_params(config: Config, component: str, params: JsonObject) -> Config:
    changed_component_config = config.components[component].model_copy(update={"params": params})
    return config.model_copy(
        update={"components": {**config.components, component: changed_component_config}}
    )


def _votes(
    group: StoredGroup, survey: SurveyWithoutTexts, spec: ComponentSpec, rule: str
) -> Iterator[JudgeVote]:
    """Yield the judges' votes on a group, as they enter the component; verdicts set by a gate are left out."""
    names = sorted(trace.response_id for trace in group.traces)
    table = build_verdict_table(survey.questions, names, group.verdicts(survey))
    levels = read_level_values(spec.params)
    panels: Any = spec.params.get("panels", {"": list(spec.inputs)})
    for reviewer, inputs in panels.items():
        for key in inputs:
            use = spec.inputs[key]
            cells = table.score_matrix(use, rule, spec.direction, "counted")
            level = nearest_level_index(cells.value, levels)
            judge = judge_name(key, use.reviewer)
            for row, column in np.argwhere(cells.applicable & cells.judged).tolist():
                yield JudgeVote(
                    f"{group.record.key}/{names[row]}", reviewer, judge, int(level[row, column])
                )
