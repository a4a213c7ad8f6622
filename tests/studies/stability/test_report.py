"""The report has the paper's tables from the scores of a table, whose units are worked out by hand."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.wording import sem_over_rep
from jurygraph.errors import InputError
from jurygraph.studies.presentations import read_presentation_scores, read_weights
from jurygraph.studies.report import IntervalCell
from jurygraph.studies.stability import measure_stability, variance_table_digits
from tests.studies.figures import Figures, figures_of

OLD = {"ann": 0.25, "bob": 0.75}


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def rows_of(
    seed: str, people: int, families: dict[str, list[float]], repeats: list[float], **fields: Any
) -> Iterator[dict[str, Any]]:
    common = {"seed": seed, "stakeholders": people, **fields}
    for family, scores in families.items():
        for version, score in enumerate(scores):
            yield {**common, "family": family, "version": version, "score": score}
    for number, score in enumerate(repeats):
        yield {**common, "family": "repeat", "version": number, "score": score}


ROWS = [
    *rows_of("two", 2, {"order": [4.0, 6.0], "header": [5.0, 5.0]}, [5.0, 6.0], quality="high"),
    *rows_of("eight", 8, {"order": [2.0, 8.0], "header": [5.0, 5.0], "summary": [1.0, 9.0]}, [5.0, 7.0],
             quality="high"),
    *rows_of("low", 8, {"order": [2.0, 2.0], "header": [2.0, 2.0]}, [2.0, 2.0], quality="low"),
]  # fmt: skip


def measured(folder: Path, rows: list[dict[str, Any]], **choice: Any) -> Figures:
    return figures_of(measure_stability(read_presentation_scores(write(folder, rows)), **choice))


def test_noise_is_the_mean_over_units_and_growth_is_over_the_families_of_both_ends(
    tmp_path: Path,
) -> None:
    found = measured(tmp_path, ROWS, quality_bands=("high",))
    assert found.stakeholders == [2, 8]
    assert [(row.semantic.value, row.repeat.value) for row in found.noise] == [
        (pytest.approx(2 / 3), 0.5),
        (pytest.approx((9 + 9 + 0 + 0 + 16 + 16) / 5), 2.0),
    ]
    (ratio,) = found.ratios
    assert ratio.growth.value == pytest.approx(10.0 / (2 / 3))
    assert ratio.growth_same_families.value == pytest.approx((9 + 9) / 3 / (2 / 3))
    assert (ratio.semantic_to_repeat, ratio.repeat_freedom, ratio.wording_alone.value) == (
        None,
        1,
        8.0,
    )
    assert [unit.cv for unit in found.units] == pytest.approx([(2 / 3) ** 0.5 / 5, 10.0**0.5 / 5])
    families = {row.name: row.variance for row in found.families}
    assert [families[name]["8"].value for name in ("header", "order", "summary")] == [
        0.0,
        18.0,
        32.0,
    ]
    assert (families["order"]["2"].value, families["summary"]["2"]) == (2.0, None)


def test_bands_are_rows_and_the_last_row_is_all_of_them(tmp_path: Path) -> None:
    found = measured(tmp_path, ROWS)
    pooled = [("All (Med+High)", "-"), ("All (Low)", "-"), ("all", "all")]
    assert [(row.judge, row.quality) for row in found.ratios] == [
        ("judge", "high"),
        ("judge", "low"),
        *pooled,
    ]
    low, both = found.ratios[1], found.ratios[-1]
    assert (low.growth, low.semantic_to_repeat, low.wording_alone.value) == (None, None, 0.0)
    assert both.wording_alone.value == pytest.approx((10.0 - 2.0) / 2)


def test_the_papers_rows_pool_the_judges_and_bands_of_their_names(tmp_path: Path) -> None:
    rows = [
        row
        for judge, scale in (("a", 1.0), ("b", 2.0))
        for quality, spread in (("Low", 1.0), ("Medium", 2.0), ("High", 3.0), ("odd", 9.0))
        for row in rows_of(
            f"{quality}-{judge}",
            2,
            {"order": [5.0, 5.0 + scale * spread]},
            [1.0, 2.0, 3.0],
            quality=quality,
            judge=judge,
        )
    ]
    found = measured(tmp_path, rows)
    pooled = {row.judge: row.semantic.value for row in found.noise if row.judge.startswith("All")}
    assert pooled == {
        "All (Med+High)": (4.0 + 9.0 + 16.0 + 36.0) / 4 / 2,
        "All (Low)": (1.0 + 4.0) / 2 / 2,
    }
    by_judge = {row.judge: row for row in found.ratios}
    variances = np.array([[2.0], [4.5], [8.0], [18.0]])
    one = sem_over_rep(5.0 + np.sqrt(2 * variances) * [0.0, 1.0], np.array([[1.0, 2.0, 3.0]] * 4))
    assert one is not None
    assert (
        by_judge["All (Med+High)"].semantic_to_repeat.value
        == pytest.approx(one.value)
        == 8.125 * 6 / 8
    )
    with pytest.raises(InputError, match="no score has the quality 'hihg'; did you mean high"):
        measured(tmp_path, ROWS, quality_bands=("hihg",))


def test_the_plot_has_the_noise_of_all_bands_by_number_of_stakeholders(tmp_path: Path) -> None:
    report = measure_stability(read_presentation_scores(write(tmp_path, ROWS)))
    (series,) = report.plots[0].series
    assert (series.label, series.x) == ("score", ["2", "8"])
    assert series.y == [pytest.approx(2 / 3), pytest.approx((10.0 + 0.0) / 2)]


def test_small_variances_have_the_digits_that_they_need() -> None:
    assert [
        variance_table_digits([value, None]) for value in (0.0, 1.2, 0.1, -0.9, 0.05, 0.00021)
    ] == [
        2,
        2,
        2,
        2,
        4,
        5,
    ]
    assert variance_table_digits([IntervalCell(0.5, 0.1, 0.9), 0.01]) == 2


def adaptive(
    seed: str, weights: list[float], utilities: list[float], version: int
) -> dict[str, Any]:
    score = sum(w * u for w, u in zip(weights, utilities, strict=True))
    people = ("ann", "bob")
    return {
        "seed": seed, "family": "order", "version": version, "stakeholders": 2, "score": score, "task": "trip",
        "weights": dict(zip(people, weights, strict=True)), "utilities": dict(zip(people, utilities, strict=True)),
        "difficulty": {"ann": 1.0, "bob": 3.0},
    }  # fmt: skip


def test_the_same_utilities_are_weighed_anew_and_the_worst_variant_is_broken_down(
    tmp_path: Path,
) -> None:
    given = [([0.5, 0.5], [2.0, 8.0]), ([0.7, 0.3], [2.0, 8.0]), ([0.3, 0.7], [4.0, 8.0])]
    rows = [
        adaptive("plan", weights, utilities, place)
        for place, (weights, utilities) in enumerate(given)
    ]
    own = tmp_path / "own.csv"
    own.write_text("task,stakeholder,weight\ntrip,ann,0.25\ntrip,bob,0.75\n", encoding="utf-8")
    found = measured(tmp_path, rows, file_weights=read_weights(own))
    by_name = {row.name: row.variance["2"].value for row in found.weightings}
    assert list(by_name) == [
        "by the judge",
        "uniform",
        "DecompR τ=3",
        "DecompR τ=5",
        "DecompR τ=8",
        "own.csv",
    ]
    assert by_name["uniform"] == pytest.approx((0.0 + 0.0 + 1.0) * 2 / 9 * 3 / 2)
    assert by_name["own.csv"] == pytest.approx(0.25**2 * 4 * 2 / 9 * 3 / 2)
    assert by_name["by the judge"] == pytest.approx((0.2**2 + 1.4**2 + 1.6**2) / 2)
    for text, message in (
        (
            "trip,ann,0.5\ntrip,bib,0.5\n",
            "the weights of task 'trip' are of ann, bib; write those of ann, bob",
        ),
        ("trap,ann,1\n", "has no weights of a task whose scores have utilities; such tasks: trip"),
        (
            "trip,ann,0.5\ntrip,ann,0.5\n",
            "own.csv, line 3: a second weight of 'ann' in task 'trip'",
        ),
    ):
        own.write_text(f"task,stakeholder,weight\n{text}", encoding="utf-8")
        with pytest.raises(InputError, match=re.escape(message)):
            measured(tmp_path, rows, file_weights=read_weights(own))
    (worst,) = found.worst
    assert (worst.seed, worst.version) == ("plan", 1)
    assert worst.shift == pytest.approx(0.2 * 2 - 0.2 * 8)
    assert [worst.stakeholders[name].product for name in ("ann", "bob")] == pytest.approx(
        [0.4, -1.6]
    )
    assert found.drift[0].units == 1


def test_a_wrong_cell_is_named_by_file_line_and_field(tmp_path: Path) -> None:
    csv = tmp_path / "scores.csv"
    csv.write_text("seed,family,stakeholders,score\na,order,2,5\na,order,two,6\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"scores\.csv, line 3, field stakeholders: is the text 'two'"
    ):
        read_presentation_scores(csv)
    csv.write_text("seed,family,score\na,order,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no column 'stakeholders'"):
        read_presentation_scores(csv)
    row = adaptive("plan", [0.5, 0.5], [2.0, 8.0], 0) | {"utilities": {"ann": 2.0}}
    with pytest.raises(
        InputError, match="field weights: are of other stakeholders than `utilities`"
    ):
        read_presentation_scores(write(tmp_path, [row]))
    with pytest.raises(InputError, match="no response has two scored variants"):
        measured(tmp_path, list(rows_of("one", 2, {"order": [5.0]}, [5.0, 5.0])))
    own = tmp_path / "own.csv"
    own.write_text("task,stakeholder,weight\ntrip,ann,0.5\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"the weights of task 'trip' sum to 0\.5; they have to sum to 1"
    ):
        read_weights(own)
