"""Edits of what lies beside the database: blobs, sealed runs, and what is published."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ledger.edits.copy import Copy, Edit

UNNAMED = "no event names it: it isn't evidence"
NO_CONTENT = "it changes no byte that a manifest names"
STRAY = "no event names it: an open run may lie there, or what a crash left"
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


def overwrite(path: Path, content: bytes) -> None:
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
    Edit("samples edited", lambda copy: overwrite(copy.blob(_SAMPLES(copy)), b"{}")),
    Edit("a report behind a symbolic link", lambda copy: _linked(copy.blob(_REPORT(copy)))),
    Edit(
        "a blob edited that no event names",
        lambda copy: overwrite(_unnamed(copy), b"something else"),
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
    Edit("a file edited", _run(lambda run: overwrite(run / "task.json", b"{}"))),
    Edit("a file missing", _run(lambda run: (run / "benchmark_samples.json").unlink())),
    Edit("a file more", _run(lambda run: (run / "notes.txt").write_text("it was fast"))),
    Edit("a file behind a symbolic link", _run(lambda run: _linked(run / "task.json"))),
    Edit("a file in another folder of the run", _run(lambda run: (run / "task.json").rename(run / "candidate/t"))),
    Edit("two files exchanged", _run(lambda run: _exchanged(run / "task.json", run / "promotion.json"))),
    Edit("a pipe in the place of a file", _run(lambda run: _pipe(run / "task.json"))),
    Edit("a folder of it behind a symbolic link", _run(lambda run: _linked(run / "candidate"))),
    Edit("the manifest edited", _run(lambda run: overwrite(run / "manifest.json", b'{"files":[]}'))),
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
    overwrite(one, other.read_bytes())
    overwrite(other, before)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
