"""Pages that stand alone: one file of HTML with its style, without a script, that asks nothing of a server.

They share templates, style and drawings with the pages of `jurygraph view`.
"""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from jurygraph.studies.report import Report, as_interval
from jurygraph.viewer.shapes import TEMPLATE_FILTERS, column_axis_ranges
from jurygraph.viewer.what_if import edge_to_url_text
from jurygraph.viewer.words import TERM_TOOLTIPS

TemplateContext = dict[str, Any]
"""What a template shows, by the names that it has there."""


@cache
def make_template_environment() -> Environment:
    """Return the templates, which escape every value and refuse names that have none.

    One environment a process: to compile the templates takes longer than to lay out a page.
    """
    templates = Environment(
        loader=PackageLoader("jurygraph.viewer"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(TEMPLATE_FILTERS)
    templates.globals.update(tips=TERM_TOOLTIPS, edge_text=edge_to_url_text)
    return templates


def render_document(template: str, title: str, context: TemplateContext) -> str:
    """Return a self-contained page: a template that extends `document.html`, laid out."""
    values = {"title": title, "style": _read_stylesheet(), **context}
    return make_template_environment().get_template(template).render(values)


def render_study(
    report: Report, title: str, command: str, pictures: Sequence[tuple[str, bytes]] = ()
) -> str:
    """Return the page of a study: its sections, with estimates as dots on the scale of their column.

    Args:
        title: the heading.
        command: the command that made the report.
        pictures: plots as SVG, each below the sentence that says what it shows.
    """
    captioned_base64_plots = [
        (sentence, b64encode(picture).decode()) for sentence, picture in pictures
    ]
    context = {
        "command": command,
        "sections": report.content,
        "ledes": max(1, len(report.conclusion)),
        "choose_scales": column_axis_ranges,
        "as_interval": as_interval,
        "pictures": captioned_base64_plots,
        "notes": report.notes,
    }
    return render_document("study.html", title, context)


def render_notebook_fragment(context: TemplateContext) -> str:
    """Return what a notebook draws of a run or a response: a part of a page, laid out.

    Its style holds inside it alone: the rules of the pages nested in one, with their variables set on its element.
    """
    values = {"style": _read_stylesheet().replace(":root", "&"), **context}
    return make_template_environment().get_template("notebook.html").render(values)


@cache
def _read_stylesheet() -> str:
    """Return the style of the pages; a template trusts it, since it comes with the package."""
    return files("jurygraph.viewer").joinpath("static", "style.css").read_text("utf-8")
