"""Pages that stand alone: one file of HTML with its style, without a script, that asks nothing of a server.

They share templates, style and drawings with the pages of `jurygraph view`.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from jurygraph.viewer.shapes import FILTERS


def make_templates() -> Environment:
    """Return the templates, which escape every value and refuse names that have none."""
    templates = Environment(
        loader=PackageLoader("jurygraph.viewer"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(FILTERS)
    return templates


def render_document(template: str, title: str, context: dict[str, Any]) -> str:
    """Return a page that stands alone: a template that extends `document.html`, laid out."""
    values = {"title": title, "style": _read_style(), **context}
    return _standalone_templates().get_template(template).render(values)


@cache
def _standalone_templates() -> Environment:
    return make_templates()


@cache
def _read_style() -> str:
    """Return the style of the pages; a template trusts it, since it comes with the package."""
    return files("jurygraph.viewer").joinpath("static", "style.css").read_text("utf-8")
