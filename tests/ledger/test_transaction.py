"""A writer's turn ends with the lock free and no transaction open, however it ends."""

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forge.errors import LedgerCorrupt, StorageFailed
from forge.ledger.connection import configure, connect
from forge.ledger.failures import storage_errors
from forge.ledger.lock import WriterLock, lock_path
from forge.ledger.transaction import WriteTransaction

from .making import open_ledger


def is_free(path: Path) -> bool:
    with open(lock_path(path)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("ending", ["well", "raising", "refused by the database", "rolled back inside", "not begun"])
def test_a_turn_leaves_the_lock_free_and_no_transaction(ending: str, path: Path) -> None:
    with closing(connect(path, read_only=False)) as connection, closing(WriterLock(path)) as lock:
        configure(connection, path, read_only=False)
        turn = WriteTransaction(path, connection, lock)
        for _ in range(2):  # it can be taken again
            match ending:
                case "well":
                    with turn:
                        assert connection.in_transaction
                        assert not is_free(path)
                case "raising":
                    with pytest.raises(KeyboardInterrupt), turn:
                        raise KeyboardInterrupt
                case "refused by the database":
                    with pytest.raises(sqlite3.IntegrityError), turn:
                        connection.execute("DELETE FROM event")
                case "rolled back inside":
                    with pytest.raises(sqlite3.OperationalError), turn:  # then there is nothing to commit
                        connection.execute("ROLLBACK")
                case _:
                    os.replace(path, path.with_name("moved.db"))
                    path.touch()
                    with pytest.raises(LedgerCorrupt, match="another file"), turn:
                        pass
                    os.replace(path.with_name("moved.db"), path)
            assert not connection.in_transaction
            assert is_free(path)
    with open_ledger(path) as ledger:
        assert ledger.head.seq == 1


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (OSError(28, "No space left on device"), StorageFailed),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), LedgerCorrupt),
        (sqlite3.ProgrammingError("a mistake of our own"), sqlite3.ProgrammingError),
        (ValueError("something else"), ValueError),
    ],
)
def test_what_the_system_reports_is_told_as_ours_and_all_else_is_left(
    raised: Exception, told: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(told) as found, storage_errors(tmp_path / "k.db"):
        raise raised
    assert (found.value is raised) == (told is type(raised))
    assert found.value is raised or found.value.__cause__ is raised
