"""Shared parts of all plots: file formats, and output that is identical for identical input."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METADATA_BY_SUFFIX = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Metadata of the file by suffix: without dates, so that the same plot gives the same file."""


def require_drawable(file: Path) -> None:
    """Raise `InputError` if the suffix is not a supported format, or if matplotlib is not installed."""
    if file.suffix not in METADATA_BY_SUFFIX:
        raise InputError(f"{file}: pictures end in {', '.join(METADATA_BY_SUFFIX)}; name one of these")
    try:
        import matplotlib  # noqa: F401 - only checks that it is installed
    except ImportError:
        raise InputError(f"{file}: drawing needs matplotlib; pip install 'jurygraph[plot]'") from None


@contextmanager
def open_figure(file: Path, form: str, size: tuple[float, float], font: float = 9.0) -> Iterator["Figure"]:
    """Yield a figure to draw on, and write it afterwards in the format of the suffix `form`; `size` is in inches.

    The same drawing gives the same file. Dollar signs in names are not parsed as mathematics. Raises OSError.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "jurygraph", "font.size": font, "text.parse_math": False}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(file, format=form[1:], dpi=150, metadata=METADATA_BY_SUFFIX[form])
