"""Finds description files: Forge's own, and those of installed packages that an entry point names.

An entry point of the group `forge.contenders` names a package, such as `forge_contenders_acme`. Each `*.toml` file in
that package's folder is a description. The package isn't imported, so none of its code runs in this process.
"""

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forge.contenders.description import FILE_LIMIT_BYTES, Call, Library, parse_description
from forge.errors import UsageError

GROUP = "forge.contenders"
"""Group of entry points that name packages with descriptions."""
_OWN = Path(__file__).parent


@dataclass(frozen=True)
class Described:
    """One contender with the library that it comes from."""

    library: Library
    call: Call

    @property
    def id(self) -> str:
        """Name of the description: the library's and the contender's own."""
        return f"{self.library.name}.{self.call.name}"


@dataclass(frozen=True)
class Unreadable:
    """An entry point whose descriptions can't be read."""

    entry_point: str
    detail: str


@dataclass(frozen=True)
class ContenderCatalogue:
    """All contenders that are described on this machine."""

    contenders: tuple[Described, ...]
    unreadable: tuple[Unreadable, ...]

    def of(self, operation: str, *, compiled: bool = True) -> tuple[Described, ...]:
        """Return the contenders of an operation, with those that compile any reference."""
        named = (operation, "*") if compiled else (operation,)
        return tuple(one for one in self.contenders if one.call.operation in named)


def find_contenders() -> ContenderCatalogue:
    """Read every description; one that can't be read is listed with the reason and hides no other."""
    found = list(_read(_OWN))
    libraries = {one.library.name for one in found}
    unreadable: list[Unreadable] = []
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        try:
            read = list(_read(_folder_of(point.value)))
            taken = sorted({one.library.name for one in read} & libraries)
            if taken:
                raise UsageError(f"library {taken[0]!r} is described already: expected another name")
        except (UsageError, OSError) as error:
            unreadable.append(Unreadable(point.name, str(error)))
            continue
        found += read
        libraries |= {one.library.name for one in read}
    return ContenderCatalogue(tuple(found), tuple(unreadable))


def _read(folder: Path) -> Iterator[Described]:
    """Yield the contenders of every description in a folder; raise UsageError for the first that is wrong."""
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise UsageError(f"no description in {str(folder)!r}: expected a file *.toml")
    seen: set[str] = set()
    for path in files:
        with path.open("rb") as opened:
            description = parse_description(opened.read(FILE_LIMIT_BYTES + 1), str(path))
        if description.library.name in seen:
            raise UsageError(
                f"{str(path)!r}: library {description.library.name!r} is described twice: expected one file"
            )
        seen.add(description.library.name)
        yield from (Described(description.library, call) for call in description.contender)


def _folder_of(package: str) -> Path:
    """Return the folder of an installed package, without importing it; raise UsageError if there is none."""
    top, *below = package.split(".")
    try:
        spec = importlib.util.find_spec(top) if top.isidentifier() else None
    except (ImportError, ValueError, AttributeError):
        spec = None
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place).joinpath(*below)
        if all(part.isidentifier() for part in below) and folder.is_dir():
            return folder
    raise UsageError(f"entry point names {package!r}: expected an installed package with description files")
