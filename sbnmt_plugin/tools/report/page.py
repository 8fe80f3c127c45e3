"""The page: one HTML file that needs nothing else, everything in it escaped."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sbnmt_plugin.tools.report.content import Section

HERE = Path(__file__).resolve().parent
PACK = 500  # sentences whose texts the browser reads at once
TEXTS = 3  # in a row of browser_data(): source, references, outputs
SCRIPTS = ("sentences.js", "trace.js")


def inline_json(value: Any) -> Markup:
    """Return JSON that cannot end the script element that holds it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def data_uri(kind: str, content: bytes) -> str:
    """Return content as an address: an SVG image cannot clash with the page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def index(sentences: dict[str, Any]) -> dict[str, Any]:
    """Return all but the texts, to filter and to sort the list of sentences by."""
    rows = [row[TEXTS:] for row in sentences["rows"]]
    return {**sentences, "size": PACK, "rows": rows}


def packs(sentences: dict[str, Any]) -> Iterator[str]:
    """Yield the texts, PACK sentences at a time: base64 of gzipped JSON."""
    rows = sentences["rows"]
    for start in range(0, len(rows), PACK):
        texts = [row[:TEXTS] for row in rows[start : start + PACK]]
        written = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode()
        yield base64.b64encode(gzip.compress(written, 6, mtime=0)).decode()


def asset(name: str) -> Markup:
    """Read a style sheet or script of this folder, which needs no escaping."""
    return Markup((HERE / name).read_text(encoding="utf-8"))


def script_hashes() -> str:
    """Return hashes by which the page's policy knows these scripts from any others."""
    made = []
    for name in SCRIPTS:
        digest = hashlib.sha256(asset(name).encode()).digest()
        made.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return " ".join(made)


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
    environment.filters.update(index=index, packs=packs)
    helpers = {"asset": asset, "data_uri": data_uri, "inline_json": inline_json}
    environment.globals.update(helpers)
    environment.globals["script_hashes"] = script_hashes()
    template = environment.get_template("page.html")
    return template.render(title=title, facts=facts, sections=sections)
