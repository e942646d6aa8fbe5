"""Finds the version and the place of an installed package, without importing anything of it."""

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Installed:
    """A distribution of this interpreter."""

    version: str
    folder: Path
    """Folder that its packages are imported from."""


def find_installed(package: str) -> Installed | None:
    """Return the distribution of this name; None if it isn't installed, or its metadata is damaged."""
    try:
        found = importlib.metadata.distribution(package)
        version = next(iter(found.metadata.get_all("Version", [])), None)
    except (importlib.metadata.PackageNotFoundError, KeyError, OSError, ValueError):
        return None
    if not isinstance(version, str) or not version:  # a METADATA file without a version
        return None
    return Installed(version, Path(str(found.locate_file(""))).resolve())
