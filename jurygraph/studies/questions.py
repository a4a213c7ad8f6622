"""Several questions about the same items: the consensus of each in one report, and the labels of items as rows."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.messages import join_names
from jurygraph.runs.run import Run
from jurygraph.schema.rating import Label, format_label
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.sources.label_words import find_decision_class, has_words, to_class_value
from jurygraph.studies.adjudication import SavedConsensus
from jurygraph.studies.consensus import compare_agents, list_confusions, name_likeliest_classes
from jurygraph.studies.fitted_consensus import FittedConsensus, describe_items
from jurygraph.studies.judgements import (
    UNIT_SCALE,
    Judgement,
    RunJudgements,
    find_judgements_of_question,
    read_judgements,
)
from jurygraph.studies.report import (
    Columns,
    Figures,
    IntervalCell,
    Report,
    ReportTable,
    as_interval,
)
from jurygraph.views.agents import AgentDifference

_Cell = str | int | float | None
_DIGITS = 3
_NO_GOLD = {"right": 0, "labels": 0}
_TEXT_COLUMNS = ("item", "agent", "group", "prompt", "text")


class JudgedAnswers(NamedTuple):
    """The judgements of a run, and the `prompt` and `text` of its responses, by their ids."""

    judgements: RunJudgements
    texts: Mapping[str, Mapping[str, _Cell]]


def read_judged_answers(run: Run, advance: ProgressCallback) -> JudgedAnswers:
    """Read what judges said of responses, and these; `advance` is called with 1 for each task."""
    texts: dict[str, Mapping[str, _Cell]] = {}
    for trace, response, task in run.responses_with_tasks():
        prompt = None if task is None else chat_to_prompt_text(task.query)
        text = None if response is None else response.text
        texts[trace.response_id] = {"prompt": prompt, "text": text}
    return JudgedAnswers(read_judgements(run, advance), texts)


class JudgedItems(NamedTuple):
    """Items of several questions, by their keys: their `texts`, and of each question what its judge said, if any.

    `unmatched` is the number of items that no response of the run is called by.
    """

    texts: Mapping[str, Mapping[str, _Cell]]
    judgements: Sequence[Mapping[str, Judgement]]
    unmatched: int = 0


def match_items(fits: Sequence[FittedConsensus], run: JudgedAnswers | None = None) -> JudgedItems:
    """Return the items of all questions with the judgements of a run, and its texts where votes have none.

    Raises `InputError` if the run has no response that is an item, or no judge of any of the questions.
    """
    texts_by_item = _collect_texts(fits)
    if run is None:
        return JudgedItems(texts_by_item, [{}] * len(fits))
    response_by_item = _match_responses(texts_by_item, run.judgements)
    judged = [find_judgements_of_question(run.judgements, fit.question) for fit in fits]
    if not any(judged):
        names = join_names(fit.question for fit in fits)
        problem = f"no judge is of {names}; name questions as the run does"
        raise InputError(f"{run.judgements.run}: {problem}")
    for item, response in response_by_item.items():
        texts_by_item[item] = {**run.texts[response], **texts_by_item[item]}
    judgements_by_item = [
        {
            item: judgements[response]
            for item, response in response_by_item.items()
            if response in judgements
        }
        for judgements in judged
    ]
    return JudgedItems(
        texts_by_item, judgements_by_item, len(texts_by_item) - len(response_by_item)
    )


def report_questions(reports: Sequence[Report], fits: Sequence[FittedConsensus]) -> Report:
    """Return the reports of several questions as one: what each concludes, and how they and the people compare.

    `questions` has all figures of each, and `items_in_doubt` is how many are in doubt on one question or more.
    """
    if len(reports) == 1:
        return reports[0]
    names = [fit.question for fit in fits]
    figures = {name: report.to_json() for name, report in zip(names, reports, strict=True)}
    conclusion = []
    questions_by_note = defaultdict(list)  # what is of several is said once
    for name, report in zip(names, reports, strict=True):
        conclusion += [f"{name}: {sentence}" for sentence in report.conclusion]
        for note in report.notes:
            questions_by_note[note].append(name)
    items = {item for fit in fits for item in fit.ballots.item}
    items_in_doubt = {item for fit in fits for item in fit.doubts}
    conclusion.append(
        f"items in doubt on one question or more: {len(items_in_doubt)} of {len(items)}"
    )
    columns: Columns = {
        "question": "name",
        "labels": lambda row: row["counts"]["rows"] - row["counts"]["abstained"],
        "items": lambda row: row["counts"]["items"],
        "unanimous": lambda row: row["agreement"]["unanimous"],
        "in doubt": "in_doubt",
        "method": "method",
    }
    rows = [
        {**figures[fit.question], "name": fit.question, "in_doubt": len(fit.doubts)} for fit in fits
    ]
    return Report(
        {"questions": figures, "items_in_doubt": len(items_in_doubt)},
        [
            ReportTable.of(columns, rows, digits=_DIGITS),
            _annotator_table(figures),
            "the tables of a question: --dimension NAME",
        ],
        [f"{', '.join(questions)}: {note}" for note, questions in questions_by_note.items()],
        conclusion=conclusion,
    )


def add_judged_agents(
    report: Report, fits: Sequence[FittedConsensus], items: JudgedItems
) -> Report:
    """Return the report with the lead of each agent by the judge of a question, as far as it has one, beside people's.

    What a judge says is taken as the label that it is, with the credit of people's labels.
    """
    rows: list[list[object]] = []
    conclusion = []
    notes = list(report.notes)
    if items.unmatched:
        notes.append(f"items that no response of the run is called by: {items.unmatched}")
    for fit, judgements in zip(fits, items.judgements, strict=True):
        credit = {
            item: _credit_of_judgement(judgement, fit)
            for item, judgement in judgements.items()
            if judgement.score is not None
        }
        leads = compare_agents(fit, credit) if credit else []
        lead_by_pair = {frozenset((lead.first, lead.second)): lead for lead in leads}
        for lead in compare_agents(fit):
            judged = lead_by_pair.get(frozenset((lead.first, lead.second)))
            cells = (_turn(lead, lead.first), _turn(judged, lead.first))
            rows.append([fit.question, lead.first, lead.second, *cells])
        conclusion += [f"{fit.question}, by the judge: {lead.sentence}" for lead in leads[:1]]
    header = ("question", "agent", "other", "ahead by people (95 %)", "ahead by the judge (95 %)")
    if not rows:
        notes.append(
            "no row has an agent to compare; --table shows what the judge said of each item"
        )
    names = ("question", "agent", "other", "people", "judge")
    figures = {"judged_agents": [dict(zip(names, row, strict=True)) for row in rows]}
    return replace(
        report,
        figures=report.figures | figures,
        sections=[ReportTable(header, rows, left=3, digits=_DIGITS), *report.sections],
        notes=notes,
        conclusion=[*report.conclusion, *conclusion],
    )


def _credit_of_judgement(judgement: Judgement, fit: FittedConsensus) -> float:
    """Return the credit of what a judge said: of numbers on people's scale as it is, else at its place of that."""
    classes: Any = fit.ballots.classes
    if has_words(classes):
        return float(fit.values[classes.index(_find_class(judgement, classes))])
    numbers, values = zip(*sorted(zip(classes, fit.values, strict=True)), strict=True)
    return float(np.interp(_to_number(judgement, numbers), numbers, values))


