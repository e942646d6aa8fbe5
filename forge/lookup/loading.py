"""Imports promoted code for a caller who asked for it. Forge never calls this by itself.

What runs is what was checked. The bytes are read once and held against their digests. They are written into a folder
that only this user can read, and imported from there. So a publisher can't replace them in between. A module's files
stay as long as its process.
"""

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import RLock
from types import ModuleType

from forge.errors import BlobCorrupt, EnvironmentUnfit, LoadRefused
from forge.lookup.answer import BUILT_LANGUAGES, KERNEL_FILE, Kernel
from forge.lookup.artifact import listed_files, read_file
from forge.lookup.generation import Generation
from forge.lookup.tuned import CONFIGURATION_FILE, keep_to

PLAIN_LIBRARY = "libkernel.so"
"""Name of the library that kernel.py opens in its folder. Any other shared object is a Python extension."""

_loaded: dict[str, ModuleType] = {}
"""Modules of this process by name. The name is made of digests."""
_lock = RLock()


def load(kernel: Kernel, current: Generation, *, abi_key: str | None) -> Callable[..., object]:
    """Return the function that `kernel` names, if `current` still offers it; raise as Registry.load does."""
    _require_offered(kernel, current)
    name = f"forge_promoted_{kernel.sha256}"
    if kernel.artifact_sha256 is not None:
        name += f"_{kernel.artifact_sha256}"
    listed = _listed(kernel)
    _require_loadable(kernel, {name: listed[name] for name in listed if name != CONFIGURATION_FILE}, abi_key)
    with _lock:
        module = _loaded.get(name)
        if module is None:
            module = _loaded[name] = _import(name, _files(kernel, listed), kernel)
    function = getattr(module, kernel.entry_point, None)
    if not callable(function):
        raise BlobCorrupt(f"{kernel.kernel_id!r} has no function {kernel.entry_point!r}: publish the registry again")
    found: Callable[..., object] = function
    return found


def _require_offered(kernel: Kernel, current: Generation) -> None:
    """Raise LoadRefused if the kernel was withdrawn or replaced after it answered."""
    for offer in current.offers((kernel.op, kernel.gpu, kernel.dtype)):
        if offer.kernel.kernel_id == kernel.kernel_id:
            same = (offer.kernel.sha256, offer.kernel.artifact_sha256) == (kernel.sha256, kernel.artifact_sha256)
            if same and offer.kernel.status in {"active", "deprecated"}:
                return
            now = offer.kernel.status if same else "published with other bytes"
            raise LoadRefused(f"{kernel.kernel_id!r} is {now} since it answered: look it up again")
    raise LoadRefused(f"{kernel.kernel_id!r} isn't published any more: look it up again")


def _listed(kernel: Kernel) -> dict[str, str]:
    """Return the digests of its shared objects and of its configurations if it is autotuned, by name."""
    files = listed_files(kernel)
    return {name: digest for name, digest in files.items() if name.endswith(".so") or name == CONFIGURATION_FILE}


def _require_loadable(kernel: Kernel, listed: Mapping[str, str], abi_key: str | None) -> None:
    if listed and abi_key != kernel.abi_key:
        ask = "no abi_key was given: give abi_key=forge.lookup.abi_key()"
        found = ask if abi_key is None else f"this machine's is {abi_key}; expected a machine of the same kind"
        raise LoadRefused(f"{kernel.kernel_id!r} was built for abi_key {kernel.abi_key}, and {found}")
    others = sorted(set(listed) - {PLAIN_LIBRARY})
    if others:
        raise LoadRefused(
            f"{kernel.kernel_id!r} asks torch to build the extension {', '.join(others)} when it is imported; "
            f"only a {PLAIN_LIBRARY} that was built before is loaded; try forge kernel export {kernel.kernel_id}"
        )
    if kernel.language in BUILT_LANGUAGES and not listed:
        raise LoadRefused(
            f"{kernel.kernel_id!r} is in {kernel.language}, and nothing that was built from it is kept: expected "
            f"{PLAIN_LIBRARY}; its workspace can promote it anew"
        )


def _files(kernel: Kernel, listed: Mapping[str, str]) -> dict[str, bytes]:
    """Return the bytes of all files that an import needs, checked against their digests."""
    built = {name: read_file(kernel, name, digest) for name, digest in listed.items()}
    return {KERNEL_FILE: kernel.read_source(), **built}


def _import(name: str, files: Mapping[str, bytes], kernel: Kernel) -> ModuleType:
    folder = Path(tempfile.mkdtemp(prefix="forge-promoted-"))
    atexit.register(_remove, folder, os.getpid())
    for file, content in files.items():
        (folder / file).write_bytes(content)
    spec = importlib.util.spec_from_file_location(name, folder / KERNEL_FILE)
    if spec is None or spec.loader is None:
        raise EnvironmentUnfit(f"this Python has no loader for {KERNEL_FILE}: expected CPython's importlib")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    imported = False
    try:
        spec.loader.exec_module(module)
        if CONFIGURATION_FILE in files:
            keep_to(_configurations(files[CONFIGURATION_FILE], kernel), module)
        imported = True
    except (ImportError, OSError) as error:
        raise EnvironmentUnfit(
            f"{kernel.kernel_id!r} can't be imported here: {error}; expected a machine with what the kernel imports",
            hint="forge doctor",
        ) from error
    finally:
        if not imported:
            sys.modules.pop(name, None)
            _remove(folder, os.getpid())
    return module


def _configurations(content: bytes, kernel: Kernel) -> list[dict[str, object]]:
    import json

    try:
        found: list[dict[str, object]] = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BlobCorrupt(
            f"{kernel.kernel_id!r} has configurations that can't be read ({error}): publish the registry again"
        ) from error
    return found


def _remove(folder: Path, owner: int) -> None:
    """Remove the folder, but not in a process that was forked from the owner and ends first."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
