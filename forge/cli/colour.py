"""Colours of a terminal: bold headings, and verdicts that can be told apart at a glance."""

from collections.abc import Callable

BOLD, GREEN, RED, YELLOW = "1", "32", "31", "33"
"""Parameters of the control sequence SGR (ECMA-48, 8.3.117)."""
COLOURED = frozenset({"verdict", "state", "status", "outcome", "end", "conclusion", "integrity"})
"""Names of columns whose cells are verdicts."""
MEANINGS = {
    GREEN: ("accepted", "passed", "promoted", "verified", "benchmarked", "active", "improved", "ok", "held", "holds"),
    RED: ("rejected", "failed", "denied", "revoked", "regressed", "incorrect", "BROKEN", "contradicted"),
    YELLOW: ("inconclusive", "not asked", "errored", "aborted", "provisional", "evidence_stale", "deprecated"),
}
"""Colour -> beginnings of the verdicts that have it. A verdict of no list keeps the terminal's own colour."""


class Painter:
    """Paints texts if the stream is a terminal that wants colours; otherwise returns them unchanged."""

    def __init__(self, *, coloured: bool) -> None:
        self.coloured = coloured

    def heading(self, text: str) -> str:
        """Return a title, or the name of a column, in bold."""
        return self._painted(text, BOLD)

    def verdict(self, text: str) -> str:
        """Return a verdict in the colour of its meaning."""
        colour = next((colour for colour, words in MEANINGS.items() if text.startswith(words)), None)
        return text if colour is None else self._painted(text, colour)

    def of_column(self, name: str) -> Callable[[str], str]:
        """Return the function that paints the cells of a column."""
        return self.verdict if name in COLOURED else str

    def _painted(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.coloured and text.strip() else text
