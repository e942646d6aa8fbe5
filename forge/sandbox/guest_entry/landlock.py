"""Applies Landlock: every path is refused except those named here, whatever the mounts allow.

It is the second wall on files, behind the mount namespace, and the only one that the guest can't undo by regaining
mount rights. If the kernel can, it also refuses TCP, and signals and abstract sockets that would leave the sandbox.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from forge.sandbox.guest_entry import kernel

# linux/landlock.h
_VERSION_FLAG, _PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = (
    1 << 0,
    1 << 1,
    1 << 2,
    1 << 3,
    1 << 14,
    1 << 15,
)
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_MAKE_DEVICES = (1 << 6) | (1 << 11)  # character and block nodes: granted nowhere
_FILESYSTEM_BY_ABI = {
    1: (1 << 13) - 1,
    2: (1 << 14) - 1,
    3: (1 << 15) - 1,
    4: (1 << 15) - 1,
    5: (1 << 16) - 1,
}
_TCP_BIND_AND_CONNECT, _ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3

READ_ONLY = EXECUTE | READ_FILE | READ_DIR
"""Rights to files that a guest may read and run."""
READ_WRITE = ((1 << 15) - 1) & ~_MAKE_DEVICES
"""Rights to folders that a guest may write to: all but making devices."""
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV
"""Rights to device files."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("filesystem", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def abi() -> int:
    """Return the kernel's Landlock version; raise OSError if it has none."""
    return kernel.syscall("landlock_create_ruleset", None, 0, _VERSION_FLAG)


def restrict(rules: Iterable[tuple[str, int]]) -> int:
    """Allow each path its rights, and nothing else to this process and all it starts; return the ABI used."""
    with kernel.step("landlock"):
        version = abi()
        handled = _FILESYSTEM_BY_ABI[min(version, 5)]
        ruleset = _Ruleset(handled, 0, 0)
        if version >= 4:
            ruleset.network = _TCP_BIND_AND_CONNECT
        if version >= 6:
            ruleset.scoped = _ABSTRACT_SOCKETS_AND_SIGNALS
        length = 24 if version >= 6 else 16 if version >= 4 else 8
        descriptor = kernel.syscall("landlock_create_ruleset", ruleset, length, 0)
        for path, rights in rules:
            _allow(descriptor, path, rights & handled)
        kernel.syscall("landlock_restrict_self", descriptor, 0)
        os.close(descriptor)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _FILE_RIGHTS
        kernel.syscall("landlock_add_rule", ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, parent), 0)
    finally:
        os.close(parent)
