"""What every plot of a study has in common: the forms it can be written in, and that it is the same file each time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jurygraph.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""By suffix what is said of a file beside the picture: nothing that differs from one day to the next."""


def refuse_undrawable(file: Path) -> None:
    """Raise `InputError` where a file's name says no form that we draw, or where matplotlib is not installed."""
    if file.suffix not in FORMS:
        raise InputError(f"{file}: pictures end in {', '.join(FORMS)}; name one of these")
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError:
        raise InputError(f"{file}: drawing needs matplotlib; pip install 'jurygraph[plot]'") from None


@contextmanager
def plotted(file: Path, form: str, size: tuple[float, float], font: float = 9.0) -> Iterator["Figure"]:
    """A figure to draw on, written in the form of a suffix when that is done; `size` is in inches.

    The same drawing gives the same file. A name that holds dollar signs is no mathematics. Raises OSError.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "jurygraph", "font.size": font, "text.parse_math": False}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(file, format=form[1:], dpi=150, metadata=FORMS[form])
