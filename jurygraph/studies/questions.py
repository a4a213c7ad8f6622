"""Several questions about the same items: the consensus of each in one report, and the labels of items as rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from jurygraph.errors import InputError
from jurygraph.messages import join_names
from jurygraph.schema.rating import Label, format_label
from jurygraph.studies.consensus import FittedConsensus, describe_items
from jurygraph.studies.judgements import (
    UNIT_SCALE,
    Judgement,
    RunJudgements,
    find_judgements_of_question,
)
from jurygraph.studies.report import Columns, Figures, IntervalCell, Report, ReportTable
from jurygraph.studies.votes import has_words

_Cell = str | int | float | None
_DIGITS = 3


def report_questions(reports: Sequence[Report], fits: Sequence[FittedConsensus]) -> Report:
    """Return the reports of several questions as one: what each concludes, and how they and the people compare.

    `questions` has all figures of each, and `items_in_doubt` is how many are in doubt on one question or more.
    """
    if len(reports) == 1:
        return reports[0]
    names = [fit.question for fit in fits]
    figures = {name: report.to_json() for name, report in zip(names, reports, strict=True)}
    conclusion = []
    notes = []
    for name, report in zip(names, reports, strict=True):
        conclusion += [f"{name}: {sentence}" for sentence in report.conclusion]
        notes += [f"{name}: {note}" for note in report.notes]
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
        notes,
        conclusion=conclusion,
    )


def _annotator_table(figures_by_question: Mapping[str, Figures]) -> ReportTable:
    """Return who labels each question how much like the others: by rank correlation, without an order by accuracy."""
    header = ["annotator"]
    names = {name for figures in figures_by_question.values() for name in figures["annotators"]}
    rows: list[list[Any]] = [[name] for name in sorted(names)]
    for question, figures in figures_by_question.items():
        measure = "correlation" if figures["values"] else "accuracy"
        header += [f"{question}: {measure} (95 %)", f"{question}: labels"]
        for row in rows:
            person = figures["annotators"].get(row[0], {})
            value = person.get(measure)
            estimate = value if isinstance(value, dict) else IntervalCell(value, None, None)
            row += [estimate, person.get("labels")]
    return ReportTable(header, rows, digits=_DIGITS)


def list_consensus_labels(
    fit: FittedConsensus, question: str | None = None
) -> list[dict[str, _Cell]]:
    """Return `item`, `agent` if votes name one, `label`, `spread` and `doubt` of each item, as the files name them.

    The label is the likeliest class, and none where several are as likely; of numbers there are also the `mean` of the
    labels and the `adjusted_mean`, the lowest first, and where that is the method its `standard_error`: the label is
    the class nearest to it. `labels` is their number, `spread` is that of its labels, `doubt` why it is in doubt, if it
    is. The group, prompt and text follow where votes have them. All are of the `question`, if there is one.
    """
    columns = [] if has_words(fit.ballots.classes) else ["mean", "adjusted_mean"]
    if fit.method == "adjusted-mean":
        columns.append("standard_error")
    texts_by_item = _collect_texts([fit])
    rows = []
    for key, item in describe_items(fit).items():
        texts = texts_by_item[key]
        label = _find_likeliest_class(fit, item)
        row: dict[str, _Cell] = {"item": texts.pop("item")}
        if "agent" in texts:
            row["agent"] = texts.pop("agent")
        if question is not None:
            row["question"] = question
        row["label"] = None if label is None else format_label(label)
        for column in columns:
            row[column] = None if item[column] is None else f"{item[column]:.6g}"
        row["labels"] = str(item["labels"])
        row["spread"] = f"{item['spread']:.3g}"
        row["doubt"] = fit.doubts.get(key)
        adjusted_mean = item["adjusted_mean"]
        rows.append((math.inf if adjusted_mean is None else adjusted_mean, row | texts))
    rows.sort(key=itemgetter(0))
    return [row for _, row in rows]


def list_item_rows(
    fits: Sequence[FittedConsensus], run: RunJudgements | None = None
) -> list[dict[str, _Cell]]:
    """Return a row for each item: of each question the consensus, how sure it is, the judge, and each person's label.

    The consensus is the likeliest class, and none where several are as likely. How sure it is says its probability, or
    of adjusted means the standard error. The judge's is in words where people's are, of a scale of as many steps, and
    why there is none where it judged nothing. `in doubt` names each question of which the item is, and why.

    Raises `InputError` if the run has no response that is an item, or no judge of any of the questions.
    """
    texts_by_item = _collect_texts(fits)
    response_by_item = {} if run is None else _match_responses(texts_by_item, run)
    judged = [{} if run is None else find_judgements_of_question(run, fit.question) for fit in fits]
    if run is not None and not any(judged):
        names = join_names(fit.question for fit in fits)
        raise InputError(f"{run.run}: no judge is of {names}; name questions as the run does")
    # by column, since a question may be of some of the items alone
    cells: dict[str, Mapping[str, _Cell]] = {}
    reasons: dict[str, list[str]] = {}
    for fit, judgements in zip(fits, judged, strict=True):
        cells |= _consensus_cells(fit)
        if judgements:
            cells[f"{fit.question} judge"] = {
                item: format_judgement(judgements[response], fit.ballots.classes)
                for item, response in response_by_item.items()
                if response is not None and response in judgements
            }
        cells |= _person_cells(fit)
        for item, doubt in fit.doubts.items():
            reasons.setdefault(item, []).append(f"{fit.question}: {doubt}")
    cells["in doubt"] = {item: "; ".join(doubts) for item, doubts in reasons.items()}
    return [
        {**texts, **{column: values.get(item) for column, values in cells.items()}}
        for item, texts in texts_by_item.items()
    ]


def _collect_texts(fits: Iterable[FittedConsensus]) -> dict[str, dict[str, _Cell]]:
    """Return what is known of each item of any question, by its key: its name, agent, group, prompt and text."""
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
) -> dict[str, str | None]:
    """Return the response of each item: the one of its name, or of its key. Raises `InputError` if no item is one."""
    names = run.response_by_name
    name_by_item = {item: str(texts["item"]) for item, texts in texts_by_item.items()}
    response_by_item = {
        item: names.get(name) or names.get(item) for item, name in name_by_item.items()
    }
    if not any(response_by_item.values()):
        items = join_names(dict.fromkeys(name_by_item.values()))
        hint = "an item is named as the response, or as its task, with --agent-column"
        raise InputError(f"{run.run}: no response is called {items}; {hint}")
    return response_by_item


def _find_likeliest_class(fit: FittedConsensus, item: Figures) -> Label | None:
    """Return the likeliest class of an item; None where several are as likely."""
    posterior = item["posterior"]
    greatest = max(posterior)
    is_tied = posterior.count(greatest) > 1
    return None if is_tied else fit.ballots.classes[posterior.index(greatest)]


def _consensus_cells(fit: FittedConsensus) -> dict[str, Mapping[str, _Cell]]:
    """Return by column the consensus of a question on each item, how sure it is, and the number of its labels."""
    name = fit.question
    items = describe_items(fit)
    labelled_items = {key: item for key, item in items.items() if item["labels"]}
    cells: dict[str, Mapping[str, _Cell]] = {
        name: {key: _find_likeliest_class(fit, item) for key, item in labelled_items.items()}
    }
    if fit.method == "adjusted-mean":
        cells[f"{name} mean"] = {
            key: round(item["adjusted_mean"], _DIGITS) for key, item in labelled_items.items()
        }
        cells[f"{name} standard error"] = {
            key: round(item["standard_error"], _DIGITS) for key, item in items.items()
        }
    else:
        cells[f"{name} probability"] = {
            key: round(max(item["posterior"]), _DIGITS) for key, item in items.items()
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
            cells[person][item] = label
    return {f"{fit.question} by {person}": labels for person, labels in cells.items()}


def format_judgement(judgement: Judgement, classes: Sequence[Label]) -> Label:
    """Return what a judge said in terms of classes: of words the one at its place of the scale, else its number.

    Without a judgement, it is the reason.
    """
    value = judgement.score if judgement.native is None else judgement.native
    if value is None:
        return judgement.status
    if not has_words(classes):
        return round(value, _DIGITS)
    low, high = judgement.scale or UNIT_SCALE
    if judgement.decision is not None and len(classes) == 2:
        low, high = UNIT_SCALE
        value = judgement.decision
    place = (value - low) / (high - low) * (len(classes) - 1)
    return format_label(classes[round(place)])
