"""The report as HTML: an element for a notebook, a page for a file."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ..utils import import_optional
from ._pictures import draw
from ._sections import document


def as_html(results: dict[str, Any], *, page: bool) -> str:
    """Return the report as an element or, with `page`, as a whole page."""
    jinja2 = import_optional("jinja2", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skcalib.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    report = document(results)
    # Names of an SVG belong to the whole page, in which there may be other reports.
    prefix = "r" + sha256(repr(results).encode()).hexdigest()[:8]
    pictures = {
        picture.name: jinja2.filters.Markup(draw(picture.name, results, f"{prefix}{number}-"))
        for number, picture in enumerate(
            picture for section in report.sections for picture in section.pictures
        )
    }
    template = environment.get_template("page.html" if page else "report.html")
    return str(template.render(report=report, pictures=pictures))
