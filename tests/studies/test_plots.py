"""Properties of every plot of a study."""

from pathlib import Path

import pytest

from jurygraph.studies.plots import METADATA_BY_SUFFIX, open_figure


def plot_bytes(file: Path, title: str) -> bytes:
    with open_figure(file, file.suffix, (2.0, 2.0)) as figure:
        figure.subplots().set_title(title)
    return file.read_bytes()


@pytest.mark.landing
@pytest.mark.parametrize("form", METADATA_BY_SUFFIX)
def test_the_same_drawing_gives_the_same_file(tmp_path: Path, form: str) -> None:
    assert plot_bytes(tmp_path / f"one{form}", "κ") == plot_bytes(tmp_path / f"two{form}", "κ")


@pytest.mark.parametrize("name", [r"cost $\no$", "$5 or $6"])
def test_dollar_signs_are_not_parsed_as_mathematics(tmp_path: Path, name: str) -> None:
    assert f"<!-- {name} -->".encode() in plot_bytes(tmp_path / "plot.svg", name)