def _to_number(judgement: Judgement, numbers: Sequence[float]) -> float:
    """Return what a judge said on people's scale: its number if that is on its own, else the one at its place."""
    lowest, highest = min(numbers), max(numbers)
    low, high = judgement.scale or UNIT_SCALE
    if judgement.native is not None and low <= lowest < highest <= high:
        return judgement.native
    return lowest + _place_on_scale(judgement, len(numbers)) * (highest - lowest)


def list_judge_ratings(
    fits: Sequence[FittedConsensus], items: JudgedItems
) -> list[dict[str, _Cell]]:
    """Return what the judges of a run say as rows of RATINGS: of people's items, by their names, on their scale.

    Raises `InputError` if there are none, of labels in an order.
    """
    rows = []
    for fit, judgements in zip(fits, items.judgements, strict=True):
        for item, judgement in judgements.items():
            texts = items.texts[item]
            row = {
                "item": texts["item"],
                "agent": texts.get("agent"),
                "dimension": fit.ballots.question,
                "annotator": "judge",
                "label": format_judgement(judgement, fit),
            }
            if judgement.score is not None and fit.ballots.has_order:
                rows.append(row)
    if not rows:
        raise InputError(
            "--ratings-out: nothing is judged; name the judge's run by --run, and the order of words by --classes"
        )
    return rows


def _turn(lead: AgentDifference | None, first: str) -> IntervalCell | None:
    """Return how far an agent is ahead of the other one of a pair; None without a pair."""
    if lead is None:
        return None
    cell = IntervalCell(lead.value, lead.low, lead.high)
    if lead.first == first:
        return cell
    return IntervalCell(*(None if end is None else -end for end in (cell[0], cell[2], cell[1])))


