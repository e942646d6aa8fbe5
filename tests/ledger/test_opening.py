import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from forge.errors import EnvironmentUnfit, LedgerCorrupt, StorageFailed, WorkspaceNotFound
from forge.ledger import connection as connecting
from forge.ledger.connection import file_system_of, require_local
from forge.ledger.schema import OLDER_SCHEMAS, SCHEMA_SHA256, USER_VERSION

from .making import fill, open_ledger

DENIED = pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])


def run(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def test_no_file_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceNotFound) as absent:
        open_ledger(tmp_path / "kernel_registry.db")
    assert absent.value.hint
    assert os.listdir(tmp_path) == []


@DENIED
@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"not a database at all" * 300, b"SQLite format 3\0"])
def test_what_is_not_a_database_is_refused(content: bytes, read_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt):
        open_ledger(path, read_only=read_only)
    assert path.read_bytes() == content


@DENIED
def test_a_database_that_is_no_ledger_is_refused_and_left_alone(read_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "k.db"
    run(path, "CREATE TABLE t(x); INSERT INTO t VALUES (1);")
    content = path.read_bytes()
    with pytest.raises(LedgerCorrupt, match="application id is 0x0, expected 0x464f5247"):
        open_ledger(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_ledger_of_a_newer_format_asks_for_an_upgrade(path: Path) -> None:
    run(path, f"PRAGMA user_version = {USER_VERSION + 1}")
    with pytest.raises(LedgerCorrupt, match="upgrade"):
        open_ledger(path)


@DENIED
@pytest.mark.parametrize("part", [0.3, 0.5, 0.9])
def test_a_truncated_file_is_refused(part: float, read_only: bool, path: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 60)
    os.truncate(path, int(path.stat().st_size * part) // 4096 * 4096)
    with pytest.raises(LedgerCorrupt):
        open_ledger(path, read_only=read_only)


@DENIED
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TRIGGER event_refuses_update",
        "DROP TRIGGER event_refuses_delete",
        "DROP TRIGGER event_accepts_only_the_next",
        "DROP TRIGGER ledger_meta_refuses_update",
        "DROP TRIGGER ledger_meta_refuses_delete",
        "DROP TRIGGER ledger_meta_refuses_a_second_row",
        "DROP TRIGGER tree_node_refuses_update",
        "DROP TRIGGER tree_node_refuses_delete",
        "DROP TRIGGER tree_node_accepts_only_the_next",
        "DROP TABLE tree_node",
        "DROP TRIGGER foreign_event_refuses_update",
        "DROP TRIGGER foreign_event_refuses_delete",
        "DROP TRIGGER foreign_event_accepts_only_the_next",
        "DROP INDEX ix_event_type_seq",
        "ALTER TABLE event ADD COLUMN note TEXT",
        "CREATE VIEW kernels AS SELECT 1",
        "CREATE TRIGGER mine AFTER INSERT ON event BEGIN SELECT 1; END",
        "CREATE TRIGGER mine AFTER INSERT ON alembic_version BEGIN SELECT 1; END",
        "DROP TRIGGER event_refuses_update;"
        "CREATE TRIGGER event_refuses_update BEFORE UPDATE ON event BEGIN SELECT 1; END",
        "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('trigger', 'mine', 'event', 0,"
        "CAST('CREATE TRIGGER mine BEFORE INSERT ON event BEGIN SELECT RAISE(IGNORE); END' AS BLOB))",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql || ("
        "SELECT char(0) || 'trigger' || char(0) || name || char(0) || tbl_name || char(0) || sql "
        "FROM sqlite_master WHERE name = 'event_refuses_update') WHERE name = 'event_refuses_delete';"
        "DELETE FROM sqlite_master WHERE name = 'event_refuses_update'",
    ],
)
def test_a_schema_that_is_not_ours_stops_the_ledger(sql: str, read_only: bool, path: Path) -> None:
    run(path, sql)
    with pytest.raises(LedgerCorrupt, match="schema"):
        open_ledger(path, read_only=read_only)


def test_the_message_names_the_trigger_that_is_gone(path: Path) -> None:
    run(path, "DROP TRIGGER event_refuses_delete")
    with pytest.raises(LedgerCorrupt, match="missing: event_refuses_delete") as gone:
        open_ledger(path)
    assert gone.value.hint == "forge ledger verify"


def test_tables_that_tools_keep_are_let_be(path: Path) -> None:
    run(path, "ANALYZE; CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);")
    with open_ledger(path) as ledger:
        fill(ledger, 1)


@DENIED
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE event SET actor = 'cli:eve' WHERE seq = 10",
        "UPDATE event SET event_hash = zeroblob(32) WHERE seq = 11",
        "UPDATE event SET prev_hash = zeroblob(32) WHERE seq = 5",
        "DELETE FROM event WHERE seq = 9",
        "DELETE FROM event",
        "DELETE FROM event WHERE seq = 1",
        "UPDATE ledger_meta SET ledger_id = 'another'",
        "DELETE FROM ledger_meta",
    ],
)
def test_an_edit_at_the_end_of_history_stops_the_ledger(
    sql: str, read_only: bool, path: Path, tamper: Callable[[str], None]
) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 10)
    tamper(sql)
    with pytest.raises(LedgerCorrupt):
        open_ledger(path, read_only=read_only)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "UPDATE event SET payload = replace(payload, '0a1b2c', 'ffffff') WHERE seq = 3",
            "payload of event 3",
        ),
        ("UPDATE event SET stream = 'candidate:x' WHERE seq = 3", "event 3 .* stands in"),
        ("UPDATE event SET type = 'KernelBlessed' WHERE seq = 3", "event 3: unknown event type"),
        (
            "UPDATE event SET schema_version = 7 WHERE seq = 3",
            "event 3: CandidateDuplicated has schema version 7",
        ),
        ("DELETE FROM event WHERE seq = 3", "event 3 is missing"),
    ],
)
def test_an_edit_far_back_stops_the_reading_where_it_is(
    sql: str, says: str, path: Path, tamper: Callable[[str], None]
) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 120)
    tamper(sql)
    with open_ledger(path, read_only=True) as ledger:
        reading = ledger.read()
        assert [next(reading).seq, next(reading).seq] == [1, 2]
        with pytest.raises(LedgerCorrupt, match=says):
            next(reading)


