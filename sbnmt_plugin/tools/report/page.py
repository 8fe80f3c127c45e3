"""The page: one HTML file that needs nothing else, everything in it escaped."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sbnmt_plugin.tools.report.content import Section

HERE = Path(__file__).resolve().parent
SCRIPT = "trace.js"


def data_uri(kind: str, content: bytes) -> str:
    """Return content as an address: an SVG image cannot clash with the page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def asset(name: str) -> Markup:
    """Read a style sheet or script of this folder, which needs no escaping."""
    return Markup((HERE / name).read_text(encoding="utf-8"))


def render(title: str, facts: list[str], sections: list[Section]) -> str:
    """Return the HTML of the report.

    Args:
        facts: lines about the whole report, below the title.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(asset=asset, data_uri=data_uri)
    # by which the page's policy knows our script from any other
    digest = base64.b64encode(hashlib.sha256(asset(SCRIPT).encode()).digest())
    environment.globals["script_hash"] = f"'sha256-{digest.decode()}'"
    template = environment.get_template("page.html")
    return template.render(title=title, facts=facts, sections=sections)