def _annotator_table(figures_by_question: Mapping[str, Figures]) -> ReportTable:
    """Return who labels each question how much like the others: by rank correlation, without an order by accuracy."""
    header = ["annotator"]
    names = {name for figures in figures_by_question.values() for name in figures["annotators"]}
    rows: list[list[Any]] = [[name] for name in sorted(names)]
    for question, figures in figures_by_question.items():
        measure = "correlation" if figures["values"] else "accuracy"
        header += [f"{question}: {measure} (95 %)", f"{question}: labels"]
        if figures["counts"]["gold"]:
            header.append(f"{question}: right on gold")
        for row in rows:
            person = figures["annotators"].get(row[0], {})
            value = person.get(measure)
            estimate = value if isinstance(value, dict) else IntervalCell(value, None, None)
            row += [estimate, person.get("labels")]
            if figures["counts"]["gold"]:
                row.append("{right} of {labels}".format_map(person.get("gold", _NO_GOLD)))
    return ReportTable(header, rows, digits=_DIGITS)


def list_consensus_labels(
    fit: FittedConsensus,
    texts_by_item: Mapping[str, Mapping[str, _Cell]],
    question: str | None = None,
) -> list[dict[str, _Cell]]:
    """Return `item`, `agent` if votes name one, `label`, `certainty` and `doubt` of each item, as the files name them.

    The label is the likeliest class, and none where several are as likely, and `certainty` how sure it is
    (`_list_certainties`); of numbers there are also the `mean` of the labels and the `adjusted_mean`, the lowest first,
    and where that is the method its `standard_error`: the label is the class nearest to it. `labels` is their number,
    `spread` is that of its labels, `doubt` why it is in doubt, if it is. The group, prompt and text follow, of the
    `texts_by_item`. All are of the `question`, if there is one.
    """
    columns = [] if has_words(fit.ballots.classes) else ["mean", "adjusted_mean"]
    if fit.method == "adjusted-mean":
        columns.append("standard_error")
    certainties = _list_certainties(fit)
    rows = []
    for key, item in describe_items(fit).items():
        texts = dict(texts_by_item[key])
        label = _find_likeliest_class(fit.ballots.classes, item["posterior"])
        row: dict[str, _Cell] = {"item": texts.pop("item")}
        if "agent" in texts:
            row["agent"] = texts.pop("agent")
        if question is not None:
            row["question"] = question
        row["label"] = label
        row["certainty"] = certainties.get(key)
        for column in columns:
            row[column] = None if item[column] is None else to_class_value(f"{item[column]:.6g}")
        row["labels"] = item["labels"]
        row["spread"] = to_class_value(f"{item['spread']:.3g}")
        row["doubt"] = fit.doubts.get(key)
        rows.append(row | texts)
    if fit.adjusted is not None:
        rows.sort(key=lambda row: (row["adjusted_mean"] is None, row["adjusted_mean"]))
    return rows


def list_item_rows(
    fits: Sequence[FittedConsensus],
    items: JudgedItems,
    earlier_rounds: Iterable[SavedConsensus | None],
) -> list[dict[str, _Cell]]:
    """Return a row for each item: of each question the consensus, the one before, how sure it is, the judge, and each
    person's label.

    The consensus is the likeliest class, or a tie of several, and its certainty as `_list_certainties` has it; of
    adjusted means there are also the mean and its standard error. The judge's is in words where
    people's are, of a scale of as many steps, and why there is none where it judged nothing. `in doubt` names each
    question of which the item is, and why.

    Raises `InputError` if two columns would have one name.
    """
    # by column, since a question may be of some of the items alone
    reasons: dict[str, list[str]] = {}
    for fit in fits:
        for item, doubt in fit.doubts.items():
            reasons.setdefault(item, []).append(f"{fit.question}: {doubt}")
    cells: dict[str, Mapping[str, _Cell]] = {
        "in doubt": {item: "; ".join(doubts) for item, doubts in reasons.items()}
    }
    questions = zip(fits, items.judgements, earlier_rounds, strict=True)
    for fit, judgements, earlier in questions:
        cells_of_question = _consensus_cells(fit, earlier)
        if judgements:
            cells_of_question[f"{fit.question} judge"] = {
                item: format_judgement(judgement, fit) for item, judgement in judgements.items()
            }
        cells_of_question |= _person_cells(fit)
        for column in cells_of_question.keys() & {*_TEXT_COLUMNS, *cells}:
            raise InputError(
                f"--table: has a column {column!r} already; call the question by another name, as --target-column "
                "NAME=COLUMN"
            )
        cells |= cells_of_question
    text_columns = [
        column
        for column in _TEXT_COLUMNS
        if any(texts.get(column) is not None for texts in items.texts.values())
    ]
    return [
        {
            **{column: texts.get(column) for column in text_columns},
            **{column: values.get(item) for column, values in cells.items()},
        }
        for item, texts in items.texts.items()
    ]


