"""Tokens of a text, as the Moses script makes them (sacremoses), and text of tokens.

Text is in Unicode's composed form (NFC) throughout, so that a letter is written in one
way, and a mark or joiner stays with its letter.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable

import regex
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from sbnmt_plugin.lines import BYTE_ORDER_MARK, single_blanks
from sbnmt_plugin.tools.progress import progress

CHINESE, NONE, CHARACTERS = "zh", "none", "characters"
LANGUAGES = sorted(
    {
        *NonbreakingPrefixes().available_langs.values(),
        *("ja", "ko", CHINESE, NONE, CHARACTERS),
    }
)
JOINED = (CHINESE, "yue", "ja", CHARACTERS)  # no blanks beside ideographs
SAMPLE = 1000  # lines that are tried for whether they come back

# letters and signs that stand without marks, joiners or rare letters: Moses's own rules
PLAIN = regex.compile(
    r"[\0-\u00ac\u00ae-\u024f\u0370-\u0481\u048a-\u052f\u2010-\u2027\u2030-\u205e]*"
)
# of Chinese: ideographs, kana, their punctuation, full-width forms; with their marks
IDEOGRAPH = (
    r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    r"\U00020000-\U0003ffff]"
)
BESIDE_IDEOGRAPHS = regex.compile(
    rf"(?<={IDEOGRAPH}[\p{{M}}\p{{Cf}}]*) | (?={IDEOGRAPH})"
)
ONE_IDEOGRAPH = regex.compile(rf"({IDEOGRAPH}[\p{{M}}\p{{Cf}}]*)")
# two characters between which a word is torn: a mark, a joiner, letters of any script
TORN = regex.compile(
    rf".[\p{{M}}\p{{Cf}}\U0001f3fb-\U0001f3ff]|\u200d.|"
    rf"(?=.?[^\0-\x7f])(?!.?{IDEOGRAPH})[\p{{L}}\p{{M}}\p{{N}}\p{{Cf}}]{{2}}",
    regex.DOTALL,
)
# blanks beside signs: what is written with signs in Chinese text is mostly addresses,
# keys, code and numbers, in which only a comma and an option have one
BESIDE_SIGNS = regex.compile(
    r"(?<=[^\w\s\p{Cf},]|_) | (?=(?!--|- \w )([^\w\s\p{Cf}]|_))|(?<=\d,) (?=\d)"
)
# what Moses would leave apart: dandas, times, and apostrophes that begin no quotation;
# in Dutch they may begin a word
APART = regex.compile(
    r" (?=[।॥꯫])|(?<=\b\d\d?) : (?=\d\d\b)|(?<=\b[dlDLO]) ' (?=\p{L})|"
    r"(?<=\w) ' (?=s\b(?!-| '| (?:avonds|morgens|nachts|ochtends|zomers|winters|lands|"
    r"\w+dags)\b))"
)


def language_code(language: str) -> str:
    """Return the code of a language: ``zh`` of ``zh_CN``, ``de`` of ``DE``.

    Raises:
        ValueError: there are no rules for it.
    """
    code = regex.split("[-_]", language, maxsplit=1)[0].lower()
    if code not in LANGUAGES:
        raise ValueError(
            f"the language must be one of {', '.join(LANGUAGES)}, but is {language!r}: "
            "take one whose rules suit the text, or none, which splits at white space"
        )
    return code


def tokeniser(language: str, lowercase: bool = False) -> Callable[[str], str]:
    """Return a function that separates the tokens of a line by blanks.

    Chinese is segmented into words by jieba's dictionary and model (rjieba), ``none``
    at white space, ``characters`` there and around every ideograph.  Elsewhere
    punctuation is normalised; nothing is escaped for XML.

    Raises:
        ValueError: see :func:`language_code`.
    """
    code = language_code(language)
    own = {NONE: single_blanks, CHINESE: chinese_words, CHARACTERS: characters}
    split = own.get(code) or moses_tokens(code)

    def whole(line: str) -> str:
        return split(composed(line.lower() if lowercase else line))

    return whole


def composed(line: str) -> str:
    """Compose letters (NFC), and leave out byte order marks within a text."""
    return unicodedata.normalize("NFC", line).replace(BYTE_ORDER_MARK, "")


def characters(line: str) -> str:
    """Separate ideographs, each with its marks; other words stay whole."""
    return single_blanks(ONE_IDEOGRAPH.sub(r" \1 ", single_blanks(line)))


def chinese_words(line: str) -> str:
    """Separate words; what rjieba tears within words of other scripts stays whole."""
    import rjieba  # its dictionary takes a moment, and few need it

    found, before = "", " "
    for piece in rjieba.cut(line):
        torn = TORN.fullmatch(before + piece[0])
        found += piece if torn else f" {piece}"
        before = piece[-1]
    return single_blanks(found)


@functools.cache
def moses_tokens(code: str) -> Callable[[str], str]:
    """Return a function that normalises punctuation and makes Moses's tokens."""
    normaliser = MosesPunctNormalizer(lang=code)
    plain, marked = MosesTokenizer(lang=code), MosesTokenizer(lang=code)
    letter = r"\p{L}--[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}]"
    kept = rf"{marked.IsAlnum}\s.'`,\-\p{{M}}\p{{Cf}}"
    # a sign with all that belongs to it, as in joined emoji
    sign = regex.compile(rf"((?!(?:[{letter}]|[{kept}]))\X)", regex.V1)
    marked.PAD_NOT_ISALNUM = sign, r" \1 "

    def split(line: str) -> str:
        line = normaliser.normalize(line)
        moses = plain if PLAIN.fullmatch(line) else marked
        return str(moses.tokenize(line, return_str=True, escape=False))

    return split


