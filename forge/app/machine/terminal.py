"""What the environment says of the terminal."""

import os
import time


def wants_colour() -> bool:
    """Return False if the user asks for no colour (no-color.org), or the terminal has none."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


class Stopwatch:
    """Measures the time since it was made."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def seconds(self) -> float:
        """Return the elapsed time, in seconds."""
        return time.monotonic() - self._began_s
