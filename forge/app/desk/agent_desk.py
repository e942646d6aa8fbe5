"""The desk of a coding agent on standard input and output. It is opened when a tool is first called.

A client starts this process and waits for the list of tools. What a tool needs takes longer to import than that list.
"""

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from forge.app.user.home import LEDGER_FILE, TOKEN_VARIABLE

if TYPE_CHECKING:
    from forge.app.access.tokens import Caller
    from forge.app.desk.desk import Desk


class LateDesk:
    """A desk and its caller, for any thread. A token in the environment is looked up at once.

    Raises TokenRefused for that token, and WorkspaceNotFound without a workspace.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._lock = home, Lock()
        self._found: tuple[Desk, Caller] | None = None
        if os.environ.get(TOKEN_VARIABLE) or not (home / LEDGER_FILE).is_file():
            self._opened()

    def desk(self) -> "Desk":
        """Return the desk, which is opened at the first call."""
        return self._opened()[0]

    def caller(self) -> "Caller":
        """Return the holder of the token in the environment; without one an author called `mcp`."""
        return self._opened()[1]

    def close(self) -> None:
        """Close the desk if it was opened."""
        with self._lock:
            if self._found is not None:
                self._found[0].close()
                self._found = None

    def _opened(self) -> "tuple[Desk, Caller]":
        from forge.app.access.tokens import caller_of_environment
        from forge.app.desk.desk import Desk

        with self._lock:
            if self._found is None:
                desk = Desk(self._home, names_paths=True)
                try:
                    caller = desk.read(lambda view: caller_of_environment(view.workspace)).result()
                except BaseException:
                    desk.close()
                    raise
                self._found = desk, caller
            return self._found
