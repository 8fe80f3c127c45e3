"""The numbers of docs/findings.md are those of the committed results."""

import re
from decimal import Decimal

import pytest
from findings import (
    BITEXT,
    BITEXT_CPU,
    CMUDICT,
    DOCUMENTATION,
    FIRST,
    FOUR,
    LARGER,
    LEVEL,
    NOISE,
    PAPER,
    PENALTIES,
    RESCORED,
    SETS,
    SHORT,
    SHORT_SEEDS,
    SMALL,
    TATOEBA,
    TRIAL,
    TRIPLES,
    apart,
    bits_read,
    bootstrap,
    compared,
    on_beam,
    read,
    rows,
    score,
    shown,
    signed,
    three_open,
    times_slower,
)
from pages import text_of

PAGE = "docs/findings.md"

# (beginning of a line, table, system, its baseline without interaction)
DROPPED = "sb-noise-shift-dropped", "sb-noise-lambda0"
INTERACTION = [
    ("`sb`, 2+2, test2016", SMALL, "sb", "sb-lambda0"),
    ("`sb`, 4+4, four", LARGER, "sb", "sb-lambda0"),
    ("`sb-reader-two`, 2+2, test2016, ×3", SMALL, "sb-reader-two", "sb-lambda0"),
    ("`sb-reader-two`, 2+2, four", SETS, "sb-reader-two", "sb-lambda0"),
    ("`sb-reader-two`, 4+4, four", LARGER, "sb-reader-two", "sb-lambda0"),
    ("`sb-reader`, 2+2, test2016, ×3", SMALL, "sb-reader", "sb-noise-lambda0"),
    ("`sb-reader-own`, 2+2, four", SETS, "sb-reader-own", "teacher-both"),
    ("`sb-staged`, 2+2, four", SETS, "sb-staged", "sb-lambda0"),
    ("`sb-staged`, 4+4, four", LARGER, "sb-staged", "sb-lambda0"),
    ("`sb-noise-shift-dropped`, 2+2, test2016", NOISE, *DROPPED),
    ("the same, shorter, ×3", SHORT_SEEDS, *DROPPED),
    ("`sb-own`, 2+2, four", SETS, "sb-own", "teacher-both"),
]
GOLD, PSEUDO = "teacher-l2r", "transformer-pl"
COMPARED_BITEXT = read("bitext/compared-small")["rows"]
GAINS = {
    "pseudo targets": "transformer-pl",
    "reranking with an R2L Transformer": "rerank",
    "gold text in both directions, rescored": "teacher-both+rescored",
    "two triples without interaction": "sb-lambda0",
    "the same, rescored": "sb-lambda0+rescored",
}


def line(cells):
    return f"|{'|'.join(cells)}|"


def interaction_table():
    for start, table, system, baseline in INTERACTION:
        assert start.endswith("×3") == (len(rows(table, system)) == 3), start
        cells = [
            shown(bits_read(table, system)),
            compared(table, system, baseline),
            compared(table, system + RESCORED, baseline + RESCORED),
        ]
        yield line([start, *cells])


def gains_table():
    """Lines of what is gained over a Transformer on gold text.

    test2016 has the mean of all seeds; the bootstrap has tested the first.
    """
    for start, system in GAINS.items():
        first = signed(apart(SMALL, system, "teacher-l2r"))
        p = bootstrap(SETS, system, "teacher-l2r", FIRST)[1]
        several = ", ×3" if len(rows(SMALL, system)) == 3 else ""
        cells = [(f"**{first}**" if p < LEVEL else first) + several]
        for table in SETS, LARGER:
            run = system != "rerank" or table != LARGER
            cells.append(compared(table, system, GOLD) if run else "not run")
        yield line([start, *cells, gain_in_bitext(system)])


def gain_in_bitext(system):
    if system not in {row["name"] for row in read(BITEXT)["rows"]}:
        return "not run"
    gain = signed(apart(BITEXT, system, GOLD))
    tests = [(row["row"], row["against"], row["p"]) for row in COMPARED_BITEXT]
    (p,) = [p for one, other, p in tests if (one, other) == (system, GOLD)]
    return f"**{gain}**" if p < LEVEL else gain


def sentences():
    """Parts of the page's sentences, in its order, made from the results."""
    for part in (on_the_paper, on_interaction, on_cmudict, on_toys):
        yield from part()
    few, many = "teacher-l2r", "transformer-long"
    times = score(DOCUMENTATION, many, "updates") / score(DOCUMENTATION, few, "updates")
    raised = [shown(score(DOCUMENTATION, system)) for system in (few, many)]
    yield f"{shown(times)} times the updates raised a Transformer from {raised[0]}"
    yield f"from {raised[0]} to {raised[1]}."
    held = score(DOCUMENTATION, "sb-lambda0-long")
    yield f"held a longer model back at {shown(held)}."
    assert "--lenpen, 0.6" in text_of("examples/multi30k/recipe.yaml")
    yield "The tables use 0.6."
    chosen = on_beam(PENALTIES, "sb-lambda0+rescored", 4)
    lead, over = (chosen - on_beam(PENALTIES, x, 4) for x in (few, "transformer-pl"))
    yield f"score {shown(lead)} more than the Transformer on test2016"
    yield f"and {shown(over)} more than the one with pseudo targets."


