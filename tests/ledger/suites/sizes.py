"""How much the suites do: seconds in the default run, as much as they can take with FORGE_TEST_LONG=1."""

import os

LONG = os.environ.get("FORGE_TEST_LONG") == "1"


def rounds(default: int, *, long: int) -> int:
    return long if LONG else default
