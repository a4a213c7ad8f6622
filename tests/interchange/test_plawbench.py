"""PLawBench: sections of a legal analysis, each with sub-items that give partial credit."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.interchange.plawbench import UNDIVIDED_CRITERIA_IMPORT_NOTE, parse_scored_sub_items
from jurygraph.schema import Criterion
from jurygraph.schema.task import Part
from tests.examples import at_most
from tests.interchange.published import PLAWBENCH, notes_of, tasks

LOAN, THEFT, OTHER = PLAWBENCH


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plawbench.jsonl"


def test_the_prompt_of_a_case_equals_that_of_the_original_project(file: Path) -> None:
    loan, theft, _ = tasks("plawbench", file, *PLAWBENCH)
    assert loan.query == "## 案例\n甲借款给乙，乙未还。\n\n## 问题\n乙应当还款吗？"
    assert theft.query == "Is it theft?"
    assert (loan.reference, theft.reference) == (None, "It is not.")


def test_a_section_is_a_criterion_that_weighs_its_points_with_its_sub_items_as_parts(
    file: Path,
) -> None:
    (loan,) = tasks("plawbench", file, LOAN)
    assert loan.rubric is not None
    texts = [item["criterion"] for item in LOAN["rubrics"]]
    facts = [
        Part(text="（+5分）甲借款给乙。", weight=5),
        Part(text="(+10分) 乙未还。（未提及“未还”扣2分）", weight=10),
    ]
    steps = [
        Part(text="一是合同。（＋5分）\n（1）提及合同；", weight=5),
        Part(text="二是违约。（+2.5 分）\n（1）提及违约。", weight=2.5),
    ]
    assert loan.rubric.criteria == (
        Criterion(id="criterion-1", text=texts[0], weight=5),
        Criterion(id="criterion-2", text=texts[1], weight=15, parts=tuple(facts)),
        Criterion(id="criterion-3", text=texts[2], weight=7.5, parts=tuple(steps)),
        Criterion(id="criterion-4", text=texts[3], weight=15),
    )


def test_a_section_with_inconsistent_sub_items_is_judged_as_one_with_a_note(file: Path) -> None:
    (loan,) = tasks("plawbench", file, LOAN)
    assert notes_of("plawbench", file, *PLAWBENCH) == [
        (UNDIVIDED_CRITERIA_IMPORT_NOTE, f"{loan.id}: criterion-4"),
        (UNDIVIDED_CRITERIA_IMPORT_NOTE, f"{tasks('plawbench', file, OTHER)[0].id}: criterion-1"),
    ]


def test_other_columns_are_kept(file: Path) -> None:
    loan, theft, other = tasks("plawbench", file, *PLAWBENCH)
    named = ("结论得分", "案情简述得分", "分析过程得分", "法条依据得分")
    criteria = {f"criterion-{place}": {"tags": name} for place, name in enumerate(named, 1)}
    assert loan.metadata == {"label": "个人生活", "criteria": criteria}
    assert theft.metadata == {"criteria": {"criterion-1": {"tags": ["conclusion"]}}}
    assert other.metadata == {"split": "extra", "criteria": {"criterion-1": {"scorer": "b"}}}


def test_an_id_is_derived_from_the_content_of_the_case(file: Path) -> None:
    loan, theft, other = tasks("plawbench", file, *PLAWBENCH)
    assert len({loan.id, theft.id, other.id}) == 3, "the same question may have another rubric"
    (later,) = tasks("plawbench", file, {**LOAN, "added": 1, "label": "other"})
    assert later.id == loan.id == f"case-{loan.id[5:]}"
    assert len(loan.id) == len("case-") + 12


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no marks (5分)", []),
        ("head\n(+1)a\n(+2)b", [("(+1)a", 1), ("(+2)b", 2)]),
        ("1. (+1)a\n more\n2. (+2)b", [("1. (+1)a\n more", 1), ("2. (+2)b", 2)]),
        ("(+1)a。（+2）b", [("(+1)a。", 1), ("（+2）b", 2)]),
        ("a。(+1分) b。(+2分)", [("a。(+1分)", 1), ("b。(+2分)", 2)]),
        ("（＋1 分））a\nb（+ 2）\nc", [("（＋1 分））a", 1), ("b（+ 2）\nc", 2)]),
        ("a (-2分) b（扣3分）", []),
    ],
)
def test_sub_items_are_found_by_their_marks(text: str, found: list[tuple[str, float]]) -> None:
    assert [(part["text"], part["weight"]) for part in parse_scored_sub_items(text)] == found


@settings(max_examples=at_most(30), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.text("甲乙。 \n", max_size=8)), max_size=6),
    st.booleans(),
)
def test_any_text_between_the_marks_is_kept_in_full(
    items: list[tuple[int, str]], leading: bool
) -> None:
    texts = [
        f"（+{points}分）{words}乙" if leading else f"{words}乙（+{points}分）"
        for points, words in items
    ]
    text = "\n".join(texts)
    found = parse_scored_sub_items(text)
    assert [part["weight"] for part in found] == [points for points, _ in items]
    within = "".join("".join(part["text"] for part in found).split())
    assert "".join(text.split()).endswith(within)
    assert within.count("（+") == len(items)


@pytest.mark.parametrize(
    "criterion",
    [
        "（+0分）a\n（+5分）b",
        "（+3分）\n（+2分）b",
        "【案情简述】20分（+3分）\n（+2分）b",
        "（+5分）" + "a\n（+0.0）" * 3,
    ],
)
def test_sub_items_without_words_or_worth_are_no_parts(file: Path, criterion: str) -> None:
    row = {**LOAN, "rubrics": [{"criterion": criterion, "points": 5}]}
    (task,) = tasks("plawbench", file, row)
    assert task.rubric is not None
    assert task.rubric.criteria[0].parts == ()
    assert notes_of("plawbench", file, row) == [
        (UNDIVIDED_CRITERIA_IMPORT_NOTE, f"{task.id}: criterion-1")
    ]
