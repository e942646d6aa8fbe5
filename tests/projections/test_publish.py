"""What lies on the disk after a publication, a crash, a full disk, a late publisher."""

import errno
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from forge.errors import StorageFailed, UsageError
from forge.lookup import Registry
from forge.projections.catch_up import FILE
from forge.projections.files import put
from forge.projections.publish import StoredFiles, publish, republish
from forge.projections.sqlite_file import connect, require_own
from tests.projections.histories import History, grown_by, opened, past, promoted, rebuild, revoke
from tests.projections.values import SHAPE


def files_of(history: History) -> dict[str, bytes]:
    return rebuild(history.events, history.head)


def documents(directory: Path) -> dict[str, bytes]:
    return {name: content for name, content in shown(directory).items() if not name.startswith(FILE)}


def published(directory: Path, history: History, length: int | None = None) -> None:
    publish(directory, lambda: past(history.events[:length]), StoredFiles(of_kernel=source_of))


def source_of(kernel) -> dict[str, bytes]:
    return {f"kernels/{kernel.kernel_id}/kernel.py": str((kernel.candidate, "kernel.py")).encode()}


def expected(history: History, length: int | None = None) -> dict[str, bytes]:
    """What is published of the first events, but for older snapshots and the tables."""
    events = history.events[:length]
    files = rebuild(events, past(events).head)
    del files["tables"]
    kernels = (one.event for one in events if one.event.TYPE == "KernelPromoted")
    return files | {name: content for kernel in kernels for name, content in source_of(kernel).items()}


def shown(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != ".publish.lock"
    }


def test_every_file_is_published_as_it_was_rendered(tmp_path):
    history = opened()
    promoted(history)
    files = files_of(history)
    put(tmp_path / "new" / "kernel_registry", files)
    assert shown(tmp_path / "new" / "kernel_registry") == files
    assert {"verified_kernels.json", "versions.json", "leaderboard.json", "current.json"} < files.keys()


def test_a_snapshot_is_read_only_and_the_rest_can_be_read_by_others(tmp_path):
    files = files_of(opened())
    put(tmp_path, files)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in files}
    assert {mode for name, mode in modes.items() if name.startswith("lookup-")} == {0o444}
    assert {mode for name, mode in modes.items() if not name.startswith("lookup-")} == {0o644}


def test_only_the_newest_snapshots_are_kept_and_the_named_one_always(tmp_path):
    history, newest = opened(), []
    for number in range(6):
        promoted(history, name=str(number))
        put(tmp_path, files_of(history), keep=2)
        newest.append(json.loads((tmp_path / "current.json").read_bytes())["snapshot"])
    assert {path.name for path in tmp_path.glob("lookup-*.json")} == set(newest[-2:])
    os.utime(tmp_path / newest[-1], (0, 0))
    put(tmp_path, {"note.txt": b"x"}, keep=0)
    assert {path.name for path in tmp_path.glob("lookup-*.json")} == {newest[-1]}


def test_a_ledger_that_was_restored_takes_the_registry_back(tmp_path):
    history = opened()
    promoted(history, name="a")
    length = len(history.events)
    promoted(history, name="b")
    published(tmp_path, history)
    published(tmp_path, history, length)
    found = documents(tmp_path)
    assert found.items() >= expected(history, length).items()


def test_another_ledgers_registry_is_replaced(tmp_path):
    history = opened()
    promoted(history)
    published(tmp_path, history)
    fresh = opened()
    publish(tmp_path, lambda: past(fresh.events, "another ledger"))
    assert json.loads((tmp_path / "current.json").read_bytes())["ledger"]["ledger_id"] == "another ledger"
    assert json.loads((tmp_path / "verified_kernels.json").read_bytes())["kernels"] == []


def test_nothing_but_the_pointer_and_the_tables_change_while_no_kernel_does(tmp_path):
    history = opened()
    promoted(history)
    published(tmp_path, history)
    before = {name: (tmp_path / name).stat().st_ino for name in documents(tmp_path)}
    grown_by(history, "fail", 3)
    published(tmp_path, history)
    after = {name: (tmp_path / name).stat().st_ino for name in documents(tmp_path)}
    assert {name for name in before if before[name] != after[name]} == {"current.json"}
    assert documents(tmp_path).items() >= expected(history).items()


