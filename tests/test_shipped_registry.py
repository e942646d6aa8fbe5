"""The registry that ships with the project: its ledger is whole, and leads to the published files byte for byte."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateVerified, Event, KernelPromoted, Recorded
from forge.lookup import Registry
from tests.cli.asking import ask

ROOT = Path(__file__).parents[1]
SHIPPED = ("kernel_registry.db", "forge_runs", "kernel_registry")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since looking at a workspace may bring its projections up to date."""
    folder = tmp_path_factory.mktemp("shipped")
    shutil.copy(ROOT / SHIPPED[0], folder)
    for name in SHIPPED[1:]:
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def history(home: Path) -> Iterator[tuple[Recorded[Event], ...]]:
    with Workspace.open(home, read_only=True) as workspace:
        yield tuple(workspace.ledger.read())


@pytest.mark.slow
def test_the_auditor_finds_nothing_wrong(home: Path) -> None:
    answer = ask("ledger", "verify", "--full", "--home", home, "--json")
    assert answer.status == 0, answer.err
    assert answer.document["ok"] is True
    assert answer.document["problems"] == []


def test_the_published_files_are_rebuilt_to_the_same_bytes(home: Path) -> None:
    published = {
        path.relative_to(ROOT): path.read_bytes()
        for path in sorted((ROOT / "kernel_registry").rglob("*"))
        if path.is_file() and path.suffix not in {".db", ".lock", ".db-wal", ".db-shm"}
    }
    shutil.rmtree(home / "kernel_registry")
    assert ask("ledger", "rebuild", "--home", home).status == 0
    again = {path: (home / path).read_bytes() for path in published if (home / path).exists()}
    pointer = Path("kernel_registry") / "current.json"
    kept = {path: content for path, content in published.items() if not path.name.startswith("lookup-")}
    signed = json.loads(kept.pop(pointer))
    assert signed.pop("note")  # by the private key, which doesn't ship
    assert json.loads(again[pointer]) == signed
    assert {path: again.get(path) for path in kept} == kept


def test_the_publication_is_vouched_for_by_the_key_beside_it() -> None:
    folder = ROOT / "kernel_registry"
    assert Registry.open(folder, key=folder / "ledger.vkey").generation


def test_every_promotion_was_judged_and_timed_on_the_gpu_by_its_launch_plan(
    history: tuple[Recorded[Event], ...],
) -> None:
    by_seq = {recorded.seq: recorded.event for recorded in history}
    promoted = [recorded.event for recorded in history if isinstance(recorded.event, KernelPromoted)]
    assert promoted
    for kernel in promoted:
        verified, benchmark = by_seq[kernel.verified_seq], by_seq[kernel.benchmark_seq]
        assert isinstance(verified, CandidateVerified)
        assert isinstance(benchmark, BenchmarkRecorded)
        assert not verified.simulated
        assert verified.isolation.level == "namespaces"
        (timing,) = benchmark.workloads
        assert timing.candidate.method == "launch_plan"
        assert timing.replay is not None
        assert timing.confirmation is not None
        assert kernel.speedup.low >= 1.10
        used = next(one for one in timing.confirmation.speedups if one.baseline == kernel.baseline)
        assert kernel.speedup == used.interval


def test_baselines_that_stand_and_refusals_are_in_it(history: tuple[Recorded[Event], ...]) -> None:
    failed = [recorded.event for recorded in history if isinstance(recorded.event, BenchmarkFailed)]
    reasons = {event.reason.code for event in failed}
    assert "TOO_SLOW" in reasons
    assert all(event.workloads or event.stopped for event in failed if event.reason.code == "TOO_SLOW")


def test_an_engine_finds_each_kernel_on_offer_and_no_other(home: Path, history: tuple[Recorded[Event], ...]) -> None:
    registry = Registry.open(home / "kernel_registry")
    promoted = [one.event for one in history if isinstance(one.event, KernelPromoted)]
    listed = json.loads((home / "kernel_registry" / "verified_kernels.json").read_text())["kernels"]
    status = {one["kernel_id"]: one["status"] for one in listed}
    assert set(status) == {event.kernel_id for event in promoted}
    on_offer: dict[tuple, bool] = {}
    for event in promoted:
        task = event.task
        slot = (task.op, task.target.gpu, task.dtype, *sorted(task.shape.items()))
        on_offer[slot] = on_offer.get(slot, False) or status[event.kernel_id] == "active"
    for (op, gpu, dtype, *shape), offered in on_offer.items():
        found = registry.lookup(op=op, gpu=gpu, dtype=dtype, shape=dict(shape))
        assert (found.match == "exact") is offered, (op, gpu, dtype, shape)


def test_the_published_registry_names_no_private_key() -> None:
    for name in ("keys", "kernel_registry/keys"):
        assert not (ROOT / name).exists()
    assert json.loads((ROOT / "kernel_registry" / "verified_kernels.json").read_text())["kernels"]
