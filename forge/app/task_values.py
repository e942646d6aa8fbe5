"""Says which values a task may have in a column of a list or an audit, and by which of its names it has one.

The tables are imported only when they are asked for: that takes longer than a plain answer.
"""

from collections.abc import Iterable


def possible_values(column: str) -> Iterable[str]:
    """Return the values that a task may have, whatever is recorded; none where only the history knows them."""
    match column:
        case "op":
            from forge.operations import OPERATIONS

            return OPERATIONS
        case "gpu":
            from forge.platforms.gpus import PROCESSORS

            return PROCESSORS
        case "language":
            from forge.languages import LANGUAGES

            return LANGUAGES
        case _:
            return ()


def usual_name(column: str, untrusted_name: str) -> str:
    """Return the name that tasks have for another name of a processor or an element type."""
    match column:
        case "gpu":
            from forge.platforms.gpus import slug_of

            return slug_of(untrusted_name)
        case "dtype":
            from forge.domain.tensors import DTYPE_ALIASES

            return DTYPE_ALIASES.get(untrusted_name, untrusted_name)
        case _:
            return untrusted_name
