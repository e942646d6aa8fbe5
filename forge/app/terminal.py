"""What the environment says of the terminal."""

import os


def wants_colour() -> bool:
    """Return False if the user asks for no colour (no-color.org), or the terminal has none."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")
