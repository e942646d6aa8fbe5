"""The versions of each kernel family, in the order of their promotion."""

from dataclasses import dataclass

from forge.domain.digest import canonical
from forge.projections.fold import Position
from forge.projections.kernel import Status
from forge.projections.registry import RegistryState

SCHEMA_VERSION = 1
FILE = "versions.json"


@dataclass(frozen=True, slots=True)
class Version:
    """One line of a family's history."""

    version: int
    kernel_id: str
    status: Status
    promoted_seq: int
    superseded_by: str | None


def versions(state: RegistryState) -> dict[str, tuple[Version, ...]]:
    """Family -> its versions, first to last, whatever became of them; families by name."""
    return {
        family: tuple(_version(state, kernel_id) for kernel_id in state.families[family])
        for family in sorted(state.families)
    }


def next_version(state: RegistryState, family: str) -> int:
    """The number that the family's next promotion bears; no number is ever used again."""
    return len(state.families.get(family, ())) + 1


def _version(state: RegistryState, kernel_id: str) -> Version:
    kernel = state.kernels[kernel_id]
    return Version(
        version=kernel.promoted.event.version,
        kernel_id=kernel_id,
        status=kernel.status,
        promoted_seq=kernel.promoted.seq,
        superseded_by=kernel.superseded_by,
    )


def render(state: RegistryState, position: Position) -> bytes:
    """`versions.json`, canonical."""
    families: dict[str, object] = {
        family: [
            {
                "version": line.version,
                "kernel_id": line.kernel_id,
                "status": line.status,
                "promoted_seq": line.promoted_seq,
                "superseded_by": line.superseded_by,
            }
            for line in lines
        ]
        for family, lines in versions(state).items()
    }
    return canonical({"schema_version": SCHEMA_VERSION, "ledger": position.document(), "families": families})
