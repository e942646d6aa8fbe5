"""Holds what is copied in front of every guest: the files of `forge/guest`, and Python's bytecode of them.

A guest would otherwise compile these files anew, which takes a fifth of its start. This process makes the bytecode
once, from the same bytes, and runs none of it. Each stage has its own copy, bound read-only, so no guest changes it.
"""

import py_compile
import sys
from functools import cache
from pathlib import Path

from forge.sandbox.folders import HeldFolder

GUEST_FILES = {one.name: one.read_bytes() for one in sorted((Path(__file__).parent.parent / "guest").glob("*.py"))}
"""Files of `forge/guest` as this process found them when it started. A guest with newer ones could misunderstand it,
and a right candidate would be refused while Forge is upgraded."""
LANGUAGE_FILE = "language.py"
"""Name under which the module of the candidate's language lies beside them."""


@cache
def package_files(language_file: Path, directory: str) -> dict[str, bytes]:
    """Return the files of the guest's package for one language, by their paths in the package.

    `directory` is the package's path for the guest: tracebacks name it.
    """
    sources = {**GUEST_FILES, LANGUAGE_FILE: language_file.read_bytes()}
    held = HeldFolder("forge-bytecode-")
    try:
        return {
            **sources,
            **{_cached_as(name): _bytecode(held.path, directory, name, sources[name]) for name in sources},
        }
    finally:
        held.remove()


def _cached_as(name: str) -> str:
    return f"__pycache__/{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"


def _bytecode(folder: Path, directory: str, name: str, source: bytes) -> bytes:
    """Return the bytecode of a file, which Python then takes without a look at the file: its time says nothing."""
    path = folder / name
    path.write_bytes(source)
    py_compile.compile(
        str(path),
        cfile=f"{path}c",
        dfile=f"{directory}/{name}",
        doraise=True,
        optimize=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    return path.with_name(f"{name}c").read_bytes()
