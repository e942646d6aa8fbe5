"""Reads plain options without the parser: each known, given once, with a printable value."""

from collections.abc import Sequence

HOME, JSON, LIMIT, SORT = "--home", "--json", "--limit", "--sort"
MOST_DIGITS = 6
"""Number of digits of a limit, at most: those of numbers below `MOST_ROWS`. Larger ones are left to the whole
command."""


def plain_options(
    arguments: Sequence[str], *, valued: Sequence[str], has_argument: bool = False, flags: Sequence[str] = (JSON,)
) -> tuple[dict[str, str], str | None] | None:
    """Return the options and the argument; None if anything isn't plain. `valued` are the options with a value.

    An option of `flags` has itself as its value.
    """
    given: dict[str, str] = {}
    argument: str | None = None
    rest = list(arguments)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if has_argument and argument is None and not option.startswith("-") and not equals:
            argument = option
            continue
        if option in flags and not equals:
            value = option
        elif option not in valued:
            return None
        elif not equals:
            if not rest:
                return None
            value = rest.pop(0)
        is_plain = value and (option in (*flags, SORT) or not value.startswith("-")) and value.isprintable()
        if option in given or not is_plain:
            return None
        given[option] = value
    if not is_number(given.get(LIMIT, "1")):
        return None
    return (given, argument) if has_argument == (argument is not None) else None


def is_number(text: str) -> bool:
    """Return whether the text is a whole number above 0 with at most MOST_DIGITS digits."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) > 0
