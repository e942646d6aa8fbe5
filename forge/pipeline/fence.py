"""Fences: text from elsewhere inside a Markdown document, which no line of it can leave."""

import re

_RUNS = re.compile(r"`+")
SHORTEST = 4
"""Longer than the three that text usually has in it, so that a fence is seen for what it is."""


def fenced(untrusted_text: str, info: str) -> str:
    """The text between two lines of backticks, one more than it has anywhere in a row.

    Only a line of at least as many backticks closes a fence (CommonMark 0.31, section 4.5), and there is none in it.
    """
    longest = max((len(run) for run in _RUNS.findall(untrusted_text)), default=0)
    fence = "`" * max(SHORTEST, longest + 1)
    return f"{fence}{info}\n{untrusted_text.rstrip()}\n{fence}"
