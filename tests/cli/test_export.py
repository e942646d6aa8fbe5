"""A kernel goes elsewhere as the bytes that its promotion names, whole or not at all."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.domain.digest import canonical
from forge.domain.plan import LaunchPlan
from forge.pipeline.job import pack_artifact
from forge.sandbox.reply import ArtifactFile
from tests.app import prepared
from tests.cli.asking import HONEST, ask, built_once, copied, history, ledger_stands

KERNEL = "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
PLAN = LaunchPlan.model_validate(
    {
        "steps": [{"kind": "memset", "to": {"to": "output", "index": 0}, "value": 0, "item_bytes": 4, "count": 1}],
        "scalars": [1e-6],
        "cubins": {},
    }
)
BUILT = (
    ArtifactFile("libkernel.so", b"\x7fELF host code"),
    ArtifactFile("plan.json", canonical(PLAN)),
    ArtifactFile("plan0.cubin", b"\x7fELF device code"),
)
SOURCES = {"kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json"}


@pytest.fixture(scope="session")
def with_built_files(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace with one promoted kernel of sources, a shared object and a plan; to be copied, never changed."""

    def build(folder: Path) -> None:
        copied(open_workspace, folder)
        with Workspace.open(folder) as workspace:
            run_id = workspace.find_run("last").run_id
            prepared.submitted(workspace, run_id)
            artifact_sha256, blobs = pack_artifact(BUILT)
            for blob in blobs:
                workspace.blobs.put(blob)
            prepared.verified(workspace, run_id, artifact_sha256=artifact_sha256)
            prepared.benchmarked(workspace, run_id)
        assert ask("promote", "last", "--home", folder).status == 0

    return built_once(tmp_path_factory, "with_built_files", build)


@pytest.fixture
def kept(with_built_files: Path, tmp_path: Path) -> Path:
    return copied(with_built_files, tmp_path / "kept")


def export(home: Path, target: Path, *more: object, kernel_id: str = KERNEL):
    return ask("kernel", "export", kernel_id, target, "--home", home, *more)


def left_beside(target: Path) -> list[str]:
    return [name for name in os.listdir(target.parent) if name.startswith(".part-")]


def test_a_folder_holds_what_the_promotion_names_and_no_more(kept: Path, tmp_path: Path) -> None:
    target = tmp_path / "exported"
    answer = export(kept, target, "--json")
    assert (answer.status, answer.last) == (0, f"next: forge ledger prove {KERNEL}")
    assert (answer.document["kernel_id"], answer.document["status"]) == (KERNEL, "active")
    assert answer.document["folder"] == str(target)
    found = {path.name: path.read_bytes() for path in target.iterdir()}
    assert set(found) == SOURCES | {file.name for file in BUILT} | {"registry_entry.json", "README.txt"}
    assert {name: found[name] for name in SOURCES} == {name: (HONEST / name).read_bytes() for name in SOURCES}
    assert {file.name: found[file.name] for file in BUILT} == {file.name: file.content for file in BUILT}
    shown = ask("kernel", "show", KERNEL, "--home", kept, "--json").document
    assert json.loads(found["registry_entry.json"]) == shown
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in found.items() if name != "README.txt"}
    assert answer.document["files"] == digests
    assert left_beside(target) == []
    assert (target.stat().st_mode & 0o777, (target / "kernel.py").stat().st_mode & 0o777) == (0o755, 0o644)


def test_its_readme_names_the_digests_and_the_event(kept: Path, tmp_path: Path) -> None:
    target = tmp_path / "exported"
    assert export(kept, target).status == 0
    readme = (target / "README.txt").read_text()
    (promoted,) = [one for one in history(kept) if one["type"] == "KernelPromoted"]
    for named in (KERNEL, promoted["event_hash"], promoted["payload"]["candidate"]):
        assert named in readme
    assert promoted["payload"]["artifact_sha256"] in readme
    assert f"event {promoted['seq']} of ledger" in readme
    checked = subprocess.run(
        ["sha256sum", "--check", "README.txt"], cwd=target, capture_output=True, text=True, check=True
    )
    assert checked.stdout.count(": OK") == len(SOURCES) + len(BUILT) + 1
    (target / "kernel.py").write_text("")
    assert subprocess.run(["sha256sum", "--check", "README.txt"], cwd=target, capture_output=True).returncode == 1


