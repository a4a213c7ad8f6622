"""Several questions about the same items: the consensus of each in one report, and the labels of items as rows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph.errors import InputError
from jurygraph.messages import join_names
from jurygraph.schema.rating import Label, format_label
from jurygraph.studies.consensus import FittedConsensus, describe_items, name_likeliest_classes
from jurygraph.studies.judgements import (
    UNIT_SCALE,
    Judgement,
    RunJudgements,
    find_judgements_of_question,
)
from jurygraph.studies.report import Columns, Figures, IntervalCell, Report, ReportTable
from jurygraph.studies.votes import has_words

ItemRow = dict[str, str | int | float | None]
"""A row of a table, by column."""
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
    columns: dict[str, Any] = {"annotator": lambda name: name}
    for question, figures in figures_by_question.items():
        people = figures["annotators"]
        measure = "correlation" if figures["values"] else "accuracy"
        cells = {}
        for name, person in people.items():
            value = person[measure]
            cells[name] = value if isinstance(value, dict) else IntervalCell(value, None, None)
        columns[f"{question}: {measure} (95 %)"] = cells.get
        columns[f"{question}: labels"] = {name: row["labels"] for name, row in people.items()}.get
    names = sorted({name for row in figures_by_question.values() for name in row["annotators"]})
    rows = [[read(name) for read in columns.values()] for name in names]
    return ReportTable(list(columns), rows, digits=_DIGITS)


def list_consensus_labels(
    fitted_consensus: FittedConsensus, question: str | None = None
) -> list[dict[str, str]]:
    """Return `item`, `agent` if votes name one, `label`, `spread` and `doubt` of each item, as the files name them.

    The label is the likeliest class, and none where several are as likely; of numbers there are also the `mean` of the
    labels and the `adjusted_mean`, the lowest first, and where that is the method its `standard_error`: the label is
    the class nearest to it. `labels` is their number, `spread` is that of its labels, `doubt` why it is in doubt, if it
    is. The group, prompt and text follow where votes have them. All are of the `question`, if there is one.
    """
    ballots = fitted_consensus.ballots
    agents: Sequence[str | None] = ballots.agent or [None] * len(ballots.item)
    names = zip(ballots.item_id_in_file, agents, strict=True)
    names_by_key = dict(zip(ballots.item, names, strict=True))
    details: dict[str, dict[str, str]] = {}
    for key, fields in zip(ballots.item, ballots.details, strict=True):
        for column, text in fields.items():
            if text is not None:
                details.setdefault(column, {})[key] = text
    items = describe_items(fitted_consensus)
    columns = [] if has_words(ballots.classes) else ["mean", "adjusted_mean"]
    if fitted_consensus.method == "adjusted-mean":
        columns.append("standard_error")

    def mean_or_last(key: str) -> float:
        mean = items[key]["adjusted_mean"]
        return math.inf if mean is None else float(mean)

    rows = []
    for key in sorted(items, key=mean_or_last):
        item = items[key]
        name, agent = names_by_key[key]
        posterior = item["posterior"]
        is_tied = posterior.count(max(posterior)) > 1
        label = "" if is_tied else name_likeliest_classes(ballots.classes, posterior)
        row = {"item": name, "agent": agent, "question": question, "label": label}
        for column in columns:
            row[column] = "" if item[column] is None else f"{item[column]:.6g}"
        row["labels"] = str(item["labels"])
        row["spread"] = f"{fitted_consensus.spreads[key]:.3g}"
        row["doubt"] = fitted_consensus.doubts.get(key, "")
        row |= {column: texts.get(key, "") for column, texts in details.items()}
        rows.append({column: text for column, text in row.items() if text is not None})
    return rows


def list_item_rows(
    fits: Sequence[FittedConsensus], run: RunJudgements | None = None
) -> list[ItemRow]:
    """Return a row for each item: of each question the consensus, how sure it is, the judge, and each person's label.

    The consensus is the likeliest class, and none where several are as likely. How sure it is says its probability, or
    of adjusted means the standard error. The judge's is in words where people's are, of a scale of as many steps, and
    why there is none where it judged nothing. `in doubt` names each question of which the item is, and why.

    Raises `InputError` if the run has no response that is an item, or no judge of any of the questions.
    """
    rows: dict[str, ItemRow] = {}
    for fit in fits:
        _add_texts(rows, fit)
    response_by_item = {} if run is None else _match_responses(rows, run)
    judged = [{} if run is None else find_judgements_of_question(run, fit.question) for fit in fits]
    if run is not None and not any(judged):
        names = join_names(fit.question for fit in fits)
        raise InputError(f"{run.run}: no judge is of {names}; name questions as the run does")
    for fit, judgements in zip(fits, judged, strict=True):
        _add_question(rows, fit)
        for key, row in rows.items() if judgements else ():
            judgement = judgements.get(response_by_item[key] or "")
            row[f"{fit.question} judge"] = judgement and format_judgement(
                judgement, fit.ballots.classes
            )
        _add_persons(rows, fit)
    for key, row in rows.items():
        reasons = [f"{fit.question}: {fit.doubts[key]}" for fit in fits if key in fit.doubts]
        row["in doubt"] = "; ".join(reasons) or None
    return list(rows.values())


def _match_responses(rows: Mapping[str, ItemRow], run: RunJudgements) -> dict[str, str | None]:
    """Return the response of each item: the one of its name, or of its key. Raises `InputError` if no item is one."""
    names = run.response_by_name
    response_by_item = {
        key: names.get(str(row["item"])) or names.get(key) for key, row in rows.items()
    }
    if not any(response_by_item.values()):
        items = join_names(dict.fromkeys(str(row["item"]) for row in rows.values()))
        hint = "an item is named as the response, or as its task, with --agent-column"
        raise InputError(f"{run.run}: no response is called {items}; {hint}")
    return response_by_item


def _add_texts(rows: dict[str, ItemRow], fit: FittedConsensus) -> None:
    """Add what is known of each item of a question: its name, agent, group, prompt and text."""
    ballots = fit.ballots
    agents: Sequence[str | None] = ballots.agent or [None] * len(ballots.item)
    names = zip(ballots.item, ballots.item_id_in_file, agents, ballots.details, strict=True)
    for key, item, agent, details in names:
        known = {"item": item, "agent": agent, **details}
        row = rows.setdefault(key, {})
        row |= {column: text for column, text in known.items() if text is not None}


def _add_question(rows: dict[str, ItemRow], fit: FittedConsensus) -> None:
    """Add the consensus of a question, how sure it is, and the number of its labels."""
    ballots = fit.ballots
    name = fit.question
    sure = ("mean", "standard error") if fit.method == "adjusted-mean" else ("probability",)
    gold = ("gold",) if ballots.gold else ()
    columns = [name, *(f"{name} {column}" for column in (*sure, *gold, "labels"))]
    for row in rows.values():
        row |= dict.fromkeys(columns)
    for key, item in describe_items(fit).items():
        posterior = item["posterior"]
        greatest = max(posterior)
        is_known = item["labels"] and posterior.count(greatest) == 1
        label = ballots.classes[posterior.index(greatest)] if is_known else None
        certainty = [round(greatest, _DIGITS)]
        if fit.method == "adjusted-mean":
            mean = item["adjusted_mean"]
            certainty = [mean and round(mean, _DIGITS), round(item["standard_error"], _DIGITS)]
        truth = [ballots.gold.get(key)] if ballots.gold else []
        rows[key] |= zip(columns, [label, *certainty, *truth, item["labels"]], strict=True)


def _add_persons(rows: dict[str, ItemRow], fit: FittedConsensus) -> None:
    """Add the label that each person gave, in a column for each."""
    ballots = fit.ballots
    columns = [f"{fit.question} by {person}" for person in sorted(set(ballots.annotator))]
    for row in rows.values():
        row |= dict.fromkeys(columns)
    for key, person, label in zip(ballots.item, ballots.annotator, ballots.label, strict=True):
        if label is not None:
            rows[key][f"{fit.question} by {person}"] = label


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
