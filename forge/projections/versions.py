"""Lists the versions of each kernel family, in the order of their promotion."""

from itertools import groupby
from typing import NamedTuple

from forge.domain.digest import canonical
from forge.projections.fold import Position

SCHEMA_VERSION = 1
"""Version of the form of `versions.json`."""
FILE = "versions.json"


class Version(NamedTuple):
    """One line of a family's history."""

    family: str
    version: int
    kernel_id: str
    status: str
    promoted_seq: int
    superseded_by: str | None


VERSIONS = (
    "SELECT family, version, kernel_id, status, promoted_seq, superseded_by FROM kernels ORDER BY family, version"
)
"""Query for the versions of each family, in order."""


def render(versions: list[Version], position: Position) -> bytes:
    """Return `versions.json`, canonical: family -> its versions, first to last, with their status."""
    families: dict[str, object] = {}
    for family, group in groupby(versions, key=lambda version: version.family):
        lines = [version._asdict() for version in group]
        for line in lines:
            del line["family"]
        families[family] = lines
    return canonical({"schema_version": SCHEMA_VERSION, "ledger": position.document(), "families": families})
