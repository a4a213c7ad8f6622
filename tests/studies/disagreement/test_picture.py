"""The plot of the series."""

from pathlib import Path

import pytest

from jurygraph.studies.disagreement import DisagreementReport, report
from jurygraph.studies.plots import draw_disagreement
from tests.studies.disagreement.made import make_samples

ROWS = [[1.0, 0.0], [0.2, 0.2], [0.5, 0.0], [0.3, 0.3]]


@pytest.fixture(scope="module")
def reports() -> list[DisagreementReport]:
    named = ("macrm", "multi $head")
    return [report(make_samples(ROWS, steps=[1, 2, 3, 4], run=name), percentile=50) for name in named]


@pytest.mark.parametrize(("name", "begins"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.png", b"\x89PNG")])
@pytest.mark.exhaustive
def test_the_same_reports_give_the_same_file(
    reports: list[DisagreementReport], tmp_path: Path, name: str, begins: bytes
) -> None:
    contents = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        draw_disagreement(reports, tmp_path / folder / name, Path(name).suffix)
        contents.append((tmp_path / folder / name).read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(begins)


def test_the_plot_has_three_panels_with_every_run(reports: list[DisagreementReport], tmp_path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_disagreement(reports, tmp_path / "a.svg", ".svg")
    drawn = (tmp_path / "a.svg").read_text()
    for words in ("(a) mean reward", "(b) mean D_pair", "(c) conflict rate", "macrm", "multi $head"):
        assert words in drawn
