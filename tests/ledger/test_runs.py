import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from forge.domain.digest import sha256
from forge.errors import IntegrityError, RunNotFound
from forge.ledger.blobs import BlobStore
from forge.ledger.runs.directory import RunDirectory, RunProblem, check, open_runs
from forge.ledger.runs.names import run_id

RUN_ID = "20260301T120000_rmsnorm_h200_0a1b2c"
FILES = {
    "candidate/kernel.py": b"def f(): ...",
    "candidate/metadata.json": b"{}",
    "task.json": b'{"op":"rmsnorm"}',
    "agent_prompt.md": b"# Brief",
    "verification_report.json": b"{}",
    "benchmark/samples.json": b"[1.5]",
    "promotion.json": b"{}",
    "notes/deep/er.txt": b"",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "forge_runs"


@pytest.fixture
def run(root: Path) -> RunDirectory:
    opened = RunDirectory.create(root, RUN_ID)
    for name, content in FILES.items():
        assert opened.write(name, content) == sha256(content)
    return opened


def test_a_run_id_tells_time_operation_processor_and_a_random_part() -> None:
    moment = datetime(2026, 3, 1, 14, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    assert run_id(moment, "rmsnorm", "h200", "0a1b2c") == RUN_ID


@pytest.mark.parametrize(
    ("op", "gpu", "random_hex"),
    [
        ("", "h200", "0a1b2c"),
        ("a/b", "h200", "0a1b2c"),
        ("rms", "RTX 4070", "0a1b2c"),
        ("rms", "h200", "0a1b"),
    ],
)
def test_a_run_id_with_a_bad_part_is_refused(op: str, gpu: str, random_hex: str) -> None:
    with pytest.raises(IntegrityError, match="bad run id"):
        run_id(datetime(2026, 3, 1, tzinfo=UTC), op, gpu, random_hex)
    with pytest.raises(IntegrityError, match="zone"):
        run_id(datetime(2026, 3, 1), "rms", "h200", "0a1b2c")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", f"{RUN_ID}/..", f"/{RUN_ID}", "cas"])
def test_a_run_directory_has_a_run_id_for_its_name(name: str, root: Path) -> None:
    with pytest.raises(IntegrityError, match="bad run id"):
        RunDirectory(root, name)


def test_a_run_id_is_used_once(run: RunDirectory, root: Path) -> None:
    with pytest.raises(IntegrityError, match="used once"):
        RunDirectory.create(root, RUN_ID)
    run.seal()
    with pytest.raises(IntegrityError, match="used once"):
        RunDirectory.create(root, RUN_ID)


def test_open_runs_are_listed_until_they_are_sealed(run: RunDirectory, root: Path) -> None:
    RunDirectory.create(root, "20250301T120000_softmax_cpu_ffffff")
    (root / ".tmp-something else").mkdir()
    assert open_runs(root) == ["20250301T120000_softmax_cpu_ffffff", RUN_ID]
    run.seal()
    assert open_runs(root) == ["20250301T120000_softmax_cpu_ffffff"]
    assert open_runs(root / "absent") == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "candidate/../../x",
        "/etc/x",
        "a//b",
        "a/",
        "a\\b",
        "a\0b",
        "a\nb",
        ".part-x",
        "candidate/.part-x",
        "x" * 201,
        "manifest.json",
        "candidate",
        "task.json/x",
    ],
)
def test_a_file_name_that_leaves_the_run_or_takes_a_reserved_place_is_refused(
    name: str, run: RunDirectory, root: Path
) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(IntegrityError):
        run.write(name, b"x")
    assert sorted(root.rglob("*")) == before


def test_a_file_is_not_written_through_a_linked_folder(run: RunDirectory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (run.open_path / "linked").symlink_to(outside)
    with pytest.raises(IntegrityError, match="leave"):
        run.write("linked/x", b"x")
    (run.open_path / "task.json").unlink()
    (run.open_path / "task.json").symlink_to(outside / "y")
    run.write("task.json", b"{}")
    assert os.listdir(outside) == []


def test_a_sealed_run_names_every_file_by_size_digest_and_role(run: RunDirectory, root: Path) -> None:
    sealed = run.seal()
    assert sealed.path == run.path == root / RUN_ID
    assert not run.open_path.exists()
    stored = (sealed.path / "manifest.json").read_bytes()
    assert hashlib.sha256(stored).hexdigest() == sealed.manifest_sha256
    assert BlobStore(root / "cas").get(sealed.manifest_sha256) == stored
    manifest = json.loads(stored)
    assert manifest["run_id"] == RUN_ID
    assert [entry["path"] for entry in manifest["files"]] == sorted(FILES, key=os.fsencode)
    for entry in manifest["files"]:
        content = FILES[entry["path"]]
        assert (entry["size_bytes"], entry["sha256"]) == (len(content), sha256(content))
    roles = {entry["path"]: entry["role"] for entry in manifest["files"]}
    assert roles == {
        "candidate/kernel.py": "candidate",
        "candidate/metadata.json": "candidate",
        "task.json": "task",
        "agent_prompt.md": "prompt",
        "verification_report.json": "verification",
        "benchmark/samples.json": "benchmark",
        "promotion.json": "promotion",
        "notes/deep/er.txt": "attachment",
    }
    assert check(sealed.path, sealed.manifest_sha256) == []


def test_a_sealed_run_is_read_only(run: RunDirectory) -> None:
    sealed = run.seal()
    for path in sealed.path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o555 if path.is_dir() else 0o444)
    assert sealed.path.stat().st_mode & 0o777 == 0o555
    with pytest.raises(IntegrityError, match="sealed"):
        run.write("late.txt", b"x")


