"""Edits of what lies beside the database: blobs, sealed runs, and what is published."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from forge.domain.digest import canonical
from tests.ledger.edits.copy import Copy, Edit, Found

UNNAMED = "no event names it: it isn't evidence"
NO_CONTENT = "it changes no byte that a manifest names"
STRAY = "no event names it: an open run may lie there, or what a crash left"
DERIVED = "derived by design: nothing believes it, and forge ledger rebuild says what differed and replaces it"
Digest = Callable[[Copy], str]


def _of(kind: str, *path: str | int) -> Digest:
    """The digest in a field of the newest event of a type."""

    def find(copy: Copy) -> str:
        node: Any = copy.payload(kind)
        for name in path:
            node = node[name]
        return str(node)

    return find


def _piece(name: str) -> Digest:
    """The digest of a file that was built."""

    def find(copy: Copy) -> str:
        listing = json.loads(copy.blob(_of("CandidateVerified", "artifact_sha256")(copy)).read_bytes())
        return next(str(file["sha256"]) for file in listing["files"] if file["path"] == name)

    return find


def _gone(digest: Digest) -> Callable[[Copy], None]:
    return lambda copy: copy.blob(digest(copy)).unlink()


def _missing(what: str, digest: Digest) -> Edit:
    return Edit(f"{what} missing", _gone(digest))


def _overwrite(path: Path, content: bytes) -> None:
    path.parent.chmod(0o755)
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _linked(path: Path) -> None:
    """A symbolic link to the same bytes in the place of a file or folder."""
    path.parent.chmod(0o755)
    path.chmod(0o755)
    aside = path.parent.parent / f"aside-{path.name}"
    aside.parent.chmod(0o755)
    path.rename(aside)
    path.symlink_to(aside)


_SAMPLES = _of("BenchmarkRecorded", "workloads", 0, "samples_sha256")
_REPORT = _of("BenchmarkRecorded", "report_sha256")


def _unnamed(copy: Copy) -> Path:
    wanted = b"a blob that no event names"
    return next(path for path in (copy.runs / "cas").glob("*/*") if path.read_bytes() == wanted)


def _plan_of_an_appended_benchmark(copy: Copy) -> None:
    def change(payload: Any) -> None:
        payload["workloads"][0]["replay"] = {
            "plan_sha256": "ab" * 32,
            "sets": 1,
            "set_bytes": 1,
            "host_ratio": [1.0],
            "states": [],
            "blocks": 1,
            "dropped": 0,
            "gpu_s": 1.0,
        }

    copy.append_again("BenchmarkRecorded", change)


BLOBS = (
    _missing("a candidate's file", _of("CandidateSubmitted", "files", "files", 0, "sha256")),
    _missing("the raw samples", _SAMPLES),
    _missing("a report of a benchmark", _REPORT),
    _missing("the policy", _of("RunStarted", "policy_sha256")),
    _missing("the shapes held out", _of("TaskCreated", "task", "held_out_sha256")),
    _missing("the brief", _of("PromptRendered", "rendered_sha256")),
    _missing("the listing of what was built", _of("KernelPromoted", "artifact_sha256")),
    _missing("a library that was built", _piece("libkernel.so")),
    _missing("a launch plan that was built", _piece("plan.json")),
    _missing("the device code of a launch plan", _piece("plan0.cubin")),
    _missing("a raw profile", _of("ProfileCaptured", "raw_sha256")),
    Edit("the launch plan of an appended benchmark missing", _plan_of_an_appended_benchmark),
    Edit("samples edited", lambda copy: _overwrite(copy.blob(_SAMPLES(copy)), b"{}")),
    Edit("a report behind a symbolic link", lambda copy: _linked(copy.blob(_REPORT(copy)))),
    Edit(
        "a blob edited that no event names",
        lambda copy: _overwrite(_unnamed(copy), b"something else"),
        "--full",
    ),
    Edit("a blob missing that no event names", lambda copy: _unnamed(copy).unlink(), "nothing", UNNAMED),
)


def _run(act: Callable[[Path], object]) -> Callable[[Copy], None]:
    """Something done to a sealed run whose owner may write again."""

    def edit(copy: Copy) -> None:
        folder = copy.run_folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        act(folder)

    return edit


def _file(name: str) -> Callable[[Path], Path]:
    return lambda folder: folder / name


RUNS = (
    Edit("a file edited", _run(lambda run: _overwrite(run / "task.json", b"{}"))),
    Edit("a file missing", _run(lambda run: (run / "benchmark_samples.json").unlink())),
    Edit("a file more", _run(lambda run: (run / "notes.txt").write_text("it was fast"))),
    Edit("a file behind a symbolic link", _run(lambda run: _linked(run / "task.json"))),
    Edit("a file in another folder of the run", _run(lambda run: (run / "task.json").rename(run / "candidate/t"))),
    Edit("two files exchanged", _run(lambda run: _exchanged(run / "task.json", run / "promotion.json"))),
    Edit("a pipe in the place of a file", _run(lambda run: _pipe(run / "task.json"))),
    Edit("a folder of it behind a symbolic link", _run(lambda run: _linked(run / "candidate"))),
    Edit("the manifest edited", _run(lambda run: _overwrite(run / "manifest.json", b'{"files":[]}'))),
    Edit("the manifest missing", _run(lambda run: (run / "manifest.json").unlink())),
    Edit("the run missing", _run(shutil.rmtree)),
    Edit("the run behind a symbolic link", _run(lambda run: _linked(run))),
    Edit(
        "other modes and times",
        _run(lambda run: (run.chmod(0o777), os.utime(run / "task.json", (0, 0)))),
        "nothing",
        NO_CONTENT,
    ),
    Edit("a folder of a run that no event names", lambda copy: (copy.runs / "20200101").mkdir(), "nothing", STRAY),
)


def _exchanged(one: Path, other: Path) -> None:
    before = one.read_bytes()
    _overwrite(one, other.read_bytes())
    _overwrite(other, before)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _published(name: str, act: Callable[[Path], object], found: Found = "--full", why: str = "") -> Edit:
    return Edit(name, lambda copy: [act(copy.registry), None][1], found, why)


def _kernel(registry: Path) -> Path:
    (folder,) = (registry / "kernels").iterdir()
    return folder


def _faster(path: Path) -> None:
    """Every ratio of a document."""
    text = path.read_text()
    assert "2.0" in text
    _overwrite(path, text.replace("2.0", "9.62").encode())


def _row(registry: Path) -> None:
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        assert connection.execute("UPDATE benchmarks SET speedup = 9.62").rowcount
        connection.commit()


def _entry(registry: Path) -> None:
    """What the next publication would show."""
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        change = "UPDATE kernel_documents SET lookup = replace(lookup, 'fp32', 'bf16')"
        assert connection.execute(change).rowcount
        connection.commit()


def _offered(**fields: object) -> Callable[[Path], None]:
    """Other fields of a kernel in the snapshot, under a pointer that names the new bytes."""

    def act(registry: Path) -> None:
        pointer = json.loads((registry / "current.json").read_bytes())
        content = json.loads((registry / pointer["snapshot"]).read_bytes())
        (kernel,) = content["kernels"]
        if not fields:
            content["kernels"] = []
        kernel |= fields
        head = json.dumps({name: content[name] for name in ("schema_version", "gpus", "slots")})[:-1]
        text = f'{head},"kernels":[\n{json.dumps(kernel) if fields else ""}\n]}}'.encode()
        digest = hashlib.sha256(text).hexdigest()
        name = f"lookup-{digest[:12]}.json"
        (registry / name).write_bytes(text)
        _overwrite(registry / "current.json", canonical(pointer | {"snapshot": name, "sha256": digest}))

    return act


def _another_architecture(registry: Path) -> None:
    """A GPU of which a lookup for a family would say that it is like another one."""
    pointer = json.loads((registry / "current.json").read_bytes())
    text = (registry / pointer["snapshot"]).read_bytes()
    assert b'"gpus":{' in text
    text = text.replace(b'"gpus":{}', b'"gpus":{"h100":"sm_90"}', 1)
    digest = hashlib.sha256(text).hexdigest()
    name = f"lookup-{digest[:12]}.json"
    (registry / name).write_bytes(text)
    _overwrite(registry / "current.json", canonical(pointer | {"snapshot": name, "sha256": digest}))


def _another_shape(registry: Path) -> None:
    """A second point, as far as a lookup can see proven."""
    pointer = json.loads((registry / "current.json").read_bytes())
    (kernel,) = json.loads((registry / pointer["snapshot"]).read_bytes())["kernels"]
    (point,) = kernel["points"]
    larger = {**point, "shape": {**point["shape"], "batch": 512}, "provisional": True}
    _offered(points=[point, larger])(registry)


DOMAIN = {"axes": {"batch": {"multiple_of": 4}}, "relations": [], "layouts": None, "alignment_bytes": 1}

PUBLISHED = (
    _published("a figure in verified_kernels.json", lambda registry: _faster(registry / "verified_kernels.json")),
    _published("a figure in leaderboard.json", lambda registry: _faster(registry / "leaderboard.json")),
    _published("versions.json emptied", lambda registry: _overwrite(registry / "versions.json", b"{}")),
    _published("a row in history.db", _row),
    _published("a kernel's entry in history.db", _entry),
    _published(
        "the pointer to the snapshot missing",
        lambda registry: (registry / "current.json").unlink(),
        "nothing",
        DERIVED,
    ),
    _published(
        "the snapshots emptied", lambda registry: [_overwrite(one, b"{}") for one in registry.glob("lookup-*.json")]
    ),
    _published("a kernel's source edited", lambda registry: _overwrite(_kernel(registry) / "kernel.py", b"# fast")),
    _published("a kernel's folder missing", lambda registry: shutil.rmtree(_kernel(registry)), "nothing", DERIVED),
    _published("history.db missing", lambda registry: (registry / "history.db").unlink(), "nothing", DERIVED),
    _published("a snapshot without the kernel", _offered()),
    _published("a kernel of another element type in the snapshot", _offered(dtype="bf16")),
    _published("a kernel in another language in the snapshot", _offered(language="triton")),
    _published(
        "shapes in the snapshot that no gate verified", _offered(verified=[{"batch": [1], "hidden_size": [8]}])
    ),
    _published("a point in the snapshot at a shape that was never timed", _another_shape),
    _published("another domain in the snapshot", _offered(domain=DOMAIN)),
    _published("a replication in the snapshot that no event has", _offered(replicated_seq=9)),
    _published("a later time of measurement in the snapshot", _offered(measured_at="2031-01-01T00:00:00.000000Z")),
    _published("an architecture in the snapshot that no event has", _another_architecture),
    _published("another source in the snapshot", _offered(sha256="0" * 64)),
)
