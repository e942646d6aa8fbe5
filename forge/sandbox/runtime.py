"""Lists the part of the host's disk that Python needs to run, and the paths that are hidden inside it.

Distrusts the reader: the guest may learn everything in these trees. They hold interpreters and libraries, but no
accounts and no home directory. Masks hide all of Forge, since an attacker who can't read the gates has to be right.
"""

import os
import pwd
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from forge.errors import EnvironmentUnfit
from forge.sandbox.confinement import Bind

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
_PACKAGE = Path(__file__).resolve().parents[1]
_DISTRIBUTION = "tensorpath_forge-*"


def runtime_binds() -> tuple[Bind, ...]:
    """Return read-only binds of the interpreter, the packages and the system's libraries, each at its own path."""
    binds = [Bind(Path(path), path) for path in (*_SYSTEM, *_LOADER) if os.path.lexists(path)]
    bound = [path for path in _SYSTEM if os.path.isdir(path)]
    for prefix in _prefixes():
        if any(prefix == tree or prefix.startswith(tree + "/") for tree in bound):
            continue
        _refuse_home(prefix)
        bound.append(prefix)
        binds.append(Bind(Path(os.path.realpath(prefix)), prefix))
    return tuple(binds)


def masked_paths() -> tuple[str, ...]:
    """Return every path in those trees that holds Forge's code, or names its place."""
    found: list[str] = []
    sites = list(_site_directories())
    for directory in sites:
        found += (str(path) for path in directory.glob("forge") if (path / "sandbox").is_dir())
        found += map(str, directory.glob(_DISTRIBUTION))
        found += (str(path) for path in _pointers(directory) if _names_source(path))
    if _PACKAGE.parent not in sites:  # in a checkout everything is hidden
        found.append(str(_PACKAGE.parent))
    return tuple(dict.fromkeys(found))


def _prefixes() -> list[str]:
    """Return the interpreter's trees, outermost first, under the names it uses and under their real ones."""
    executable = os.path.realpath(sys.executable)
    named = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    paths = {os.path.abspath(path) for path in named} | {os.path.realpath(path) for path in named}
    paths.add(os.path.dirname(os.path.dirname(executable)))
    return sorted(paths - {"/"}, key=lambda path: (path.count("/"), path))


def _refuse_home(prefix: str) -> None:
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return
    if Path(prefix) == home or Path(prefix) in home.parents:
        raise EnvironmentUnfit(
            f"Python's prefix {prefix!r} contains the home directory, which a guest must not see: "
            "expected an interpreter in a directory of its own",
            hint="python -m venv .venv",
        )


def _site_directories() -> Iterator[Path]:
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    paths |= {path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}}
    for path in sorted(paths):
        if Path(path).is_dir():
            yield Path(path).resolve()


def _pointers(directory: Path) -> Iterator[Path]:
    """Yield the files through which editable installs lead to a source tree."""
    for pattern in ("*.pth", "*.egg-link", "*editable*", "__pycache__/*editable*"):
        yield from (path for path in directory.glob(pattern) if path.is_file())


def _names_source(path: Path) -> bool:
    try:
        return os.fsencode(_PACKAGE.parent) in path.read_bytes()
    except OSError:
        return True
