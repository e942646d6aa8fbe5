"""A promoted kernel measured again: what is recorded, published and refused, in a workspace of its own."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from forge.app.machine.chosen_executor import executor_of
from forge.app.phases.replication import record_replication, replication_case, require_occasion
from forge.app.workspace import Workspace
from forge.domain.environment import GpuFacts
from forge.errors import UsageError
from forge.events import BenchmarkRecorded, EnvironmentCaptured, KernelPromoted
from forge.lookup import Policy, Registry
from forge.pipeline import replicate
from forge.pipeline.timings import Measured
from tests.app.prepared import WALL, benchmarked_run, samples
from tests.cli.asking import ask, built_once, copied, history, ledger_stands
from tests.projections.values import digest

KERNEL = "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
SIZES = {"batch": 16, "hidden_size": 4096}
HELD_NS, SLOWER_NS = 51_500, 95_000
"""Times of the candidate in nanoseconds. It was first measured at 51,000, and the baseline at 100,000."""


@pytest.fixture(scope="session")
def promoted(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    def build(folder: Path) -> None:
        copied(open_workspace, folder)
        benchmarked_run(folder)
        assert ask("promote", "last", "--home", folder).status == 0

    return built_once(tmp_path_factory, "replicated_kernel", build)


@pytest.fixture
def kept(promoted: Path, tmp_path: Path) -> Path:
    return copied(promoted, tmp_path / "kept")


def case_of(workspace: Workspace, **machine: object) -> replicate.ReplicatedKernel:
    """The kernel, to be measured by another process on a machine that differs so."""
    (kernel,) = (
        one.event for one in workspace.ledger.read(types=("KernelPromoted",)) if isinstance(one.event, KernelPromoted)
    )
    found = replication_case(workspace, kernel, executor_of(workspace).site(workspace.policy))
    environment = found.evidence.environment.model_copy(update=machine)
    evidence = dataclasses.replace(found.evidence, environment=environment, isolation=WALL)
    return dataclasses.replace(found, evidence=evidence, process_sha256=digest("another process"))


def measured_again(home: Path, *, candidate_ns: float = HELD_NS) -> dict[str, Any]:
    """Record what the rule makes of samples from another host."""
    with Workspace.open(home) as workspace:
        case = case_of(workspace, host_sha256=digest("another host"))
        require_occasion(workspace, case)
        there = case.evidence.environment
        captured = EnvironmentCaptured(
            environment=there, env_sha256=there.env_sha256, perf_key=there.perf_key, abi_key=there.abi_key
        )
        workspace.append((captured,), run_id="elsewhere", key=f"env:{there.env_sha256}")
        measured = Measured(samples=samples(candidate_ns=candidate_ns), floor_ns=20_000.0, claims={})
        version = workspace.ledger.stream_version(f"kernel:{case.promoted.family}")
        return record_replication(workspace, replicate.conclude(case, measured), expected=version)


def answer(home: Path, **policy: Any):
    return Registry.open(home).lookup(
        op="fused_add_rmsnorm", gpu="cpu", dtype="fp32", shape=SIZES, policy=Policy(**policy)
    )


def test_a_lookup_says_provisional_until_a_second_measurement_holds(kept: Path) -> None:
    found = answer(kept)
    assert (found.evidence.state, found.evidence.replicated_seq) == ("provisional", None)
    refused = answer(kept, evidence="replicated")
    assert refused.match == "none"
    assert refused.rejected == [
        (KERNEL, "provisional: no second measurement that counts has held, asked for replicated evidence")
    ]
    said = measured_again(kept)
    assert said["outcome"] == "held"
    found = answer(kept, evidence="replicated")
    assert (found.kernel.kernel_id, found.evidence.state) == (KERNEL, "replicated")
    assert found.evidence.replicated_seq == said["seq"]
    assert ledger_stands(kept)
    assert ask("ledger", "verify", "--full", "--home", kept).status == 0


def test_a_contradiction_is_published_and_both_measurements_are_shown(kept: Path) -> None:
    said = measured_again(kept, candidate_ns=SLOWER_NS)
    assert (said["outcome"], said["reason"]["code"]) == ("contradicted", "NOT_REPLICATED")
    found = answer(kept)
    assert found.match == "none"
    ((_, why),) = found.rejected
    assert why.startswith(f"not_replicated: event {said['seq']} measured it again: 1.05")
    listed = ask("audit", "replication", "--home", kept, "--json").document
    (row,) = listed["rows"]
    assert (row["kernel_id"], row["outcome"], row["another_machine"]) == (KERNEL, "contradicted", True)
    assert (round(row["first"], 2), round(row["second"], 2), round(row["difference"], 2)) == (1.96, 1.05, -0.46)
    assert (listed["decided"], listed["held"], listed["share_held"], listed["on_offer"]) == (1, 0, 0.0, 0)
    full = ask("ledger", "verify", "--full", "--home", kept)
    assert full.status == 0, full.out
    again = ask("bench", KERNEL, "--replicate", "--home", kept)
    assert again.status == 1
    assert "expected an active or deprecated one" in again.err


def test_a_document_that_still_offers_a_contradicted_kernel_is_found(kept: Path) -> None:
    published = kept / "kernel_registry" / "versions.json"
    measured_again(kept, candidate_ns=SLOWER_NS)
    published.write_text(published.read_text().replace('"not_replicated"', '"active"'))
    found = ask("ledger", "verify", "--full", "--home", kept, "--json").document["problems"]
    assert [one["what"] for one in found] == [f"published versions.json: {KERNEL}: status"]


def test_an_audit_without_replications_says_so(kept: Path) -> None:
    shown = ask("audit", "replication", "--home", kept)
    assert "No replications yet" in shown.out
    assert "of 1 kernels on offer, 0 are replicated and 1 provisional" in shown.err
    document = ask("audit", "replication", "--home", kept, "--json").document
    assert (document["rows"], document["share_held"], document["session_spread"]) == ([], None, [])


def test_a_deprecated_kernel_is_not_counted_as_on_offer(kept: Path) -> None:
    assert ask("kernel", "deprecate", KERNEL, "--reason", "another is faster", "--home", kept).status == 0
    assert ask("audit", "replication", "--home", kept, "--json").document["on_offer"] == 0
    stale = ask("audit", "stale", "--days", "36500", "--current", "any", "--home", kept)
    assert "Stale: 0 of 1 kernels that are active or deprecated" in stale.out


def test_an_audit_says_that_the_spread_is_unknown_below_ten_replications(kept: Path) -> None:
    measured_again(kept)
    document = ask("audit", "replication", "--home", kept, "--json").document
    everywhere, _ = document["session_spread"]
    assert (everywhere["replications"], everywhere["difference"]) == (1, None)
    assert "unknown: 1 replications, fewer than 10" in ask("audit", "replication", "--home", kept).err
    assert (document["held"], document["share_held"], document["replicated"]) == (1, 1.0, 1)


def test_a_replication_within_the_hour_on_one_machine_is_refused_before_it_measures(kept: Path) -> None:
    before = history(kept)
    with Workspace.open(kept) as workspace, pytest.raises(UsageError, match="minutes after the first on the same"):
        require_occasion(workspace, case_of(workspace))
    refused = ask("bench", "last", "--replicate", "--home", kept)
    assert refused.status == 2
    assert "can't be replicated now" in refused.error
    assert "measure again after" in refused.error
    assert history(kept) == before


def test_a_replication_on_another_processor_is_refused_before_it_measures(kept: Path) -> None:
    with Workspace.open(kept) as workspace:
        case = case_of(workspace, cpu_model="another", host_sha256=digest("another host"))
        with pytest.raises(UsageError, match="cpu_model is 'another' here") as refused:
            require_occasion(workspace, case)
    assert "can't be replicated on this machine" in refused.value.message
    assert "expected the same processor and software" in refused.value.message


def test_a_replication_on_another_gpu_model_is_refused_before_it_measures(kept: Path) -> None:
    def gpu(slug: str) -> GpuFacts:
        return GpuFacts(
            name=slug.upper(), slug=slug, arch="sm_90", count=1, memory_bytes=2**37, power_limit_w=700.0, ecc=True,
            mig=False, uuid=f"GPU-{slug}",
        )  # fmt: skip

    with Workspace.open(kept) as workspace:
        case = case_of(workspace, gpu=gpu("h100"))
        there = case.evidence.environment.model_copy(update={"gpu": gpu("h200")})
        captured = EnvironmentCaptured(
            environment=there, env_sha256=there.env_sha256, perf_key=there.perf_key, abi_key=there.abi_key
        )
        workspace.append((captured,), run_id="elsewhere", key=f"env:{there.env_sha256}")
        moved = case.first.event.model_copy(update={"env_sha256": there.env_sha256})
        first = dataclasses.replace(case.first, event=moved)
        with pytest.raises(UsageError, match="GPU is 'h100' here, and the first measurement had 'h200'"):
            require_occasion(workspace, dataclasses.replace(case, first=first))


def test_a_run_that_promoted_nothing_is_refused(empty: Path) -> None:
    refused = ask("bench", "no-such-kernel", "--replicate", "--home", empty)
    assert refused.status == 2


def test_a_benchmark_names_its_protocol_and_its_process(kept: Path) -> None:
    with Workspace.open(kept) as workspace:
        (event,) = (one.event for one in workspace.ledger.read(types=("BenchmarkRecorded",)))
    assert isinstance(event, BenchmarkRecorded)
    assert event.workloads[0].protocol == "host_slope.v4"
    assert event.process_sha256 is not None


def test_altered_figures_of_a_replication_are_found(kept: Path) -> None:
    """An audit derives a replication from its samples, the first measurement and the rule again."""
    from forge.ledger.audit.replicated import replication_differences

    measured_again(kept)
    (event,) = (one["payload"] for one in history(kept) if one["type"] == "ReplicationRecorded")
    (first,) = (one["payload"] for one in history(kept) if one["type"] == "BenchmarkRecorded")
    (task,) = (one["payload"]["task"] for one in history(kept) if one["type"] == "TaskCreated")
    with Workspace.open(kept) as workspace:
        import orjson

        policy = orjson.loads(workspace.blobs.get(event["policy_sha256"]))
        stored = orjson.loads(workspace.blobs.get(event["workloads"][0]["samples_sha256"]))

    def found(**changes: object) -> list[str]:
        return [name for name, *_ in replication_differences({**event, **changes}, first, task, policy, stored)]

    assert found() == []
    assert found(outcome="contradicted") == ["outcome"]
    assert "comparisons.first_pairs" in found(comparisons=[{**event["comparisons"][0], "first_pairs": 9}])
    slower = {**event["workloads"][0], "control": {"ratio": 1.0, "low": 0.9, "high": 1.1}}
    assert "workloads[0].control.low" in found(workloads=[slower])
    elsewhere = {**event["workloads"][0], "shape": {**event["workloads"][0]["shape"], "batch": 1}}
    assert found(workloads=[elsewhere]) == ["workloads[0].shape.batch"]
    told = {"outcome": "contradicted", "reason": {"code": "NOT_REPLICATED", "message": ""}, "workloads": []}
    assert found(**told) == ["workloads"]
    assert found(**told, comparisons=[]) == ["workloads"]
    (compared,) = event["comparisons"]
    assert "comparisons" in found(comparisons=[])
    assert "isolation.level" in found(isolation={**event["isolation"], "level": "none"})
    apart = {**compared, "session_spread": 1e-9}
    assert found(comparisons=[apart]) in ([], ["reason.code"])
