"""Plot of a disagreement study: the three panels of MACRM's Fig. 3, with a line for each run."""

from collections.abc import Sequence
from pathlib import Path

from jurygraph.studies.disagreement.models import DisagreementReport
from jurygraph.studies.plots import open_figure

_PANELS = (
    ("reward", "(a) mean reward"),
    ("disagreement", "(b) mean D_pair"),
    ("conflict_rate", "(c) conflict rate, each run by its own τ"),
)
_LINE_STYLES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"))


def draw(reports: Sequence[DisagreementReport], file: Path, form: str) -> None:
    """Write mean reward, mean D_pair and conflict rate over the steps, in the format of the suffix `form`.

    The same reports give the same file. Raises OSError.
    """
    with open_figure(file, form, (11.0, 3.6)) as figure:
        for axes, (name, title) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
            for index, one in enumerate(reports):
                stroke, mark = _LINE_STYLES[index % len(_LINE_STYLES)]
                steps, series = [each.step for each in one.steps], [getattr(each, name) for each in one.steps]
                axes.plot(steps, series, linestyle=stroke, marker=mark, markersize=3.0, label=one.run)
            axes.set(xlabel="step", title=title)
        axes.set_ylim(0.0, max(0.4, *(1.1 * each.conflict_rate for one in reports for each in one.steps)))
        axes.legend()
