"""Says which sandbox this machine can build, as evidence names it."""

from forge.domain.evidence import Isolation
from forge.sandbox.capabilities import probe


def isolation() -> Isolation:
    """Return the strongest sandbox that this machine can build; it is found by building it."""
    found = probe()
    return Isolation(level=found.level, parts=found.parts, missing=found.missing)
