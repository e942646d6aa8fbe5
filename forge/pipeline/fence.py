"""Fences: put untrusted text into a Markdown document so that no line of it can end the fence."""

import re

_RUNS = re.compile(r"`+")
"""Pattern of backticks in a row."""
SHORTEST = 4
"""Smallest number of backticks of a fence. Ordinary code blocks have three, so a longer fence is easy to see."""


def fenced(untrusted_text: str, info: str) -> str:
    """Return the text between two lines of backticks, with one more backtick than its longest run of them.

    Only a line with at least as many backticks closes a fence (CommonMark 0.31, section 4.5).
    """
    longest = max((len(run) for run in _RUNS.findall(untrusted_text)), default=0)
    fence = "`" * max(SHORTEST, longest + 1)
    return f"{fence}{info}\n{untrusted_text.rstrip()}\n{fence}"
