"""Tells whether a kernel is known. It imports nothing heavy, so that an audit stays quick."""

import sqlite3
from collections.abc import Collection

from forge.errors import UnknownName, UsageError


def require_kernel(connection: sqlite3.Connection, kernel_id: str) -> None:
    """Raise UnknownName unless there is such a kernel, or UsageError if nothing was promoted yet."""
    require_known(
        kernel_id, [name for (name,) in connection.execute("SELECT kernel_id FROM kernels ORDER BY kernel_id")]
    )


def require_known(kernel_id: str, known: Collection[str]) -> None:
    """Raise UnknownName unless the kernel is one of those that are known, or UsageError if there is none."""
    if not known:
        raise UsageError(f"no kernel {kernel_id!r}: nothing was promoted yet", hint="forge run list")
    if kernel_id not in known:
        raise UnknownName("kernel", kernel_id, list(known), listed_by="forge kernel list")
