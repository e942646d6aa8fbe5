"""Shows text from outside as one harmless line of a document."""

HYPOTHESIS_LIMIT = 160
"""Longest quoted hypothesis, in characters. Chosen; a table shows it in one line."""


def one_line(untrusted_text: str | None, *, limit: int = HYPOTHESIS_LIMIT) -> str | None:
    """Return text from outside as one line without markup, cut to `limit` characters."""
    if untrusted_text is None:
        return None
    plain = "".join(character if character.isprintable() else " " for character in untrusted_text)
    for mark, harmless in (("|", "/"), ("`", "'"), ("<", "("), (">", ")"), ("[", "("), ("]", ")")):
        plain = plain.replace(mark, harmless)
    plain = " ".join(plain.split())
    return plain if len(plain) <= limit else f"{plain[: limit - 3]}..."
