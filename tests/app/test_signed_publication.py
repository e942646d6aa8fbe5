"""What the key signs follows from the events, whatever another program wrote into the published folder before."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forge.app.kernels.decisions import revoke
from forge.app.ledger.signing import checkpoint
from forge.app.workspace import Workspace
from forge.domain.digest import canonical, sha256
from forge.lookup import Registry
from tests.shipped import copy_shipped_ledger

pytestmark = pytest.mark.slow
KERNEL = "triton_gated_rmsnorm_quant_h100_bf16_b4096_h4096_v1"
OTHER = "triton_cross_entropy_h100_bf16_tokens1024_vocabsize32000_v1"
SHAPE = {"batch": 4096, "hidden_size": 4096}
REAL = 1.7404897
"""Speedup of the kernel, as event 2312 gives it."""
FORGED = 99.5


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(copy_shipped_ledger(tmp_path)) as found:
        checkpoint(found, new_key=True, copy=None)
        yield found


def answered(workspace: Workspace) -> tuple[str | None, float | None]:
    """The kernel and the speedup that a reader with the pinned key gets."""
    registry = Registry.open(workspace.home, key=workspace.registry_root / "ledger.vkey")
    found = registry.lookup(op="gated_rmsnorm_quant", gpu="h100", dtype="bf16", shape=SHAPE)
    return (found.kernel and found.kernel.kernel_id), (found.evidence and found.evidence.speedup)


def forge_snapshot(root: Path) -> None:
    """Let the published snapshot say another speedup, and the pointer name it."""
    pointer = json.loads((root / "current.json").read_bytes())
    content = (root / pointer["snapshot"]).read_bytes()
    lines = content.split(b"\n")
    for place, line in enumerate(lines):
        if KERNEL.encode() in line:
            kernel = json.loads(line.removesuffix(b","))
            same_length = json.dumps(kernel["points"][0]["speedup"])
            forged = f"{FORGED}".ljust(len(same_length), "0")
            lines[place] = line.replace(same_length.encode(), forged.encode(), 1)
    forged_content = b"\n".join(lines)
    assert forged_content != content
    assert len(forged_content) == len(content)
    digest = sha256(forged_content)
    name = f"lookup-{digest[:12]}.json"
    (root / name).write_bytes(forged_content)
    (root / "current.json").write_bytes(canonical({**pointer, "sha256": digest, "snapshot": name}))


def test_the_real_registry_answers(workspace: Workspace) -> None:
    assert answered(workspace) == (KERNEL, pytest.approx(REAL, rel=1e-3))


def test_a_forged_snapshot_is_not_signed_with_the_next_events(workspace: Workspace) -> None:
    forge_snapshot(workspace.registry_root)
    checkpoint(workspace, new_key=False, copy=None)
    assert answered(workspace) == (KERNEL, pytest.approx(REAL, rel=1e-3))


def test_a_forged_row_of_the_history_is_not_signed_with_the_next_decision(workspace: Workspace) -> None:
    with closing(sqlite3.connect(workspace.registry_root / "history.db", isolation_level=None)) as history:
        (lookup,) = history.execute("SELECT lookup FROM kernel_documents WHERE kernel_id = ?", (KERNEL,)).fetchone()
        document = json.loads(lookup)
        document["points"][0] |= {"speedup": FORGED, "high": FORGED}
        history.execute("UPDATE kernel_documents SET lookup = ? WHERE kernel_id = ?", (json.dumps(document), KERNEL))
    revoke(workspace, OTHER, reason="wrong", severity="wrong_result")
    assert answered(workspace) == (KERNEL, pytest.approx(REAL, rel=1e-3))


def test_a_publication_from_before_a_revocation_is_not_signed_again(workspace: Workspace, tmp_path: Path) -> None:
    root = workspace.registry_root
    kept = tmp_path / "kept"
    kept.mkdir()
    for path in (root / "current.json", *root.glob("lookup-*.json")):
        shutil.copy(path, kept)
    revoke(workspace, KERNEL, reason="wrong", severity="wrong_result")
    assert answered(workspace)[0] != KERNEL
    for path in kept.iterdir():
        path.chmod(0o644)
        shutil.copy(path, root / f".{path.name}")
        (root / f".{path.name}").replace(root / path.name)
    with closing(sqlite3.connect(root / "history.db", isolation_level=None)) as history:
        history.execute("UPDATE cursor SET registry_seq = 1")
    checkpoint(workspace, new_key=False, copy=None)
    assert answered(workspace)[0] != KERNEL


def test_a_forged_place_of_the_newest_checkpoint_stops_no_publication(workspace: Workspace) -> None:
    with closing(sqlite3.connect(workspace.registry_root / "history.db", isolation_level=None)) as history:
        history.execute("UPDATE cursor SET checkpoint_seq = 7")
    checkpoint(workspace, new_key=False, copy=None)
    newest = (workspace.registry_root / "checkpoint").read_text().split("\n")[1]
    assert int(newest) == workspace.ledger.head.seq - 1
