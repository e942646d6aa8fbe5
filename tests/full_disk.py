"""A disk that refuses a part of what a command writes: what the system says is made up, Forge's code is as it is."""

import errno
import os
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest


def refuse(disk: pytest.MonkeyPatch, what: str) -> None:
    """From now on there is no room for `what`: `published files`, `history.db`, or a `run folder` and its files."""
    if what == "published files":
        disk.setattr(os, "replace", _refusing(os.replace, lambda _: True))
    elif what == "run folder":
        disk.setattr(os, "mkdir", _refusing(os.mkdir, lambda path: "/.tmp-" in str(path)))
        disk.setattr(os, "rename", _refusing(os.rename, lambda path: "/.tmp-" in str(path)))
    else:
        connect = sqlite3.connect
        disk.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **{"factory": FullHistory, **more}))


def _refusing(call: Callable[..., Any], where: Callable[[object], bool]) -> Callable[..., Any]:
    def refused(path: object, *arguments: object, **options: object) -> Any:
        if where(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return call(path, *arguments, **options)

    return refused


class FullHistory(sqlite3.Connection):
    """A connection that has no room for a commit to `history.db`."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self.execute("PRAGMA database_list").fetchone()[2].endswith("/history.db"):
            full = sqlite3.OperationalError("database or disk is full")
            full.sqlite_errorcode, full.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
            raise full
        return super().execute(sql, *parameters)
