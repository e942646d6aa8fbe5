"""What lies on the disk after a publication, a crash, a full disk, a late publisher."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forge.errors import StorageFailed, UsageError
from forge.projections.catch_up import rebuild
from forge.projections.publish import publish
from tests.projections.histories import LEDGER_ID, History, opened, promoted


def files_of(history: History) -> dict[str, bytes]:
    return rebuild(history.events, history.head, LEDGER_ID)


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
    assert publish(tmp_path / "new" / "kernel_registry", files)
    assert shown(tmp_path / "new" / "kernel_registry") == files
    assert {"verified_kernels.json", "versions.json", "leaderboard.json", "history.db"} < files.keys()


def test_a_snapshot_is_read_only_and_the_rest_can_be_read_by_others(tmp_path):
    files = files_of(opened())
    publish(tmp_path, files)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in files}
    assert {mode for name, mode in modes.items() if name.startswith("lookup-")} == {0o444}
    assert {mode for name, mode in modes.items() if not name.startswith("lookup-")} == {0o644}


def test_only_the_newest_snapshots_are_kept_and_the_named_one_always(tmp_path):
    history, newest = opened(), []
    for number in range(6):
        promoted(history, name=str(number))
        publish(tmp_path, files_of(history), keep=2)
        newest.append(json.loads((tmp_path / "current.json").read_bytes())["snapshot"])
    assert {path.name for path in tmp_path.glob("lookup-*.json")} == set(newest[-2:])
    os.utime(tmp_path / newest[-1], (0, 0))
    publish(tmp_path, {"note.txt": b"x"}, keep=0)
    assert {path.name for path in tmp_path.glob("lookup-*.json")} == {newest[-1]}


def test_a_late_publisher_does_not_take_the_registry_back(tmp_path):
    history = opened()
    early = files_of(history)
    promoted(history)
    late = files_of(history)
    assert publish(tmp_path, late)
    assert not publish(tmp_path, early)
    assert shown(tmp_path)["current.json"] == late["current.json"]
    assert publish(tmp_path, early, replace_newer=True)
    assert shown(tmp_path)["current.json"] == early["current.json"]


def test_another_ledgers_registry_may_be_replaced(tmp_path):
    history = opened()
    promoted(history)
    publish(tmp_path, files_of(history))
    fresh = opened()
    assert publish(tmp_path, rebuild(fresh.events, fresh.head, "another ledger"))


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"ledger": 3}'])
def test_a_damaged_pointer_is_replaced(tmp_path, damaged):
    (tmp_path / "current.json").write_bytes(damaged)
    files = files_of(opened())
    assert publish(tmp_path, files)
    assert shown(tmp_path) == files


def test_a_damaged_snapshot_is_written_again(tmp_path):
    files = files_of(opened())
    publish(tmp_path, files)
    (snapshot,) = tmp_path.glob("lookup-*.json")
    snapshot.chmod(0o644)
    snapshot.write_bytes(b"{}")
    publish(tmp_path, files)
    assert shown(tmp_path) == files


def test_leftovers_of_a_crash_are_cleared(tmp_path):
    (tmp_path / ".publishing-abc").write_bytes(b"half")
    files = files_of(opened())
    publish(tmp_path, files)
    assert shown(tmp_path) == files


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../../up", ".publishing-x"])
def test_a_name_that_leaves_the_directory_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="bad name"):
        publish(tmp_path / "registry", {name: b"x"})
    assert not (tmp_path / "registry").exists()


def test_files_may_lie_in_folders(tmp_path):
    publish(tmp_path, {"kernels/a_v1/kernel.py": b"pass"})
    assert shown(tmp_path) == {"kernels/a_v1/kernel.py": b"pass"}


def test_a_full_disk_leaves_what_was_published_and_nothing_half_written(tmp_path):
    publish(tmp_path, files_of(opened()))
    before = shown(tmp_path)
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from forge.errors import StorageFailed; from forge.projections.publish import publish\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "files = {'a.json': b'a' * 500, 'b.json': b'b' * 5000, 'current.json': b'{}'}\n"
        "try: publish(Path(sys.argv[1]), files)\n"
        "except StorageFailed as error: print(error.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=True)
    assert done.stdout == b"STORAGE_FAILED\n", done.stderr
    assert shown(tmp_path) == before


def test_a_directory_that_is_a_file_is_a_storage_failure(tmp_path):
    (tmp_path / "registry").write_bytes(b"")
    with pytest.raises(StorageFailed):
        publish(tmp_path / "registry", {"a": b"x"})


def publish_each(directory: Path, states: list[dict[str, bytes]]) -> None:
    for files in states:
        publish(directory, files)


def test_publishers_at_the_same_time_leave_the_newest_state(tmp_path):
    history, states = opened(), []
    for number in range(6):
        promoted(history, name=str(number))
        states.append(files_of(history))
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=publish_each, args=(tmp_path, order))
        for order in (states, states[::-1], states[::2], states[1::2])
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
        assert worker.exitcode == 0
    found = shown(tmp_path)
    assert {name: found[name] for name in states[-1]} == states[-1]
