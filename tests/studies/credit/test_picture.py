"""The plot of a credit study."""

import sys
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.studies.credit import CreditStudy, Settings
from jurygraph.studies.credit.study import CreditReport
from jurygraph.studies.plots import draw_credit, require_drawable
from tests.studies.credit.reference import Example, Link, sheets_of


@pytest.fixture(scope="module")
def report() -> CreditReport:
    group = [Example([1.0, 1.0], [Link(0, 1, "weak")], [p, 0.9], [True, True]) for p in (0.1, 0.2, 0.9)]
    return CreditStudy(sheets_of([group]), Settings(seeds=0)).run(lambda count: None)


@pytest.mark.parametrize(("name", "begins"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
@pytest.mark.exhaustive
def test_the_same_report_gives_the_same_file(report: CreditReport, tmp_path: Path, name: str, begins: bytes) -> None:
    contents = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        draw_credit(report, tmp_path / folder / name, Path(name).suffix)
        contents.append((tmp_path / folder / name).read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(begins)


def test_a_figure_without_a_case_is_labelled_no_case(tmp_path: Path) -> None:
    import matplotlib as mpl

    group = [Example([1.0, 1.0], [Link(0, 1, "weak")], [0.1, 0.9], [True, True])]
    found = CreditStudy(sheets_of([group]), Settings(seeds=0)).run(lambda count: None)
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_credit(found, tmp_path / "a.svg", ".svg")
    assert (tmp_path / "a.svg").read_text().count("no case") == 4


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.gif: pictures end in \.svg, \.png, \.pdf"):
        require_drawable(tmp_path / "a.gif")


def test_a_missing_matplotlib_is_reported_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'jurygraph\[plot\]'"):
        require_drawable(tmp_path / "a.svg")
