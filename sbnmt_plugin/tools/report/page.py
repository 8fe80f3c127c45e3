"""The page: one HTML file that needs nothing else, everything in it escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sbnmt_plugin.tools.report.content import Figure, Section, Table

HERE = Path(__file__).resolve().parent
SCRIPTS = ("sentences.js", "trace.js")


def inline_json(value: Any) -> Markup:
    """JSON that cannot end the script element that holds it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def data_uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def image(figure: Figure) -> str:
    """The SVG as an address: an image of its own cannot clash with the page."""
    return data_uri("image/svg+xml", figure.svg)


def csv_link(table: Table) -> str:
    return data_uri("text/csv;charset=utf-8", table.csv().encode())


def asset(name: str) -> Markup:
    """A style sheet or script of ours, which needs no escaping."""
    return Markup((HERE / name).read_text(encoding="utf-8"))


def script_hashes() -> str:
    """Our scripts, by which the page's policy tells them from any others."""
    made = []
    for name in SCRIPTS:
        digest = hashlib.sha256(asset(name).encode()).digest()
        made.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return " ".join(made)


def render(
    title: str,
    facts: list[str],
    sections: list[Section],
    sentences: dict[str, Any] | None,
    traces: list[dict[str, Any]] | None = None,
) -> str:
    """The HTML of the report.

    Args:
        facts: about the whole report, one a line below the title.
        sentences: for the list of section 8.
        traces: for the view into the two beams.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(image=image, csv_link=csv_link)
    environment.globals.update(asset=asset, inline_json=inline_json)
    environment.globals["script_hashes"] = script_hashes()
    return environment.get_template("page.html").render(
        title=title,
        facts=facts,
        sections=sections,
        sentences=sentences,
        traces=traces,
    )
