"""Ends a command with an error: a line with its code, the next command, and with --json a document on stdout."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from forge.cli.output import emit_json, say
from forge.cli.suggest import at_home, suggest

MOST_CHARACTERS = 2000
"""Length of the longest message that is printed whole, in characters: about 20 lines of a terminal. A name that was
given by mistake, such as a file's content, may be longer than a page."""
KEPT_AT_THE_END = 500
"""Number of a longer message's last characters that are printed: they say what was expected."""


def fail(
    code: str, message: str, *, following: str, status: int, more: Mapping[str, object] | None = None
) -> NoReturn:
    """Print the error and exit with `status`. `more` are further fields of the document."""
    arguments = sys.argv[1:]
    said = _of_a_length_to_read(" ".join(message.splitlines()))
    if wants_json(arguments):
        error = {"code": code, "message": said, "try": at_home(following, arguments), "exit_status": status}
        with contextlib.suppress(OSError):  # a full disk or a closed pipe is told on stderr
            emit_json({"error": error, **(more or {})})
            sys.stdout.flush()
    say(f"error[{code}]: {said}")
    suggest("try", following)
    sys.exit(status)


def _of_a_length_to_read(message: str) -> str:
    if len(message) <= MOST_CHARACTERS:
        return message
    left_out = len(message) - MOST_CHARACTERS
    beginning = message[: MOST_CHARACTERS - KEPT_AT_THE_END]
    return f"{beginning} ... ({left_out} more characters) ... {message[-KEPT_AT_THE_END:]}"


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for a JSON document."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options