def tokenise(lines: list[str], language: str, lowercase: bool = False) -> list[str]:
    """Separate tokens by blanks: see :func:`tokeniser`."""
    split = tokeniser(language, lowercase)
    bar = progress(lines, desc=f"tokenise {language}", unit="line", leave=False)
    return [split(line) for line in bar]


def detokenise(lines: list[str], language: str) -> list[str]:
    """Join tokens into text.

    Raises:
        ValueError: see :func:`language_code`.
    """
    code = language_code(language)
    lines = [single_blanks(line) for line in lines]
    if code == NONE:
        return lines
    if code in JOINED:
        lines = [BESIDE_IDEOGRAPHS.sub("", line) for line in lines]
        if code == CHARACTERS:  # whose tokens keep their signs
            return lines
        return [BESIDE_SIGNS.sub("", line) for line in lines]
    moses = MosesDetokenizer(lang=code)
    lines = [APART.sub(lambda found: found[0].strip(), line) for line in lines]
    return [moses.detokenize(line.split(), unescape=False) for line in lines]


def normal_form(line: str, language: str) -> str:
    """Return a line as it comes back from its tokens where nothing is lost.

    It has composed letters (NFC), no byte order marks, single blanks and, in Chinese,
    Japanese and text of characters, none beside ideographs.
    """
    line = single_blanks(composed(line))
    joined = language_code(language) in JOINED
    return BESIDE_IDEOGRAPHS.sub("", line) if joined else line


def changed_lines(
    lines: list[str], language: str, lowercase: bool = False
) -> tuple[list[int], int]:
    """Try whether lines come back from their tokens, up to their normal form.

    Returns:
        places: of those of a sample that do not.
        tried: lines of the sample, spread over all.
    """
    lines = [line.lower() for line in lines] if lowercase else lines
    places = range(0, len(lines), -(-len(lines) // SAMPLE) or 1)
    split = tokeniser(language)
    back = detokenise([split(lines[i]) for i in places], language)
    rows = zip(places, back)
    changed = [i for i, line in rows if line != normal_form(lines[i], language)]
    return changed, len(places)