def list_other_sheets(report: Report, question: str) -> dict[str, list[dict[str, _Cell]]]:
    """Return the rows of further sheets: what the report concludes, people with figures as numbers and the
    warnings of who is better left out, how often each says each class where most others say each, and what moved.

    `question` is that of a report of one alone.
    """
    figures = report.to_json()
    figures_by_question = figures.get("questions", {question: figures})
    table = _annotator_table(figures_by_question)
    people: list[dict[str, Any]] = []
    for cells_of_person in table.rows:
        numbers: dict[str, Any] = dict(zip(table.header, cells_of_person, strict=True))
        for column, cell in list(numbers.items()):
            estimate = as_interval(cell)
            if estimate is not None:
                numbers |= {column: estimate.value, f"{column} from": estimate.low}
                numbers[f"{column} to"] = estimate.high
        numbers["warning"] = "\n".join(
            text
            for text in report.conclusion
            if numbers["annotator"]
            in " ".join(shlex.split(text.partition("--without ")[2])).split(",")
        )
        people.append(numbers)
    confusions = []
    changes = []
    for name, figures_of_question in figures_by_question.items():
        confusions += [{"question": name, **row} for row in list_confusions(figures_of_question)]
        for change in figures_of_question.get("moved", {"items": []})["items"]:
            cells = {column.replace("_", " "): cell for column, cell in change.items()}
            changes.append({"item": cells["item"], "question": name, **cells})
    summary = [{"summary": text} for text in report.conclusion]
    sheets = {"Summary": summary, "People": people, "Confusions": confusions, "Changed": changes}
    return {name: rows for name, rows in sheets.items() if rows}


def _collect_texts(fits: Iterable[FittedConsensus]) -> dict[str, dict[str, _Cell]]:
    """Return what votes tell of each item of any question, by its key: its name, agent, group, prompt and text."""
    texts_by_item: dict[str, dict[str, _Cell]] = {}
    for fit in fits:
        ballots = fit.ballots
        agents: Sequence[str | None] = ballots.agent or [None] * len(ballots.item)
        names = zip(ballots.item, ballots.item_id_in_file, agents, ballots.details, strict=True)
        for key, item, agent, details in names:
            texts = {"item": item, "agent": agent, **details}
            present_texts = {column: text for column, text in texts.items() if text is not None}
            texts_by_item.setdefault(key, {}).update(present_texts)
    return texts_by_item


def _match_responses(
    texts_by_item: Mapping[str, Mapping[str, _Cell]], run: RunJudgements
) -> dict[str, str]:
    """Return the response of each item that has one, by its name or else its key. Raises `InputError` if none has."""
    names = run.response_by_name
    response_by_item = {}
    for item, texts in texts_by_item.items():
        response = names.get(str(texts["item"])) or names.get(item)
        if response is not None:
            response_by_item[item] = response
    if not response_by_item:
        items = join_names(dict.fromkeys(str(texts["item"]) for texts in texts_by_item.values()))
        hint = "an item is named as the response, or as its task, with --agent-column"
        raise InputError(f"{run.run}: no response is called {items}; {hint}")
    return response_by_item


def _find_likeliest_class(classes: Sequence[Label], posterior: Sequence[float]) -> Label | None:
    """Return the likeliest class of an item; None where several are as likely."""
    greatest = max(posterior)
    is_tied = posterior.count(greatest) > 1
    return None if is_tied else classes[posterior.index(greatest)]


def _describe_label(classes: Sequence[Label], posterior: Sequence[float]) -> Label:
    """Return the likeliest class of an item, or which ones are as likely."""
    label = _find_likeliest_class(classes, posterior)
    return f"tie: {name_likeliest_classes(classes, posterior)}" if label is None else label


