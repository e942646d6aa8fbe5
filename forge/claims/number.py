"""Numbers as people write them: other signs for `x`, decimal commas, thousands, fractions, words."""

import re
import unicodedata

_TIMES = "\u00d7\u2715\u2716\u2a2f\u0445\u0425\u2573"
"""Multiplication signs, and the Cyrillic letter that looks like one."""
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_APOSTROPHES = "\u2018\u2019\u02bc"
_FRACTIONS = {"\u00bd": ".5", "\u00bc": ".25", "\u00be": ".75"}
_LOOKALIKES = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0406\u0408\u0405"
    "\u03bf\u039f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u03a1\u03a4\u03a5\u03a7"
)
_LATIN = "aeopcyijshdqwABEKMHOPCTYIJSoOABEZHIKMNPTYX"
"""Cyrillic and Greek letters that look like Latin ones, and those (unicode.org/Public/security, confusables)."""
_SIGNS = {
    **dict.fromkeys(_TIMES, "x"),
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys(_APOSTROPHES, "'"),
    **dict.fromkeys("\u00b5\u03bc", "u"),
    **_FRACTIONS,
    **dict(zip(_LOOKALIKES, _LATIN, strict=True)),
    "\u066b": ".",
    "\u066a": "%",
}
_TABLE = str.maketrans(_SIGNS)
_TEX_TIMES = re.compile(r"(?:(?<=\d)\})?\s?\{?\\times\b\s?\}?")
"""How a formula writes the sign; a page's host may draw it."""
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
NUMBER = r"(?<![\w.,])(?:\d{1,3}(?:[,']\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e[+-]?\d+)?"
"""A number in figures; not the tail of a word or of another number."""
WORDS = {
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "four": 4.0,
    "five": 5.0,
    "six": 6.0,
    "seven": 7.0,
    "eight": 8.0,
    "nine": 9.0,
    "ten": 10.0,
    "eleven": 11.0,
    "twelve": 12.0,
    "fifteen": 15.0,
    "twenty": 20.0,
    "thirty": 30.0,
    "forty": 40.0,
    "fifty": 50.0,
    "sixty": 60.0,
    "seventy": 70.0,
    "eighty": 80.0,
    "ninety": 90.0,
    "a hundred": 100.0,
    "one hundred": 100.0,
    "hundred": 100.0,
    "a thousand": 1000.0,
    "thousand": 1000.0,
    "a dozen": 12.0,
    "dozen": 12.0,
    "two and a half": 2.5,
    "one and a half": 1.5,
    "a couple of": 2.0,
}
WORD = "|".join(sorted(WORDS, key=len, reverse=True))
"""A number in a word, for a pattern."""


def plain(text: str) -> str:
    """The text with one sign for each thing; line breaks stay where they are."""
    text = _TEX_TIMES.sub("x", text)
    if text.isascii() and not _CONTROL.search(text):
        return text
    marked = "".join(_FRACTIONS.get(sign, sign) for sign in text)
    folded = unicodedata.normalize("NFKC", marked.translate(_TABLE)).translate(_TABLE)
    kept = (sign for sign in folded if sign == "\n" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs", "Mn"))
    return "".join(" " if unicodedata.category(sign) == "Zs" else sign for sign in kept)


def value_of(text: str) -> float:
    """What a number that `NUMBER` or `WORD` matched is worth; a comma before three digits is a thousand's."""
    word = WORDS.get(" ".join(text.lower().split()))
    if word is not None:
        return word
    if re.fullmatch(r"\d{1,3}(?:[,']\d{3})+(?:\.\d+)?(?:e[+-]?\d+)?", text):
        return float(re.sub(r"[,']", "", text))
    return float(text.replace(",", "."))


def decimals_of(text: str) -> int:
    """How many digits stand behind the point."""
    if re.fullmatch(r"\d{1,3}(?:[,']\d{3})+", text):
        return 0
    _, _, behind = text.replace(",", ".").rpartition(".")
    return len(behind) if re.search(r"[.,]", text) and behind.isdigit() else 0


def rounds_to(true: float, text: str) -> bool:
    """Whether `true`, written with as many digits as `text` has, is `text`."""
    digits = decimals_of(text)
    return f"{true:.{digits}f}" == f"{value_of(text):.{digits}f}"