@pytest.mark.parametrize(
    "lost", ["history.db", "current.json", "verified_kernels.json", "leaderboard.json", "snapshot"]
)
def test_a_published_file_that_is_gone_comes_back(tmp_path, lost):
    history = opened()
    promoted(history)
    published(tmp_path, history)
    (tmp_path / lost).unlink() if lost != "snapshot" else next(tmp_path.glob("lookup-*.json")).unlink()
    published(tmp_path, history)
    assert documents(tmp_path).items() >= expected(history).items()
    assert (tmp_path / FILE).exists()


def test_a_crash_between_the_tables_and_the_documents_is_made_good(tmp_path):
    history = opened()
    kernel_id = promoted(history)
    published(tmp_path, history)
    revoke(history, kernel_id)

    class Killed(Exception):
        pass

    def killed(_):
        raise Killed

    with pytest.raises(Killed):
        publish(tmp_path, lambda: past(history.events), StoredFiles(others=killed))
    with closing(connect(tmp_path / FILE, read_only=True)) as connection:
        assert connection.execute("SELECT seq FROM cursor").fetchone() == (history.head.seq,)
    assert json.loads((tmp_path / "verified_kernels.json").read_bytes())["kernels"][0]["status"] == "active"
    published(tmp_path, history)
    assert documents(tmp_path).items() >= expected(history).items()


def test_a_rebuild_says_what_differed_and_shows_equal_digests(tmp_path):
    history = opened()
    promoted(history)
    for length in range(1, len(history.events) + 1):
        published(tmp_path, history, length)
    caught_up = republish(tmp_path, lambda: past(history.events), StoredFiles(of_kernel=source_of))
    assert {one.state for one in caught_up} == {"identical"}
    (tmp_path / "versions.json").write_bytes(b"{}")
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("UPDATE kernels SET status = 'active', low = low + 1")
        connection.commit()
    found = republish(tmp_path, lambda: past(history.events), StoredFiles(of_kernel=source_of))
    assert {one.file for one in found if one.state == "replaced"} == {"versions.json", FILE}
    assert [one.sha256 for one in found] == [one.sha256 for one in caught_up]
    assert {
        one.state for one in republish(tmp_path, lambda: past(history.events), StoredFiles(of_kernel=source_of))
    } == {"identical"}