def on_the_paper():
    seen = (score(SMALL, system, "tokens") for system in ("teacher-l2r", "sb"))
    labels = [shown(Decimal(count) / 10**6) for count in seen]
    yield f"sees {labels[0]} million labels, SB-NMT {labels[1]} million"
    leads = [apart(x, "sb", "teacher-l2r") for x in (SMALL, LARGER)]
    rescored = [apart(x, "sb+rescored", "teacher-l2r") for x in (SMALL, LARGER)]
    yield f"leads by {shown(leads[0])} BLEU with 2+2 layers on test2016"
    yield f"and by {shown(leads[1])} with 4+4 on four sets"
    yield f"it leads by {shown(rescored[0])} and {shown(rescored[1])}."
    third = [apart(BITEXT, x, "teacher-l2r") for x in ("sb-paper", "sb-paper+rescored")]
    p = {(row["row"], row["against"]): row["p"] for row in COMPARED_BITEXT}
    assert p["sb-paper+rescored", GOLD] < LEVEL < p["sb-paper", GOLD]
    yield f"leads by {shown(third[0])}, rescored by **{shown(third[1])}**."
    models = (SMALL, "sb"), (LARGER, "sb"), (BITEXT, "sb-paper")
    behind = [shown(-apart(x, sb, PSEUDO)) for x, sb in models]
    ahead = [shown(apart(x, sb + RESCORED, PSEUDO)) for x, sb in models]
    for start, places in ("in `bitext` it is", (1, 2)), ("With 2+2 it is", (0,)):
        below, above = (
            " and ".join(found[place] for place in places) for found in (behind, ahead)
        )
        yield f"{start} {below} behind, rescored {above} ahead"
    paper = "sb-paper", "sb-paper+rescored"
    gold, pseudo = (
        [shown(apart(TATOEBA, other, row)) for row in paper] for other in (GOLD, PSEUDO)
    )
    lost = shown(apart(TATOEBA, GOLD, PSEUDO))
    yield f"it is {gold[0]} behind, rescored {gold[1]}, and pseudo targets lose {lost}."
    yield f"On Tatoeba it is **{pseudo[0]}** behind, rescored {pseudo[1]}."
    assert read(TATOEBA)["opponent"] == PSEUDO
    (as_trained,), (rescored,) = (rows(TATOEBA, row) for row in paper)
    assert as_trained["p"] < LEVEL < rescored["p"]
    assert min(p["sb-paper", PSEUDO], p["sb-paper+rescored", PSEUDO]) > LEVEL
    opposed = read(LARGER)
    assert opposed["opponent"] == PSEUDO
    assert min(x["p"] for s in ("sb", "sb+rescored") for x in rows(LARGER, s)) > LEVEL


def on_interaction():
    staged = "sb-staged-lambda0"
    gained = apart(SHORT, "sb-staged+rescored", staged + RESCORED)
    cost = apart(SHORT, "sb-lambda0+rescored", staged + RESCORED)
    yield "There, rescored and untested, interaction gained "
    yield f"interaction gained {shown(gained)} and stages cost {shown(cost)} beside"
    pairs = ("sb-paper", "sb-lambda0"), ("sb-paper+rescored", "sb-lambda0+rescored")
    runs = BITEXT_CPU, BITEXT, TRIAL, TATOEBA
    one, two = (
        [signed(apart(run, *pair)).lstrip("+") for run in runs] for pair in pairs
    )
    yield f"two runs of `bitext` it gains {one[0]} and {one[1]}, rescored {two[0]} and "
    yield f"rescored {two[0]} and {two[1]}, in a short trial {one[2]} and {two[2]}, "
    yield f"on Tatoeba {one[3]} and {two[3]}."
    pair = SMALL, "sb-reader-two", "sb-lambda0"
    gained, validation = (bootstrap(*pair, text)[0] for text in (FIRST, "validation"))
    yield f"gains {shown(gained)} on test2016"
    yield f"but {signed(validation)} on the validation set"


