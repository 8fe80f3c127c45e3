"""How the README and the pages of docs/ read: length, line width, plain sentences."""

import json
import re

import pytest
from commands import ROOT
from pages import prose_of, section_of, text_of, words_of

BUDGETS = {  # page -> most words outside of code
    "README.md": 1000,
    "CONTRIBUTING.md": 800,
    "CHANGELOG.md": 700,
    "docs/guide.md": 1400,
    "docs/concepts.md": 700,
    "docs/findings.md": 900,
    "docs/interaction.md": 900,
    "docs/commands.md": 1300,
    "docs/options.md": 900,
    "docs/systems.md": 1600,
    "docs/operations.md": 900,
    "docs/troubleshooting.md": 600,
    "docs/internals.md": 1000,
}
GENERATED = {"docs/options.md", "docs/licences.md"}
LONGEST_README, WIDEST_LINE = 150, 110
ALL_WORDS = 20_000  # of all pages, those that are generated aside
PAGE_OF_A_RECIPE = 400
# what belongs to generated pages of results alone
RECORDS = {
    "a commit": r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b",
    "a p-value": r"\bp [=<≥>] ?0",
    "a seed": r"\bseeds?\b",
}
# pages that others write: the tests of the whole book wait for the first, and until
# the second are gone
COMING = {
    *("docs/concepts.md", "docs/findings.md", "docs/interaction.md"),
    *("docs/systems.md", "docs/operations.md", "docs/internals.md"),
}
GOING = {
    *("abd-nmt", "ba-nmt", "cluster", "code-map", "departures", "enat", "equations"),
    *("limits", "pays", "pays-measured", "reading", "reliability", "scale"),
    *("two-way-2d", "troubleshooting"),
}


def there():
    """Return the pages of the book that exist and are no longer to be rewritten."""
    going = {f"docs/{name}.md" for name in GOING if is_whole() is False}
    return [x for x in BUDGETS if (ROOT / x).exists() and x not in going]


def is_whole():
    """Check whether all pages of the book are there."""
    return all((ROOT / name).exists() for name in COMING)


whole = pytest.mark.skipif(not is_whole(), reason="other pages are being written")


@pytest.mark.parametrize("name", there())
def test_a_page_fits_its_budget(name):
    assert words_of(text_of(name)) <= BUDGETS[name]


def test_words_are_counted_without_code():
    text = "Two words.\n\n    not these\n\n| a | b-c |\n\n```\nnor this\n```\n"
    assert words_of(text) == 4


def test_the_readme_fits_a_screen_or_three():
    lines = text_of("README.md").splitlines()
    assert len(lines) <= LONGEST_README
    wide = [
        line for line in prose_of("\n".join(lines)) if len(shown(line)) > WIDEST_LINE
    ]
    assert not wide


def shown(line):
    """Return a line without the addresses of its links and pictures."""
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line) if "![" not in line else ""


def records(text):
    """Return the kinds of records that a text's prose has, each with an example."""
    prose = "\n".join(prose_of(text))
    found = {kind: re.search(x, prose) for kind, x in RECORDS.items()}
    return {kind: match[0] for kind, match in found.items() if match}


@pytest.mark.parametrize(
    "name", [x for x in there() if x not in ("CHANGELOG.md", "CONTRIBUTING.md")]
)
def test_prose_has_no_commits_p_values_and_seeds(name):
    assert not records(text_of(name))


def test_the_check_of_records_can_fail():
    told = "It won (p = 0.01, commit 18ab3f0, three seeds).\n"
    assert set(records(told)) == set(RECORDS)
    assert not records("| p = 0.01 | seed 1 |\n\n    git show 18ab3f0\n\nIt won.\n")


def not_introduced(readme, glossary):
    """Return terms that a README uses and does not introduce before it says Install.

    A term is introduced in italics, in brackets, or by a formula.
    """
    beginning, _, rest = readme.partition("\n## Install\n")
    given = re.findall(r"\*([^*\n]+)\*|\((\w+)\)|^    .*(λ)", beginning, re.M)
    known = {stem(word.lower()) for words in given for word in words if word}
    terms = re.findall(r"^\* \*\*(.+?)\*\*:", glossary, re.M)
    names = {stem(name.lower()) for term in terms for name in term.split(", ")}
    prose = " ".join(prose_of(rest)).lower()
    return {x for x in names - known if re.search(rf"\b{re.escape(x)}s?\b", prose)}


def stem(word):
    """Return a word in the singular."""
    return word.removesuffix("s")


@whole
def test_the_readme_introduces_the_terms_that_it_uses():
    assert not not_introduced(text_of("README.md"), text_of("docs/concepts.md"))


def test_the_check_of_terms_can_fail():
    glossary = "* **reader**: x\n* **L2R, R2L**: y\n* **λ**: z\n* **unused**: w\n"
    readme = "*readers*, from the left (L2R)\n\n    a + λ b\n\n## Install\n"
    readme += "A reader, L2R, R2L, λ.\n"
    assert not_introduced(readme, glossary) == {"r2l"}


@whole
def test_the_book_has_ten_pages_and_few_words():
    pages = {f"docs/{path.name}" for path in ROOT.glob("docs/*.md")}
    assert pages == {x for x in BUDGETS if x.startswith("docs/")} | GENERATED
    own = [x for x in BUDGETS if x not in GENERATED]
    recipes = [path.relative_to(ROOT) for path in ROOT.glob("examples/*/README.md")]
    for path in recipes:
        assert words_of(text_of(path)) <= PAGE_OF_A_RECIPE, path
    assert sum(len(text_of(path).split()) for path in (*own, *recipes)) < ALL_WORDS


def test_the_readmes_results_say_how_far_ahead_it_is():
    """SB-NMT as in the paper above a Transformer on gold text, in both settings."""
    told = re.findall(r"by (\d\.\d)\b", " ".join(prose_of(section_of("Results"))))
    ahead = []
    for name in ("converged-small", "full"):
        rows = json.loads(text_of(f"examples/multi30k/{name}.json"))["rows"]
        bleu = {row["name"]: row["BLEU"] for row in rows}
        ahead.append(f"{bleu['sb'] - bleu['teacher-l2r']:.1f}")
    assert told == ahead
