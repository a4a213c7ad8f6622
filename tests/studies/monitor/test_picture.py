"""The plot of a stream."""

from pathlib import Path

import pytest

from jurygraph.studies.monitor import Watch
from jurygraph.studies.plots import draw_stream
from tests.agents.data_analyzer.streams import normal_steps


@pytest.fixture(scope="module")
def watch() -> Watch:
    watch = Watch(keep=True)
    for step in normal_steps(1, 130, -3.0, after=100):
        watch.feed(step)
    return watch


@pytest.mark.parametrize(("name", "begins"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
@pytest.mark.exhaustive
def test_the_same_stream_gives_the_same_file(watch: Watch, tmp_path: Path, name: str, begins: bytes) -> None:
    contents = []
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        draw_stream(watch.report(), watch.history, tmp_path / place / name, Path(name).suffix)
        contents.append((tmp_path / place / name).read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(begins)


def test_every_series_has_its_title(watch: Watch, tmp_path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_stream(watch.report(), watch.history, tmp_path / "a.svg", ".svg")
    text = (tmp_path / "a.svg").read_text()
    assert all(f">{name}<" in text for name in watch.history)
