"""Numbers as people write them: other signs for `x`, decimal commas, thousands, fractions."""

import re
import unicodedata

_LOOKALIKES = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0406\u0408\u0405"
    "\u03bf\u039f\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u03a1\u03a4\u03a5\u03a7"
)
"""Cyrillic and Greek letters that look like Latin ones, which could hide a claim's words."""
_LATIN = "aeopcyijshdqwABEKMHOPCTYIJSoOABEZHIKMNPTYX"
"""Latin letters that the Cyrillic and Greek ones above look like (unicode.org/Public/security, confusables)."""
_FRACTIONS = {"\u00bd": ".5", "\u00bc": ".25", "\u00be": ".75"}
_SIGNS = str.maketrans(
    dict.fromkeys(
        "\u00d7\u2715\u2716\u2717\u2718\u2a2f\u2a09\u2a30\u2a31\u2a34\u2a35\u292b\u292c\u2612\u2613\u274c\u274e\u2573\u0445\u0425\u03c7",
        "x",
    )
    | dict.fromkeys("\u2217\u22c5\u00b7\u2219\u2022", "*")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u02bc", "'")
    | dict.fromkeys("\u00b5\u03bc", "u")
    | dict(zip(_LOOKALIKES, _LATIN, strict=True))
    | _FRACTIONS
    | {"\u066b": ".", "\u066a": "%"}
)
"""One sign for all that look alike; the first line holds multiplication signs and the Cyrillic letter like them."""
_POWERS = re.compile("([\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u207a\u207b]+)")
"""Pattern of a number as an exponent, which isn't a digit of the number before it."""
_TEX_TIMES = re.compile(r"(?:(?<=\d)\})?\s?\{?\\times\b\s?\}?")
"""Pattern of TeX's sign for times."""
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
"""Pattern of control characters other than the end of a line."""
_THOUSANDS = re.compile(r"\d{1,3}(?:[,']\d{3})+(?:\.\d+)?(?:e[+-]?\d+)?")
"""Pattern of a number with separators between thousands."""
PLAIN_NUMBER = r"(?:\d{1,3}(?:[,']\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?:e[+-]?\d+)?"
NUMBER = rf"(?<![\w,])(?<!\w\.)(?<!\d'){PLAIN_NUMBER}"
"""A number in figures that isn't the tail of a word or of another number."""
WORD = (
    r"(?:(?:a |one )?(?:hundred|thousand|dozen)|(?:one|two) and a half|a couple of|"
    r"(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve)"
)
"""A number in words. The checker doesn't work out its value."""


def plain(text: str) -> str:
    """Return the text with one sign for each thing, in linear time; line breaks stay where they are."""
    text = _TEX_TIMES.sub("x", text)
    if text.isascii() and not _CONTROL.search(text):
        return text
    # Unicode sorts a run of combining marks in quadratic time, so they go before it is asked.
    text = _POWERS.sub(r"^\1", text)
    marked = "".join(_digits(_FRACTIONS.get(sign, sign)) for sign in text if not unicodedata.combining(sign))
    folded = unicodedata.normalize("NFKC", marked.translate(_SIGNS)).translate(_SIGNS)
    kept = (sign for sign in folded if sign == "\n" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs", "Mn"))
    return "".join(" " if unicodedata.category(sign) == "Zs" else sign for sign in kept)


def _digits(sign: str) -> str:
    """Return a number that is one sign, such as a circled or a Roman one, in digits; any other sign as it is."""
    value = unicodedata.numeric(sign, 0.5) if len(sign) == 1 and unicodedata.category(sign) in ("No", "Nl") else 0.5
    return str(int(value)) if value.is_integer() and not _POWERS.match(sign) else sign


def value_of(text: str) -> float:
    """Return the value of what `NUMBER` matched; a comma before three digits separates thousands."""
    if _THOUSANDS.fullmatch(text):
        return float(re.sub(r"[,']", "", text))
    return float(text.replace(",", "."))


def decimals_of(text: str) -> int:
    """Return how many digits stand behind the point."""
    text, _, exponent = text.lower().partition("e")
    if re.fullmatch(r"\d{1,3}(?:[,']\d{3})+", text):
        return max(0, -int(exponent or 0))
    _, point, behind = text.replace(",", ".").rpartition(".")
    return max(0, (len(behind) if point and behind.isdigit() else 0) - int(exponent or 0))


def rounds_to(true: float, text: str) -> bool:
    """Return whether `true`, written with as many digits as `text` has, is `text`."""
    digits = decimals_of(text)
    return f"{true:.{digits}f}" == f"{value_of(text):.{digits}f}"
