"""Reads published files, of which only the digest is believed.

A name never leads out of the registry: it is followed folder by folder, and a symbolic link on the way is refused.
A pipe, a device, or a file without end can't hold a reader up.
"""

from forge.errors import BlobCorrupt

KERNEL_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
FILE_NAME = KERNEL_NAME | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ.-")
HEX = frozenset("0123456789abcdef")
NAME_CHARACTERS = 255
"""Largest length of a file's name, in characters. File systems allow 255 bytes (NAME_MAX)."""
POINTER_BYTES = 1 << 16
"""Size of the pointer in bytes, at most. Chosen; it has some hundred bytes."""
SNAPSHOT_BYTES = 1 << 30
"""Size of the snapshot in bytes, at most. Chosen; a kernel takes some kilobytes."""
FILE_BYTES = 1 << 30
"""Sizes in bytes, at most, of what a reader takes in. Each is far more than what Forge publishes."""


def is_digest(untrusted: object) -> bool:
    """Return whether it is a SHA-256 in lower-case hex."""
    return isinstance(untrusted, str) and len(untrusted) == 64 and HEX.issuperset(untrusted)


def is_text(untrusted: object) -> bool:
    """Return whether it is text that UTF-8 can hold: JSON may name half of a character."""
    return type(untrusted) is str and (
        untrusted.isascii() or not any("\ud800" <= one <= "\udfff" for one in untrusted)
    )


def is_plain(untrusted_name: object, allowed: frozenset[str] = FILE_NAME) -> bool:
    """Return whether it names something in a folder and nothing elsewhere."""
    if not isinstance(untrusted_name, str) or not 0 < len(untrusted_name) <= NAME_CHARACTERS:
        return False
    return allowed.issuperset(untrusted_name) and not untrusted_name.startswith(".")


def read_published(root: str, name: str, *, limit_bytes: int = FILE_BYTES, sha256: str | None = None) -> bytes:
    """Return the bytes of the file `name`, a path below `root`, checked against `sha256`; raises BlobCorrupt."""
    import hashlib

    path = f"{root}/{name}"
    try:
        content = _read(root, name.split("/"), limit_bytes)
    except (OSError, ValueError) as error:
        raise BlobCorrupt(f"{path!r} can't be read: {error}; publish the registry again") from error
    if sha256 is not None:
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise BlobCorrupt(f"{path!r} has digest {found}, expected {sha256}: publish the registry again")
    return content


def _read(root: str, parts: list[str], limit_bytes: int) -> bytes:
    import os
    import stat

    if not all(map(is_plain, parts)):
        raise ValueError("expected plain names below the registry")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(parts[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)
    with open(file, "rb") as opened:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > limit_bytes:
            raise ValueError(f"expected a regular file of at most {limit_bytes:,} bytes")
        return opened.read(limit_bytes)
