"""Tells whether a kernel is known. It imports nothing heavy, so that an audit stays quick."""

import difflib
import sqlite3

from forge.errors import UnknownName, UsageError


def require_kernel(connection: sqlite3.Connection, kernel_id: str) -> None:
    """Raise UnknownName, with the nearest names, unless there is such a kernel."""
    if connection.execute("SELECT 1 FROM kernels WHERE kernel_id = ?", (kernel_id,)).fetchone() is not None:
        return
    known = [name for (name,) in connection.execute("SELECT kernel_id FROM kernels ORDER BY kernel_id")]
    if not known:
        raise UsageError(f"no kernel {kernel_id!r}: nothing was promoted yet", hint="forge run list")
    near = difflib.get_close_matches(kernel_id, known, n=UnknownName.NAMED, cutoff=0.5)
    raise UnknownName("kernel", kernel_id, known, near=tuple(near), listed_by="forge kernel list")