def test_an_empty_folder_is_filled_and_any_other_is_left_alone(kept: Path, tmp_path: Path) -> None:
    empty, full, file, link = (tmp_path / name for name in ("empty", "full", "file", "link"))
    empty.mkdir()
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    file.write_text("mine")
    link.symlink_to(empty)
    for target in (full, file, link):
        answer = export(kept, target)
        assert (answer.status, "isn't an empty folder" in answer.error) == (2, True)
    assert [path.name for path in full.iterdir()] == ["mine.txt"]
    assert export(kept, file / "where").status == 2
    assert export(kept, empty).status == 0
    assert export(kept, tmp_path / "made" / "for" / "it").status == 0
    assert (empty / "kernel.py").exists()
    assert left_beside(empty) == []


def test_nothing_is_read_but_the_store_and_the_ledger(kept: Path, tmp_path: Path) -> None:
    copies = [path for path in kept.rglob("kernel.py") if "cas" not in path.parts]
    assert copies
    for path in copies:
        path.parent.chmod(0o755)
        path.chmod(0o644)
        path.write_text("raise SystemExit('edited')")
    assert export(kept, tmp_path / "exported").status == 0
    assert (tmp_path / "exported" / "kernel.py").read_bytes() == (HONEST / "kernel.py").read_bytes()


@pytest.mark.parametrize("damage", [None, b"edited"])
def test_a_damaged_store_is_told_and_nothing_is_left(kept: Path, tmp_path: Path, damage: bytes | None) -> None:
    digest = hashlib.sha256(BUILT[2].content).hexdigest()
    blob = kept / "forge_runs" / "cas" / digest[:2] / digest
    blob.unlink()
    if damage is not None:
        blob.write_bytes(damage)
    answer = export(kept, tmp_path / "exported")
    assert (answer.status, digest in answer.err) == (1, True)
    assert not (tmp_path / "exported").exists()
    assert left_beside(tmp_path / "exported") == []


def test_a_withdrawn_kernel_is_exported_only_if_asked_for(kept: Path, tmp_path: Path) -> None:
    assert ask("kernel", "revoke", KERNEL, "--reason", "wrong at odd widths", "--home", kept).status == 0
    answer = export(kept, tmp_path / "refused")
    assert (answer.status, answer.last) == (2, f"try: forge kernel history {KERNEL}")
    assert "is revoked (withdrawn: wrong at odd widths)" in answer.error
    assert not (tmp_path / "refused").exists()
    assert export(kept, tmp_path / "asked", "--revoked-too", "--json").document["status"] == "revoked"
    assert "revoked (withdrawn: wrong at odd widths)" in (tmp_path / "asked" / "README.txt").read_text()


def test_a_kernel_whose_evidence_was_withdrawn_is_refused_like_a_revoked_one(kept: Path, tmp_path: Path) -> None:
    seq = ask("kernel", "show", KERNEL, "--home", kept, "--json").document["benchmark_seq"]
    ask("benchmark", "invalidate", seq, "--reason", "the device was shared", "--home", kept)
    assert export(kept, tmp_path / "refused").status == 2
    assert export(kept, tmp_path / "asked", "--revoked-too").status == 0


def test_an_unknown_kernel_is_none(kept: Path, home: Path, tmp_path: Path) -> None:
    answer = export(kept, tmp_path / "exported", kernel_id=KERNEL.replace("_v1", "_v9"))
    assert (answer.status, KERNEL in answer.error) == (2, True)
    assert export(home, tmp_path / "exported").status == 2
    assert not (tmp_path / "exported").exists()


def test_an_export_records_nothing(kept: Path, tmp_path: Path) -> None:
    events = history(kept)
    export(kept, tmp_path / "exported")
    assert history(kept) == events
    assert ledger_stands(kept)


def test_a_kernels_figures_are_those_of_its_confirmation(kept: Path) -> None:
    shown = ask("kernel", "show", KERNEL, "--home", kept, "--json").document
    assert (shown["candidate_median_ns"], shown["baseline_median_ns"]) == (51_000.0, 100_000.0)
    assert shown["speedup"]["ratio"] == pytest.approx(100 / 51)
    assert shown["benchmark"]["workloads"][0]["candidate"]["median_ns"] == 50_000.0
