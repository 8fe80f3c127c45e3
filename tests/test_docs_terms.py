"""The terms of the glossary, and where the README introduces those that it uses."""

import json
import re

from commands import ROOT
from pages import code_of, rows_of, section_of, text_of

QUICKSTART = ROOT / "examples" / "toy" / "quickstart.json"


def prose_of(text):
    """Return a text without code, tables and what is generated, in one line."""
    text = re.sub(r"<!-- (\w+) -->.*?<!-- end \1 -->", "", text, flags=re.S)
    for block in code_of(text):
        text = text.replace(block, "")
    lines = [x for x in text.splitlines() if not x.startswith(("|", "```"))]
    return " ".join(lines)


def not_introduced(readme, glossary):
    """Return terms that a README uses after it says Install, and not introduces before.

    A term is introduced in italics, in brackets, or by a formula.
    """
    beginning, _, rest = readme.partition("\n## Install\n")
    given = re.findall(r"\*(\w[^*\n]*)\*|\((\w+)\)|^    .*(λ)", beginning, re.M)
    known = {stem(word) for words in given for word in words if word}
    terms = re.findall(r"^\* \*\*(.+?)\*\*:", glossary, re.M)
    names = {stem(name) for term in terms for name in term.split(", ")}
    used = prose_of(rest).lower()
    return {x for x in names - known if re.search(rf"\b{re.escape(x)}s?\b", used)}


def stem(word):
    """Return a word in lower case and in the singular."""
    return word.lower().removesuffix("s")


def test_the_readme_introduces_the_terms_that_it_uses():
    assert not not_introduced(text_of("README.md"), text_of("docs/concepts.md"))


def test_the_check_of_terms_can_fail():
    glossary = "* **reader**: x\n* **L2R, R2L**: y\n* **λ**: z\n* **unused**: w\n"
    readme = "*readers*, from the left (L2R)\n\n    a + λ b\n\n## Install\n"
    readme += "A reader, L2R, R2L, λ.\n\n    unused\n"
    assert not_introduced(readme, glossary) == {"r2l"}


def ahead(table, first, second):
    """Return how far a row's scores are above another's, column by column."""
    scores = {name: cells for name, *cells in rows_of(table)}
    pairs = zip(scores[first], scores[second])
    found = [[re.match(r"\d+\.\d+", cell) for cell in pair] for pair in pairs]
    return [f"{float(x[0]) - float(y[0]):.1f}" for x, y in found if x and y]


def test_the_readmes_prose_says_how_far_ahead_sb_nmt_is():
    """Its numbers are differences of the rows above it."""
    text = section_of("Results")
    told = re.findall(r"by (\d\.\d)\b", prose_of(text))
    *_, rescored = ahead(text, "SB-NMT as in the paper, rescored", "Transformer, L2R")
    assert told == ahead(text, "SB-NMT as in the paper", "Transformer, L2R")
    assert len(told) == 3
    assert f"({rescored} rescored, significant)" in prose_of(text)


def test_the_readmes_number_to_expect_is_that_of_the_quickstart():
    (told,) = re.findall(r"\d+\.\d", prose_of(section_of("Try it")))
    *_, last = json.loads(QUICKSTART.read_text(encoding="utf-8"))["rows"]
    assert abs(float(told) - last["tokenised BLEU"]) <= 0.0501  # 96.85 may be 96.9


def test_every_recipe_has_a_row_in_the_readme():
    shown = set(re.findall(r"\]\(examples/(\w+)/", section_of("Reproduce")))
    recipes = {path.parent.name for path in ROOT.glob("examples/*/recipe.yaml")}
    assert shown == recipes - {"bitext"}  # which is for the reader's own text
