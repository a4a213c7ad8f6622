"""The plot of a consensus."""

from pathlib import Path

import pytest

from jurygraph.studies.consensus import ConsensusReport, Settings, collect_votes, fit_consensus, report
from jurygraph.studies.plots import draw_consensus
from tests.studies.consensus.made import AGENTS, PANEL, votes_file


@pytest.fixture(scope="module")
def panel_report() -> ConsensusReport:
    agents = [f"the $ {name}" for name in AGENTS]
    one = fit_consensus(collect_votes([votes_file(*PANEL, agent=agents)]), Settings(preset="converged", subsets=3))
    return report(one, one.stability(), stability_with_items=one.stability(with_items=True))


def draw_text(panel_report: ConsensusReport, folder: Path) -> str:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_consensus(panel_report, folder / "a.svg", ".svg")
    return (folder / "a.svg").read_text()


@pytest.mark.parametrize(("name", "begins"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.png", b"\x89PNG")])
@pytest.mark.exhaustive
def test_the_same_report_gives_the_same_file(
    panel_report: ConsensusReport, tmp_path: Path, name: str, begins: bytes
) -> None:
    contents = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        draw_consensus(panel_report, tmp_path / folder / name, Path(name).suffix)
        contents.append((tmp_path / folder / name).read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(begins)


@pytest.mark.exhaustive
def test_the_plot_has_four_panels_with_names_of_agents_and_annotators(
    panel_report: ConsensusReport, tmp_path: Path
) -> None:
    drawn = draw_text(panel_report, tmp_path)
    for text in (
        "(a) agents",
        "(b) annotators",
        "(c) ambiguity",
        "(d) mean τ_b",
        "mean rank sd",
        "3 subsets",
        "dark: with items drawn",
    ):
        assert text in drawn
    for text in ("the $ small", "the $ large", "ada", "cy", "Dawid–Skene", "strictness", "leniency", "accuracy"):
        assert text in drawn
    assert "mathdefault" not in drawn


@pytest.mark.landing
def test_panels_without_data_contain_a_note(tmp_path: Path) -> None:
    drawn = draw_text(report(fit_consensus(collect_votes([votes_file(*PANEL)]), Settings())), tmp_path)
    assert "no row names an agent" in drawn
    assert drawn.count("not measured") == 2


@pytest.mark.exhaustive
def test_only_the_first_agents_are_drawn(tmp_path: Path) -> None:
    votes = votes_file(*PANEL, *PANEL, *PANEL, agent=[f"agent {place:03}" for place in range(3 * len(PANEL))])
    drawn = draw_text(report(fit_consensus(collect_votes([votes]), Settings())), tmp_path)
    assert f"(a) agents, the first 25 of {3 * len(PANEL)}" in drawn