def test_the_same_files_give_the_same_manifest(run: RunDirectory, tmp_path: Path) -> None:
    other = RunDirectory.create(tmp_path / "other", RUN_ID)
    for name, content in reversed(FILES.items()):
        other.write(name, content)
    assert other.seal().manifest_sha256 == run.seal().manifest_sha256


@pytest.mark.parametrize("kind", ["link", "linked folder", "dangling link", "pipe"])
def test_what_is_not_a_regular_file_is_not_sealed(kind: str, run: RunDirectory) -> None:
    odd = run.open_path / "candidate" / "odd"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to({"link": "kernel.py", "linked folder": "/etc", "dangling link": "nowhere"}[kind])
    with pytest.raises(IntegrityError, match=rf"{run.open_path}/candidate/odd.*move it away"):
        run.seal()
    assert run.open_path.is_dir()
    odd.unlink()
    run.seal()


@pytest.mark.parametrize("name", [b"odd\xff", b"odd\n", b"odd\\", b"o" * 220], ids=repr)
def test_a_name_that_no_manifest_holds_is_told_with_its_place_and_what_to_do(name: bytes, run: RunDirectory) -> None:
    place = os.fsencode(run.open_path) + b"/candidate/" + name
    Path(os.fsdecode(place)).write_bytes(b"x")
    with pytest.raises(IntegrityError, match="move it away") as refused:
        run.seal()
    assert f"{run.open_path}/candidate/o" in refused.value.message
    os.unlink(place)
    assert run.seal().path.is_dir()


def test_a_name_of_other_bytes_in_a_sealed_run_is_found(run: RunDirectory) -> None:
    sealed = run.seal()
    sealed.path.chmod(0o755)
    Path(os.fsdecode(os.fsencode(sealed.path) + b"/odd\xff")).write_bytes(b"x")
    assert check(sealed.path, sealed.manifest_sha256) == [RunProblem(r"odd\xff", "not_regular")]


def test_no_run_means_nothing_to_seal(root: Path) -> None:
    with pytest.raises(RunNotFound):
        RunDirectory(root, RUN_ID).seal()
    with pytest.raises(RunNotFound):
        RunDirectory(root, RUN_ID).write("x", b"")


def test_a_run_that_is_open_and_sealed_is_refused(run: RunDirectory) -> None:
    run.seal()
    run.open_path.mkdir()
    with pytest.raises(IntegrityError, match="both open and sealed"):
        run.seal()


def test_sealing_again_after_the_rename_gives_the_same_manifest(run: RunDirectory, root: Path) -> None:
    first = run.seal()
    os.chmod(first.path, 0o755)
    os.chmod(first.path / "task.json", 0o644)
    shutil.rmtree(root / "cas")
    assert RunDirectory(root, RUN_ID).seal() == first
    assert first.path.stat().st_mode & 0o777 == 0o555
    assert BlobStore(root / "cas").has(first.manifest_sha256)


def test_what_was_changed_after_the_rename_is_not_sealed_again(run: RunDirectory, root: Path) -> None:
    first = run.seal()
    replace(first.path / "task.json", b"{}")
    with pytest.raises(IntegrityError, match=r"mismatch 'task.json'"):
        RunDirectory(root, RUN_ID).seal()


def test_a_manifest_of_another_run_is_not_taken_up(run: RunDirectory, root: Path) -> None:
    first = run.seal()
    other = "20260301T120000_rmsnorm_h200_ffffff"
    os.chmod(first.path, 0o755)
    os.rename(first.path, root / other)
    with pytest.raises(IntegrityError, match="holds the manifest of"):
        RunDirectory(root, other).seal()