def on_cmudict():
    """Shares of wrong words: less is better."""
    yield f"with {shown(score(CMUDICT, 'teacher-r2l', 'WER'))} % wrong words"
    yield f"saves {shown(apart(CMUDICT, 'teacher-r2l', 'rerank', 'WER'))} points"
    pairs = ("sb", "sb-lambda0"), ("sb+rescored", "sb-lambda0+rescored")
    costs, shorter = (
        [shown(apart(name, *pair, "WER")) for pair in pairs]
        for name in (CMUDICT, TRIPLES)
    )
    yield f"λ = 1 costs {costs[0]} points of wrong words, and {costs[1]} rescored"
    yield f"it costs {shorter[0]} and {shorter[1]}, the"
    paper = score(PAPER, "sb-paper", "WER"), score(TRIPLES, "sb-lambda0", "WER")
    assert "the paper's λ = 0.1" in rows(PAPER, "sb-paper")[0]["title"]
    yield "the paper's λ = 0.1"
    yield f"λ = 0.1 nothing: {shown(paper[0])} % against {shown(paper[1])} %"
    yield f"λ = 1 reads {shown(bits_read(CMUDICT, 'sb'), '0.01')} bits"


def on_toys():
    yield f"interaction with a beam of 2 gets {shown(three_open('sb', 2))} %"
    right = three_open("sb-lambda0+rescored", 32)
    yield f"A rescored beam of 32 without it gets {shown(right)} %"
    yield f"and is {round(times_slower())} times slower"

    def lead(system, beam):
        pair = system + RESCORED, "sb-lambda0+rescored"
        first, second = (on_beam("toy/beams", x, beam) for x in pair)
        return first - second

    yield f"`sb` leads by {shown(lead('sb', 4))} with a beam of 4"
    yield f"`sb-shift` by {shown(lead('sb-shift', 4))}, all rescored"
    seeds = {x["name"]: x["mean"] for x in read("toy/seeds")["seeds"]}
    lost = seeds["sb-lambda0+rescored"] - seeds["sb-staged+rescored"]
    yield f"Stages lose {shown(lost)}."
    yield f"With a beam of 8 even `sb-shift` is {shown(-lead('sb-shift', 8))} behind."


def missing(text):
    """What the results say and the text does not."""
    text = text.replace("\n", " ")
    told = [*interaction_table(), *gains_table(), *sentences()]
    return [part for part in told if part not in text]


def test_the_numbers_of_the_findings_are_those_of_the_results():
    text = text_of(PAGE)
    assert not missing(text)
    lines = re.findall(r"^\|.*\d\.\d.*$", text, re.M)
    assert len(lines) == len([*interaction_table(), *gains_table()])


def test_another_digit_of_a_finding_is_noticed():
    """Every number with a decimal, each of whose last digits is changed in turn."""
    text = text_of(PAGE)
    places = [found.end() - 1 for found in re.finditer(r"\d\.\d\b", text)]
    assert len(places) > 80
    unnoticed = []
    for place in places:
        digit = (int(text[place]) + 1) % 10
        changed = f"{text[:place]}{digit}{text[place + 1 :]}"
        if not missing(changed):
            unnoticed.append(text[place - 40 : place + 1])
    assert not unnoticed


def test_another_significance_is_noticed():
    text = text_of(PAGE)
    for old, new in {"|**−1.0**|": "|−1.0|", "|+0.2|0.0|": "|+0.2|**0.0**|"}.items():
        assert missing(text.replace(old, new))


def test_what_the_page_calls_significant_is_so():
    best, pseudo = "sb-lambda0+rescored", "transformer-pl"
    for text in FIRST, FOUR:
        assert bootstrap(SETS, best, pseudo, text)[1] < LEVEL
        assert bootstrap(LARGER, best, pseudo, text)[1] > LEVEL
        assert bootstrap(SETS, best, "rerank", text)[1] > LEVEL
    assert bootstrap(SMALL, best, pseudo)[1] < LEVEL
    for name in ("sb", "sb+rescored"):
        assert all(row["p"] > LEVEL for x in (SMALL, LARGER) for row in rows(x, name))


def test_findings_without_a_result_are_refused():
    with pytest.raises(AssertionError, match=r"full\.json has no row rerank"):
        apart(LARGER, "rerank", "teacher-l2r")


# rows whose numbers the page leaves out

# (table, row, its baseline without interaction): retired rows of Multi30k
RETIRED = [
    ("multi30k/late-small", "sb-late", "sb-late-lambda0"),
    (SHORT_SEEDS, "sb-same", "sb-lambda0"),
    (SHORT_SEEDS, "sb-noise", "sb-noise-lambda0"),
    (SHORT_SEEDS, "sb-noise-shift", "sb-noise-lambda0"),
]


def test_no_other_row_gains_when_rescored():
    assert "Further rows, also gone, gained nothing rescored." in text_of(PAGE)
    for table, row, baseline in RETIRED:
        assert apart(table, row + RESCORED, baseline + RESCORED) < 0, row
