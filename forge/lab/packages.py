"""Says whether the packages are installed that judging and timing import."""

import importlib.util

from forge.errors import EnvironmentUnfit

LAB_PACKAGES = ("torch", "numpy", "hypothesis")
"""Packages that judging and timing import; the extra `lab` installs them."""


def require_lab() -> None:
    """Raise EnvironmentUnfit if packages that judging needs aren't installed."""
    missing = _missing()
    if missing:
        raise EnvironmentUnfit(
            f"{' and '.join(missing)} can't be imported: judging and timing need the lab",
            hint="pip install 'tensorpath-forge[lab]'",
        )


def lab_is_installed() -> bool:
    """Return True if the packages that judging needs are installed."""
    return not _missing()


def _missing() -> list[str]:
    return [name for name in LAB_PACKAGES if importlib.util.find_spec(name) is None]