KILLED = """
import os, sys
from pathlib import Path
from forge.ledger.runs.directory import RunDirectory

class Stop:
    def __init__(self, count):
        self.count = count
    def __call__(self, event, args):
        if event in ("open", "os.rename", "os.chmod", "os.remove", "os.mkdir", "os.link"):
            if any(isinstance(arg, (str, os.PathLike)) and "forge_runs" in str(arg) for arg in args):
                self.count -= 1
                if self.count < 0:
                    os._exit(9)

run = RunDirectory(Path(sys.argv[1]), sys.argv[2])
for step in range(int(sys.argv[3]), int(sys.argv[4])):
    if os.fork() == 0:
        root = Path(sys.argv[1]).with_name(f"killed-{step}")
        import shutil
        shutil.copytree(sys.argv[1], root / "forge_runs")
        sys.addaudithook(Stop(step))
        RunDirectory(root / "forge_runs", sys.argv[2]).seal()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_seal_killed_at_any_step_is_taken_up_to_the_same_manifest(run: RunDirectory, root: Path) -> None:
    """The process exits at each opening, renaming, unlinking and chmod of the seal in turn."""
    code = [sys.executable, "-c", KILLED, str(root), RUN_ID, "0", "80"]
    answer = subprocess.run(code, check=True, capture_output=True, text=True).stdout.split()
    killed = answer.count("9")
    assert killed > 30
    assert answer == ["9"] * killed + ["0"] * (80 - killed)
    renamed = 0
    expected = run.seal()
    for step in range(killed):
        copy = root.with_name(f"killed-{step}") / "forge_runs"
        renamed += (copy / RUN_ID).exists()
        sealed = RunDirectory(copy, RUN_ID).seal()
        assert sealed.manifest_sha256 == expected.manifest_sha256
        assert sealed.manifest == expected.manifest
        assert check(sealed.path, expected.manifest_sha256) == []
    assert 0 < renamed < killed


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda path: replace(path / "task.json", b"{}"), RunProblem("task.json", "mismatch")),
        (lambda path: (path / "task.json").unlink(), RunProblem("task.json", "missing")),
        (
            lambda path: (path / "candidate/extra.py").write_bytes(b""),
            RunProblem("candidate/extra.py", "unknown"),
        ),
        (
            lambda path: ((path / "task.json").unlink(), (path / "task.json").symlink_to("/etc/hostname")),
            RunProblem("task.json", "not_regular"),
        ),
        (lambda path: (path / "link").symlink_to("/etc"), RunProblem("link", "not_regular")),
        (lambda path: os.mkfifo(path / "pipe"), RunProblem("pipe", "not_regular")),
        (lambda path: replace(path / "manifest.json", b"{}"), RunProblem("manifest.json", "mismatch")),
        (lambda path: (path / "manifest.json").unlink(), RunProblem("manifest.json", "missing")),
        (
            lambda path: (
                (path / "manifest.json").rename(path.with_name("m")),
                (path / "manifest.json").symlink_to(path.with_name("m")),
            ),
            RunProblem("manifest.json", "not_regular"),
        ),
        (lambda path: path.rename(path.with_name("moved")), RunProblem(".", "missing")),
    ],
    ids=[
        "edited",
        "missing",
        "unknown",
        "now a link",
        "a new link",
        "a pipe",
        "manifest edited",
        "manifest missing",
        "manifest a link",
        "moved",
    ],
)
def test_a_check_names_what_changed(
    change: Callable[[Path], object], expected: RunProblem, run: RunDirectory
) -> None:
    sealed = run.seal()
    change(sealed.path)
    assert expected in check(sealed.path, sealed.manifest_sha256)
    assert {problem.path for problem in check(sealed.path, sealed.manifest_sha256)} == {expected.path}


def test_what_a_killed_write_left_is_not_sealed(run: RunDirectory) -> None:
    (run.open_path / "candidate" / ".part-abc").write_bytes(b"half")
    sealed = run.seal()
    assert not list(sealed.path.rglob(".part-*"))
    assert len(sealed.manifest.files) == len(FILES)


def test_every_file_and_folder_is_made_durable_before_a_sealed_run_has_its_name(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.open_path / "by hand.txt").write_text("a person's note")
    durable, at_the_rename = set[int](), list[set[int]]()
    fsync, rename = os.fsync, os.rename

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        durable.add(os.fstat(descriptor).st_ino)

    def renamed(old: Path, new: Path) -> None:
        if new == run.sealed_path:
            at_the_rename.append(set(durable))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "rename", renamed)
    sealed = run.seal()
    there = {path.stat().st_ino for path in (sealed.path, *sealed.path.rglob("*"))}
    assert len(there) > len(FILES)
    (before,) = at_the_rename
    assert there <= before
    assert BlobStore(run.root / "cas").path(sealed.manifest_sha256).stat().st_ino in before
    assert run.root.stat().st_ino in durable


def test_files_of_an_open_run_are_durable_with_every_folder_on_their_way(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable, fsync = set[int](), os.fsync
    monkeypatch.setattr(os, "fsync", lambda one: (fsync(one), durable.add(os.fstat(one).st_ino))[0])
    run.write("profile/deep/a.json", b"{}")
    run.make_durable(["profile/deep/a.json"])
    named = run.open_path / "profile" / "deep" / "a.json"
    assert {path.stat().st_ino for path in (named, *named.parents[:3])} <= durable