def _list_certainties(fit: FittedConsensus) -> dict[Any, float]:
    """Return by item how sure its label is, in [0, 1]: by stableval its probability, by adjusted-mean that of a mean
    nearest to it, by other methods its share of the labels.

    Gold is certain, and an item without labels has no share. Hard labels of the model, taken as certain, would say
    nothing.
    """
    votes = fit.model.votes
    likeliest = fit.item_posteriors.likeliest_labels()
    if fit.method == "stableval":
        certainties = fit.item_posteriors.posterior.max(axis=1)
    elif fit.adjusted is not None and fit.method == "adjusted-mean":
        classes = np.array(fit.ballots.classes, dtype=np.float64)
        edges = np.r_[-np.inf, (classes[1:] + classes[:-1]) / 2.0, np.inf]
        errors = np.maximum(fit.adjusted.standard_errors, np.finfo(float).tiny)
        below, above = (
            ndtr((edges[likeliest + side] - fit.adjusted.means) / errors) for side in (0, 1)
        )
        certainties = above - below
    else:
        same_counts = votes.counts[np.arange(len(votes.items)), likeliest]
        certainties = same_counts / np.maximum(votes.counts.sum(axis=1), 1)
    found = dict(zip(votes.items, certainties.round(_DIGITS).tolist(), strict=True))
    if fit.method != "stableval":
        found = dict(compress(found.items(), votes.has_label))
    return found | dict.fromkeys(found.keys() & fit.ballots.gold.keys(), 1.0)


def _consensus_cells(
    fit: FittedConsensus, earlier: SavedConsensus | None
) -> dict[str, Mapping[str, _Cell]]:
    """Return by column the consensus of a question on each item, also the one before, how sure it is, and the number
    of its labels."""
    name = fit.question
    items = describe_items(fit)
    labelled_items = {key: item for key, item in items.items() if item["labels"]}
    cells: dict[str, Mapping[str, _Cell]] = {
        name: {
            key: _describe_label(fit.ballots.classes, item["posterior"])
            for key, item in labelled_items.items()
        }
    }
    if earlier is not None:
        cells[f"{name} before"] = {
            key: _describe_label(earlier.classes, item.posterior)
            for key, item in earlier.items.items()
            if item.labels
        }
    cells[f"{name} certainty"] = _list_certainties(fit)
    if fit.method == "adjusted-mean":
        cells[f"{name} mean"] = {
            key: round(item["adjusted_mean"], _DIGITS) for key, item in labelled_items.items()
        }
        cells[f"{name} standard error"] = {
            key: round(item["standard_error"], _DIGITS) for key, item in items.items()
        }
    if fit.ballots.gold:
        cells[f"{name} gold"] = fit.ballots.gold
    cells[f"{name} labels"] = {key: item["labels"] for key, item in items.items()}
    return cells


def _person_cells(fit: FittedConsensus) -> dict[str, Mapping[str, _Cell]]:
    """Return the label that each person gave to each item, by a column for each person."""
    ballots = fit.ballots
    cells: dict[str, dict[str, _Cell]] = {person: {} for person in sorted(set(ballots.annotator))}
    for item, person, label in zip(ballots.item, ballots.annotator, ballots.label, strict=True):
        if label is not None:
            earlier_label = cells[person].get(item)
            # who labelled it again, gave both
            cells[person][item] = label if earlier_label is None else f"{earlier_label}, {label}"
    return {f"{fit.question} by {person}": labels for person, labels in cells.items()}


def format_judgement(judgement: Judgement, fit: FittedConsensus) -> Label:
    """Return what a judge said in terms of people's labels: of words in an order the nearest one, of numbers that on
    their scale, else its number.

    Without a judgement, it is the reason.
    """
    classes: Any = fit.ballots.classes
    if judgement.score is None:
        return judgement.status
    if not has_words(classes):
        return round(_to_number(judgement, classes), _DIGITS)
    if fit.ballots.has_order:
        return format_label(_find_class(judgement, classes))
    return round(judgement.score if judgement.native is None else judgement.native, _DIGITS)


def _find_class(judgement: Judgement, classes: Sequence[Label]) -> Label:
    """Return the class at the place of a judge's answer on its scale, half way between two the higher one."""
    decision_class: Label | None = find_decision_class(judgement.decision, classes)
    if decision_class is not None:
        return decision_class
    place = _place_on_scale(judgement, len(classes))
    return classes[math.floor(place * (len(classes) - 1) + 0.5)]


def _place_on_scale(judgement: Judgement, class_count: int) -> float:
    """Return where a judge's answer is between the ends of its scale, in [0, 1]; of two classes its decision."""
    if judgement.decision is not None and class_count == 2:
        return judgement.decision
    low, high = judgement.scale or UNIT_SCALE
    if judgement.native is None:
        assert judgement.score is not None, "it was judged"
        return judgement.score
    return (judgement.native - low) / (high - low)
