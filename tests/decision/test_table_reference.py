"""Inputs of a component, recomputed cell by cell in plain Python, for every combination of two or three verdicts."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from jurygraph.decision.table import (
    ABSENT_CODE,
    ABSTAINED_CODE,
    FAILED_BY_INFRASTRUCTURE_CODE,
    FAILED_BY_RESPONSE_CODE,
    JUDGED_NOT_APPLICABLE_CODE,
    NO_MODEL_CODE,
    NO_VARIANTS_CODE,
    NOT_APPLICABLE_CODE,
    OK_CODE,
    WORST_CASE_CODE,
    VerdictTable,
    build_verdict_table,
)
from jurygraph.schema import ComponentInput, Question, RecordedVerdict
from jurygraph.schema.verdict import NO_VARIANT_GATE
from tests.examples import some_or_all
from tests.graphs import scripted


class Cell(NamedTuple):
    """One verdict as it counts: its value, whether it is met, its code and its confidence."""

    value: float
    met: bool
    verdict_code: int
    sure: float = 1.0


OK_CELLS = {
    RecordedVerdict(score=0.25): Cell(0.25, False, OK_CODE),
    RecordedVerdict(score=0.25, met=True, confidence=0.25): Cell(0.25, True, OK_CODE, 0.25),
    RecordedVerdict(score=0.75, confidence=0.5): Cell(0.75, True, OK_CODE, 0.5),
    RecordedVerdict(score=0.75, met=False): Cell(0.75, False, OK_CODE),
    RecordedVerdict(score=0.5): Cell(0.5, True, OK_CODE),
}
OTHER_CELLS = {
    scripted.ABSTENTION: Cell(0.0, False, ABSTAINED_CODE),
    scripted.NO_MODEL: Cell(0.0, False, NO_MODEL_CODE),
    scripted.RESPONSE_FAILURE: Cell(0.0, False, FAILED_BY_RESPONSE_CODE),
    scripted.INFRASTRUCTURE_FAILURE: Cell(0.0, False, FAILED_BY_INFRASTRUCTURE_CODE),
    RecordedVerdict(status="not_applicable", gated_by="gate"): Cell(
        0.0, False, NOT_APPLICABLE_CODE
    ),
    RecordedVerdict(status="not_applicable", confidence=0.25): Cell(
        0.0, False, JUDGED_NOT_APPLICABLE_CODE, 0.25
    ),
    RecordedVerdict(score=0.0, met=False, gated_by="empty-response"): Cell(
        0.0, False, WORST_CASE_CODE
    ),
    RecordedVerdict(score=1.0, met=True, unsupported="worst-case"): Cell(
        1.0, True, WORST_CASE_CODE
    ),
    RecordedVerdict(score=0.8, met=True, unsupported="stands"): Cell(0.8, True, OK_CODE),
    RecordedVerdict(status="not_applicable", gated_by=NO_VARIANT_GATE): Cell(
        0.0, False, NO_VARIANTS_CODE
    ),
}
CELLS = {**OK_CELLS, **OTHER_CELLS, None: Cell(0.0, False, ABSENT_CODE)}
FEWER = [*list(OK_CELLS)[::2], *list(OTHER_CELLS)[1::2], None]
"""Those of which every three are combined."""

SCORED = (OK_CODE, WORST_CASE_CODE)
ANSWERED = (OK_CODE, JUDGED_NOT_APPLICABLE_CODE)
VOTING = (OK_CODE, WORST_CASE_CODE, JUDGED_NOT_APPLICABLE_CODE)
UNJUDGED = (ABSTAINED_CODE, NO_MODEL_CODE, FAILED_BY_RESPONSE_CODE, FAILED_BY_INFRASTRUCTURE_CODE)
PAIRS = list(itertools.product(CELLS, repeat=2))
TRIPLES = list(itertools.product(FEWER, repeat=3))


def make_question(samples: int) -> Question:
    return Question(id="q", evaluator="e", version="1", subject="s", view="v", samples=samples)


def make_table(rows: Sequence[Sequence[RecordedVerdict | None]]) -> VerdictTable:
    names = [f"r{number:04}" for number in range(len(rows))]
    verdicts = [
        RecordedVerdict(
            **{
                **vars(verdict),
                "question": "q",
                "about": name,
                "responses": (name,),
                "sample": sample,
            }
        )
        for name, row in zip(names, rows, strict=True)
        for sample, verdict in enumerate(row)
        if verdict is not None
    ]
    return build_verdict_table([make_question(len(rows[0]))], names, verdicts)


def effective_row(row: Sequence[Cell], spec_input: ComponentInput) -> list[Cell]:
    """The row as the input counts it: without the unsure, and as one cell where the majority decides."""
    without_variants = WORST_CASE_CODE if spec_input.if_skipped == "zero" else NOT_APPLICABLE_CODE
    counted = [
        cell._replace(verdict_code=without_variants)
        if cell.verdict_code == NO_VARIANTS_CODE
        else cell
        for cell in row
    ]
    sure = [
        cell._replace(verdict_code=ABSTAINED_CODE)
        if cell.verdict_code in ANSWERED and cell.sure < spec_input.min_confidence
        else cell
        for cell in counted
    ]
    if spec_input.reduce != "majority" or len(row) == 1:
        return [
            cell._replace(verdict_code=NOT_APPLICABLE_CODE)
            if cell.verdict_code == JUDGED_NOT_APPLICABLE_CODE
            else cell
            for cell in sure
        ]
    votes = Counter(
        None if cell.verdict_code == JUDGED_NOT_APPLICABLE_CODE else cell.value
        for cell in sure
        if cell.verdict_code in ANSWERED
    )
    requested = [cell for cell in sure if cell.verdict_code in (*VOTING, *UNJUDGED)]
    leaving = [ABSTAINED_CODE] if spec_input.vote == "discard-first" else []
    seats = [cell for cell in requested if cell.verdict_code not in leaving]
    value, number = votes.most_common(1)[0] if votes else (0.0, 0)
    if 2 * number > len(seats) and value is None:
        return [Cell(0.0, False, NOT_APPLICABLE_CODE)]
    if 2 * number > len(seats):
        met = sum(cell.met for cell in sure if cell.verdict_code == OK_CODE and cell.value == value)
        return [Cell(value, 2 * met >= number, OK_CODE)]
    # the worst case has no value yet, and so no vote
    if any(cell.verdict_code == WORST_CASE_CODE for cell in sure):
        return [Cell(0.0, False, WORST_CASE_CODE)]
    if requested:
        return [
            Cell(
                0.0,
                False,
                max(
                    [
                        ABSTAINED_CODE,
                        *(cell.verdict_code for cell in sure if cell.verdict_code in UNJUDGED),
                    ]
                ),
            )
        ]
    return [
        Cell(
            0.0,
            False,
            NOT_APPLICABLE_CODE
            if any(cell.verdict_code == NOT_APPLICABLE_CODE for cell in sure)
            else ABSENT_CODE,
        )
    ]


class FilledCell(NamedTuple):
    """A cell as a combiner reads it."""

    value: float
    met: bool
    judged: bool
    applicable: bool


def fill_cell(
    cell: Cell, spec_input: ComponentInput, rule: str, direction: int, scenario: str
) -> FilledCell:
    applies = cell.verdict_code not in (ABSENT_CODE, NOT_APPLICABLE_CODE)
    there = not applies or cell.verdict_code in SCORED
    is_penalty = spec_input.weights[0] * direction < 0
    live = applies or (spec_input.if_skipped == "zero" and cell.verdict_code == NOT_APPLICABLE_CODE)
    live = live and (there or scenario != "partial")
    fills = {"counted": is_penalty and rule != "gear", "low": False, "high": True, "partial": False}
    if not there:
        return FilledCell(float(fills[scenario]), fills[scenario], False, live)
    if cell.verdict_code == WORST_CASE_CODE:
        return FilledCell(float(is_penalty), is_penalty, False, live)
    return FilledCell(cell.value, cell.met, True, live)


def fold_row(row: list[FilledCell], reduce: str) -> list[FilledCell]:
    live = [cell for cell in row if cell.applicable]
    if not live:
        return [FilledCell(0.0, False, all(cell.judged for cell in row), False)]
    values = [cell.value for cell in live]
    value = {"mean": sum(values) / len(values), "min": min(values), "max": max(values)}[reduce]
    met = 2 * sum(cell.met for cell in live) >= len(live)
    return [FilledCell(value, met, all(cell.judged for cell in live), True)]


FOLDS = ("mean", "min", "max")
REDUCE = [None, *FOLDS, "majority"]
SETTINGS = [
    {"weights": (weight,), "if_skipped": gated, "min_confidence": confident, "vote": vote}
    for weight, gated, confident, vote in itertools.product(
        (2.0, -2.0), ("left-out", "zero"), (0.0, 0.5), ("discard-first", "all-seats")
    )
]


@pytest.mark.parametrize(
    ("rows", "reduce"),
    [
        pytest.param(
            rows,
            reduce,
            marks=pytest.mark.exhaustive if name == "triples" and reduce in FOLDS else (),
            id=f"{name} {reduce}",
        )
        for name, rows in {
            "pairs": PAIRS,
            "triples": TRIPLES,
            "equals": PAIRS[:: len(CELLS) + 1],
        }.items()
        for reduce in REDUCE
    ],
)
@some_or_all("every_settings", SETTINGS[::3], SETTINGS)
def test_cells_are_filled_and_folded_one_by_one(
    rows: list[tuple[Any, ...]], reduce: Any, every_settings: Any
) -> None:
    table, width = make_table(rows), len(rows[0])
    for settings in every_settings:
        spec_input = ComponentInput(questions=("q",), reduce=reduce, input_weight=3.0, **settings)
        counted = [effective_row([CELLS[verdict] for verdict in row], spec_input) for row in rows]
        cases = itertools.product(
            ("conservative", "gear"), (1, -1), ("counted", "low", "high", "partial")
        )
        for rule, direction, scenario in cases:
            cells = table.score_matrix(spec_input, rule, direction, scenario)  # type: ignore[arg-type]
            expected = [
                [fill_cell(cell, spec_input, rule, direction, scenario) for cell in row]
                for row in counted
            ]
            if reduce in FOLDS and width > 1:
                expected = [fold_row(row, reduce) for row in expected]
            for name in FilledCell._fields:
                found = getattr(cells, name).tolist()
                assert found == [[getattr(cell, name) for cell in row] for row in expected], (
                    settings,
                    scenario,
                    name,
                )
            assert (cells.weight.tolist(), cells.input_weight) == (
                [settings["weights"][0]] * len(expected[0]),
                3.0,
            )


@pytest.mark.parametrize("rows", [PAIRS, TRIPLES], ids=["pairs", "triples"])
@pytest.mark.parametrize("reduce", REDUCE)
@some_or_all("every_settings", SETTINGS[::3], SETTINGS)
def test_judged_weight_and_discarded_verdicts_match_a_count_one_by_one(
    rows: Any, reduce: Any, every_settings: Any
) -> None:
    table = make_table(rows)
    for settings in every_settings:
        spec_input = ComponentInput(questions=("q",), reduce=reduce, **settings)
        given = [[CELLS[verdict] for verdict in row] for row in rows]
        counted = [effective_row(row, spec_input) for row in given]
        settled = (*SCORED, NOT_APPLICABLE_CODE) if spec_input.if_skipped == "zero" else SCORED
        known = [sum(cell.verdict_code in settled for cell in row) for row in counted]
        requested = [
            sum(cell.verdict_code in (*settled, *UNJUDGED) for cell in row) for row in counted
        ]
        if reduce is not None:
            known = [k / max(a, 1) for k, a in zip(known, requested, strict=True)]
            requested = [min(a, 1) for a in requested]
        judged, wanted = table.judged_and_requested_weight(spec_input, 1)
        assert (judged.tolist(), wanted.tolist()) == (
            [2.0 * k for k in known],
            [2.0 * a for a in requested],
        )

        discarded, divided = table.count_discarded(spec_input)
        unsure = [
            sum(
                cell.verdict_code in VOTING and cell.sure < spec_input.min_confidence
                for cell in row
            )
            for row in given
        ]
        without = [
            reduce == "majority"
            and new[0].verdict_code in UNJUDGED
            and any(cell.verdict_code in VOTING for cell in old)
            for old, new in zip(given, counted, strict=True)
        ]
        assert (discarded.tolist(), divided.tolist()) == (unsure, without)

        verdict_codes, weights = table.verdict_codes(spec_input, 1)
        assert verdict_codes.tolist() == [[cell.verdict_code for cell in row] for row in counted]
        assert weights.tolist() == [spec_input.weights[0]] * len(counted[0])
