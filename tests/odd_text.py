"""Text of many scripts, with marks, joiners, emoji, odd blanks, addresses and code."""

from hypothesis import strategies as st

# letters of a script, with the marks that it writes
LETTERS = (
    "aBzéßøŁİ\u0131\u0301\u0308\u0323",
    "αΩάς\u0301\u0345",
    "иЯёй\u0306\u0483",
    "سلامک\u064e\u0651\u0670\u0654",
    "שלום\u05b8\u05bc\u05c1",
    "हिन्दी\u093f\u094d\u093c",
    "กินข้าว\u0e49\u0e31",
    "தமிழ்\u0bbf\u0bcd",
    "ქართული",
    "አማርኛ",
    "\U0001e900\U0001e922\U0001e944",  # Adlam
    "𝒜𝒷𝔠",
)
IDEOGRAPHS = ("好我喜欢猫", "かなカナー\u3099", "한국어\u1100\u1161", "\U00020000")
JOINERS = ("\u200c", "\u200d", "\u00ad", "\u2060")
BLANKS = (" ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\f", "\x1f")
SIGNS = (
    *("😀", "👨\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "@@", "@", "@@@", "</w>"),
    *("https://a.org/b?c=1#d", "a@b.com", "f(x)[0]={1: 'a'}", "-r", "--x", "..."),
    *(",", ".", "!", "'", '"', "“", "„", "%", "$5", "1,000", "_", "|", "\\", "&amp;"),
    *("\0", "\ufeff", "\u200b"),
)

word = st.sampled_from(LETTERS).flatmap(
    lambda letters: st.lists(
        st.sampled_from([*letters, *letters, *JOINERS]), min_size=1, max_size=6
    )
)
# lines of words that begin with a letter, which no sign stands beside
WORDS = st.lists(
    word.map("".join).filter(lambda made: made[0].isalpha()), min_size=1, max_size=5
)
LINE = st.one_of(
    st.lists(
        st.one_of(
            word.map("".join),
            st.sampled_from([*"".join(IDEOGRAPHS), *SIGNS, *BLANKS, " "]),
        ),
        max_size=12,
    ).map("".join),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r")),
)