def test_a_symbolic_link_leads_to_the_ledger_and_its_lock(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link" / "k.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with open_ledger(link) as ledger:
        fill(ledger, 1)
        assert ledger.path == path.resolve()
    assert os.listdir(link.parent) == ["k.db"]


@DENIED
def test_a_second_hard_link_is_refused(read_only: bool, path: Path) -> None:
    os.link(path, path.with_name("other.db"))
    with pytest.raises(LedgerCorrupt, match="2 hard links"):
        open_ledger(path, read_only=read_only)


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerCorrupt, match="regular file"):
        open_ledger(tmp_path)


def test_a_lock_that_leads_elsewhere_is_refused(path: Path, tmp_path: Path) -> None:
    path.with_name(f"{path.name}.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed):
        open_ledger(path)
    assert not (tmp_path / "elsewhere").exists()


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:35 / /srv rw,relatime shared:1 - nfs4 server:/srv rw
41 40 0:36 / /srv/ada/my\\040disk rw - ext4 /dev/vdb rw
42 22 0:37 / /mnt rw - ext4 /dev/vdc rw
43 42 0:38 / /mnt rw - fuse.sshfs host:/ rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/forge/k.db", "ext4"),
        ("/srv/ada/k.db", "nfs4"),
        ("/srv/ada/my disk/k.db", "ext4"),
        ("/srvs/k.db", "ext4"),
        ("/mnt/k.db", "fuse.sshfs"),
    ],
)
def test_the_innermost_and_latest_mount_tells_the_file_system(path: str, kind: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_shared_file_systems_are_known(kind: str) -> None:
    assert connecting._SHARED_FILE_SYSTEMS.fullmatch(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "apfs", "fuse.fuse-overlayfs"])
def test_local_file_systems_are_let_be(kind: str) -> None:
    assert not connecting._SHARED_FILE_SYSTEMS.fullmatch(kind)


def test_a_path_on_a_local_disk_passes(tmp_path: Path) -> None:
    require_local(tmp_path)


def test_a_path_on_a_shared_file_system_is_refused() -> None:
    """A mount of that kind can't be made here; where one exists, it is used."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if connecting._SHARED_FILE_SYSTEMS.fullmatch(after.split()[0]):
            with pytest.raises(EnvironmentUnfit, match="local disk"):
                require_local(Path(before.split()[4]))
            return
    pytest.skip("no shared file system is mounted")


def test_every_setting_is_in_force(path: Path) -> None:
    with open_ledger(path) as ledger:
        values = {
            name: ledger._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in (
                "journal_mode",
                "synchronous",
                "foreign_keys",
                "recursive_triggers",
                "trusted_schema",
                "cell_size_check",
                "busy_timeout",
                "application_id",
            )
        }
    assert values == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "busy_timeout": 30000,
        "application_id": int.from_bytes(b"FORG", "big"),
    }


def test_the_audit_pins_the_same_schema_as_the_writer() -> None:
    from forge.ledger.audit.file import FORMATS

    assert {version: digest for version, (digest, _) in FORMATS.items()} == OLDER_SCHEMAS | {
        USER_VERSION: SCHEMA_SHA256
    }