def test_a_reader_in_the_middle_of_its_reading_sees_one_state_and_blocks_no_publisher(tmp_path):
    history = opened()
    promoted(history, name="a")
    published(tmp_path, history)
    with closing(connect(tmp_path / FILE, read_only=True)) as reader:
        reader.execute("BEGIN")
        counted = reader.execute("SELECT count(*) FROM kernels").fetchone()
        promoted(history, name="b")
        published(tmp_path, history)
        republish(tmp_path, lambda: past(history.events))
        assert reader.execute("SELECT count(*) FROM kernels").fetchone() == counted == (1,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM kernels").fetchone() == (2,)


def ask_all_the_time(directory: Path, stop, failures) -> None:
    """Read the tables and the registry again and again; a torn state is a failure."""
    asked = 0
    try:
        while not stop.is_set():
            with closing(connect(directory / FILE, read_only=True)) as connection:
                connection.execute("BEGIN")
                kernels = connection.execute("SELECT count(*) FROM kernels").fetchone()[0]
                shown = connection.execute("SELECT count(*) FROM kernel_documents").fetchone()[0]
                assert kernels == shown
                assert kernels == connection.execute("SELECT total(versions) FROM families").fetchone()[0]
            found = Registry.open(directory).lookup(op="rmsnorm", gpu="h200", dtype="bf16", shape=SHAPE)
            assert found.match == "exact"
            asked += 1
        failures.put(None if asked else "never asked")
    except BaseException as error:  # the parent is told, whatever it was
        failures.put(repr(error))


def test_many_readers_never_see_half_of_a_publication(tmp_path):
    history = opened()
    promoted(history, name="first")
    published(tmp_path, history)
    context = multiprocessing.get_context("fork")
    stop, failures = context.Event(), context.Queue()
    readers = [context.Process(target=ask_all_the_time, args=(tmp_path, stop, failures)) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(12):
        promoted(history, name=str(number))
        published(tmp_path, history)
        if number % 4 == 3:
            republish(tmp_path, lambda: past(history.events), StoredFiles(of_kernel=source_of))
    stop.set()
    assert [failures.get(timeout=120) for _ in readers] == [None] * 4
    for reader in readers:
        reader.join(120)


def make_and_remove(path: Path, stop) -> None:
    """Make a file and remove it, again and again."""
    while not stop.is_set():
        path.touch()
        path.unlink()


def test_a_file_that_is_removed_at_this_moment_is_no_other_one(tmp_path):
    published(tmp_path, opened())
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    other = context.Process(target=make_and_remove, args=(tmp_path / f"{FILE}-journal", stop))
    other.start()
    try:
        for _ in range(5_000):
            require_own(tmp_path / FILE)
    finally:
        stop.set()
        other.join(120)


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"ledger": 3}'])
def test_a_damaged_pointer_is_replaced(tmp_path, damaged):
    history = opened()
    promoted(history)
    published(tmp_path, history)
    (tmp_path / "current.json").write_bytes(damaged)
    published(tmp_path, history)
    assert documents(tmp_path) == expected(history)


def test_a_pointer_of_another_schema_is_replaced_with_its_snapshot(tmp_path):
    history = opened()
    promoted(history)
    published(tmp_path, history)
    pointer = json.loads((tmp_path / "current.json").read_bytes())
    (tmp_path / "current.json").write_text(json.dumps({**pointer, "schema_version": 1}))
    (tmp_path / pointer["snapshot"]).unlink()
    published(tmp_path, history)
    assert documents(tmp_path) == expected(history)


def test_a_damaged_snapshot_is_written_again(tmp_path):
    files = files_of(opened())
    put(tmp_path, files)
    (snapshot,) = tmp_path.glob("lookup-*.json")
    snapshot.chmod(0o644)
    snapshot.write_bytes(b"{}")
    put(tmp_path, files)
    assert shown(tmp_path) == files


def test_leftovers_of_a_crash_are_cleared(tmp_path):
    (tmp_path / ".publishing-abc").write_bytes(b"half")
    published(tmp_path, opened())
    assert not list(tmp_path.glob(".publishing-*"))
    assert documents(tmp_path) == expected(opened())


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../../up", ".publishing-x"])
def test_a_name_that_leaves_the_directory_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="bad name"):
        put(tmp_path / "registry", {name: b"x"})
    assert not (tmp_path / "registry").exists()


def test_files_may_lie_in_folders(tmp_path):
    put(tmp_path, {"kernels/a_v1/kernel.py": b"pass"})
    assert shown(tmp_path) == {"kernels/a_v1/kernel.py": b"pass"}


def test_a_full_disk_leaves_what_was_published_and_nothing_half_written(tmp_path):
    put(tmp_path, files_of(opened()))
    before = shown(tmp_path)
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from forge.projections.files import put\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "files = {'a.json': b'a' * 500, 'b.json': b'b' * 5000, 'current.json': b'{}'}\n"
        "try: put(Path(sys.argv[1]), files)\n"
        "except OSError as error: print(error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=True)
    assert done.stdout == f"{errno.EFBIG}\n".encode(), done.stderr
    assert shown(tmp_path) == before


def test_a_directory_that_is_a_file_is_a_storage_failure(tmp_path):
    (tmp_path / "registry").write_bytes(b"")
    with pytest.raises(StorageFailed, match="what was published before still stands"):
        published(tmp_path / "registry", opened())


def publish_each(directory: Path, history: History, lengths: list[int]) -> None:
    for length in lengths:
        published(directory, history, length)


def test_publishers_at_the_same_time_leave_one_whole_state(tmp_path):
    history, lengths = opened(), []
    for number in range(4):
        promoted(history, name=str(number))
        lengths.append(len(history.events))
    context = multiprocessing.get_context("fork")
    orders = (lengths, lengths[::-1], lengths[::2], lengths[1::2])
    workers = [context.Process(target=publish_each, args=(tmp_path, history, order)) for order in orders]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    at = json.loads((tmp_path / "current.json").read_bytes())["ledger"]["seq"]
    assert documents(tmp_path).items() >= expected(history, at).items()
    published(tmp_path, history)
    assert documents(tmp_path).items() >= expected(history).items()
