"""One real run from task to lookup, and the way back from every published number to the samples it came from."""

import hashlib
import json
import math
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forge.app.runs.states import GATE
from forge.app.workspace import Workspace
from forge.events import BenchmarkRecorded, CandidateVerified
from forge.lookup import Registry
from tests.app.prepared import benchmarked, samples
from tests.cli.asking import HONEST, SHAPE, Answer, ask, built_once, copied, history, ledger_stands
from tests.shortened import shorten_pairs, shorten_series

Document = dict[str, Any]
SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)
KERNEL = "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571}
"""Student's t by degrees of freedom."""
FILES = ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json")


def _promoted(home: Path, source: Path) -> Answer:
    """Take the honest kernel through every phase, with real guests and a real clock.

    Where the machine has no quiet moment the clock's answer is no, or none: then made-up samples are held against
    the rule by the same code, so that what follows from a benchmark can be followed on any machine.
    """
    answer = ask("pipeline", "last", source, "--home", home, "--json")
    assert answer.document["phases"]["verify"]["verdict"] == "accepted", answer
    if answer.document["verdict"] == "accepted":
        return answer
    assert answer.document["reason"]["code"] in {"NOISE_TOO_HIGH", "TOO_SLOW"}, answer
    first = ask("run", "show", "last", "--home", home, "--json").document
    ask("run", "open", first["task_id"], "--home", home)  # measured samples of the first run stay its own
    ask("submit", "last", source, "--home", home)
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        judged = workspace.find_run(first["run_id"]).verified
        assert judged is not None
        again = judged.event.model_copy(update={"run_id": run_id})
        workspace.append((again,), run_id=run_id, key=f"verify:{run_id}:1", actor=GATE)
        report = workspace.blobs.get(judged.event.report_sha256)
        workspace.directory(run_id).write("verification_report.json", report)
        benchmarked(workspace, run_id, taken=samples(wobble=0.01))
    return ask("promote", run_id, "--home", home, "--json")


@pytest.fixture(scope="session")
def promoted_workspace(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace in which the honest kernel was promoted on real evidence; never changed."""

    def build(folder: Path) -> None:
        copied(open_workspace, folder)
        source = folder.with_name("submitted_folder")
        shutil.copytree(HONEST, source, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patched:
            shorten_series(patched)
            shorten_pairs(patched)
            answer = _promoted(folder, source)
        assert answer.document["verdict"] == "accepted", answer
        for path in source.iterdir():
            path.write_text("edited after it was submitted")

    return built_once(tmp_path_factory, "promoted_workspace", build)


@pytest.fixture
def promoted(promoted_workspace: Path, tmp_path: Path) -> Path:
    """A copy of the test's own."""
    return copied(promoted_workspace, tmp_path / "promoted")


def _entry(home: Path) -> Document:
    (entry,) = json.loads((home / "kernel_registry" / "verified_kernels.json").read_bytes())["kernels"]
    assert entry["kernel_id"] == KERNEL
    return dict(entry)


def _blob(home: Path, digest: str) -> bytes:
    content = (home / "forge_runs" / "cas" / digest[:2] / digest).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest
    return content


def _events(home: Path) -> dict[int, Document]:
    return {one["seq"]: one for one in history(home)}


def _per_call_ns(attempts: list[Document], side: str) -> list[list[float]]:
    """By process pair and round: how much longer than the empty guest's median all calls took, per call."""
    times = []
    for attempt in attempts:
        for rounds in attempt["pairs"]:
            constant = statistics.median(measured["harness"] for measured in rounds)
            times.append([(measured[side] - constant) / attempt["calls"] for measured in rounds])
    return times


def _interval(baseline: list[list[float]], other: list[list[float]]) -> dict[str, float]:
    """The mean of the pairs' median log ratios with Student's 95 % interval, as ratios."""
    logs = [
        statistics.median([math.log(b / o) for b, o in zip(left, right, strict=True)])
        for left, right in zip(baseline, other, strict=True)
    ]
    mean = statistics.fmean(logs)
    half = T_975[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half)}


def test_a_sealed_run_can_be_profiled_again_and_stays_as_it_was(promoted: Path) -> None:
    directory = promoted / "forge_runs" / _entry(promoted)["run_id"]
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    for times in (1, 2):
        told = ask("profile", directory.name, "--home", promoted, "--json").document
        assert told["tool"] == "torch"
        assert {"aten::empty_like", "aten::empty"} & {one["name"] for one in told["report"]["operators"]}
        recorded = [one["payload"] for one in history(promoted) if one["type"] == "ProfileCaptured"]
        assert len(recorded) == times
        _blob(promoted, recorded[-1]["raw_sha256"])
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    assert ask("ledger", "verify", "--full", "--home", promoted).status == 0


def test_every_number_of_an_entry_leads_back_to_the_raw_samples(promoted_workspace: Path) -> None:
    home = promoted_workspace
    entry, events = _entry(home), _events(home)
    promotion, benchmark = events[entry["promoted_seq"]], events[entry["benchmark_seq"]]
    verified = events[entry["verified_seq"]]
    assert (promotion["type"], benchmark["type"], verified["type"]) == (
        "KernelPromoted",
        "BenchmarkRecorded",
        "CandidateVerified",
    )
    assert promotion["event_hash"] == entry["promoted_event_hash"]
    assert benchmark["payload"]["verified_seq"] == verified["seq"]
    run_dir = home / "forge_runs" / entry["run_id"]
    raw = (run_dir / "benchmark_samples.json").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == entry["benchmark"]["samples_sha256"]
    assert _blob(home, entry["benchmark"]["samples_sha256"]) == raw
    samples = json.loads(raw)
    (workload,) = benchmark["payload"]["workloads"]
    again = samples["confirmation"]
    candidate, eager = _per_call_ns(again, "candidate"), _per_call_ns(again, "eager")
    assert entry["candidate_median_ns"] == statistics.median([time for rounds in candidate for time in rounds])
    assert entry["baseline_median_ns"] == statistics.median([time for rounds in eager for time in rounds])
    speedup = _interval(eager, candidate)
    assert entry["speedup"] == workload["confirmation"]["speedups"][0]["interval"] == speedup
    assert entry["benchmark"]["speedup"] == speedup["ratio"]
    assert speedup["low"] >= 1.0
    first = samples["attempts"]
    candidate, eager = _per_call_ns(first, "candidate"), _per_call_ns(first, "eager")
    flat = [time for rounds in candidate for time in rounds]
    assert entry["candidate_median_ns"] != statistics.median(flat) == workload["candidate"]["median_ns"]
    assert entry["benchmark"]["candidate_latency_us"] == entry["candidate_median_ns"] / 1000
    assert entry["benchmark"]["benchmark_iters"] == len(flat) == 4 * len(candidate)
    assert workload["speedups"][0]["interval"] == _interval(eager, candidate)
    assert workload["control"] == _interval(eager, _per_call_ns(first, "control"))
    assert workload["floor_fraction"] == workload["floor_ns"] / statistics.median(flat)
    report = json.loads(_blob(home, entry["benchmark"]["report_sha256"]))
    assert report["workloads"] == [workload]
    assert report == json.loads((run_dir / "benchmark_report.json").read_bytes())
    for seq in entry["benchmark"]["baseline_seqs"]:
        assert events[seq]["payload"]["timing"]["median_ns"] == entry["baseline_median_ns"]


def test_what_an_entry_says_about_correctness_leads_back_to_the_report(promoted_workspace: Path) -> None:
    home = promoted_workspace
    entry, events = _entry(home), _events(home)
    verified = events[entry["verified_seq"]]["payload"]
    report = json.loads(_blob(home, entry["verification"]["report_sha256"]))
    stored = (home / "forge_runs" / entry["run_id"] / "verification_report.json").read_bytes()
    assert report == json.loads(stored)
    assert report["gates"] == verified["gates"] == entry["verification"]["gates"]
    assert entry["verification"]["max_rel_error"] == max(one["max_relative_error"] for one in report["workloads"])
    assert entry["verification"]["bound_used"] == max(one["bound_used"] for one in report["workloads"]) <= 1
    task = next(one for one in events.values() if one["type"] == "TaskCreated")["payload"]["task"]
    held_out = json.loads(_blob(home, task["held_out_sha256"]))["shapes"]
    examined = [one["shape"] for one in report["workloads"]]
    assert all(shape in examined for shape in held_out)
    assert not any(shape in entry["coverage"]["verified"] for shape in held_out)
    seeds = json.dumps({"seeds": report["seeds"]}, separators=(",", ":")).encode()
    assert hashlib.sha256(seeds).hexdigest() == entry["verification"]["seeds_sha256"]


def test_the_published_kernel_is_the_submitted_bytes_whatever_became_of_the_folder(promoted_workspace: Path) -> None:
    home = promoted_workspace
    entry = _entry(home)
    assert {path.read_text() for path in home.with_name("submitted_folder").iterdir()} == {
        "edited after it was submitted"
    }
    published = home / "kernel_registry" / "kernels" / KERNEL
    for name in FILES:
        assert (published / name).read_bytes() == (HONEST / name).read_bytes()
        assert (home / "forge_runs" / entry["run_id"] / "candidate" / name).read_bytes() == (
            HONEST / name
        ).read_bytes()
    digests = {one["path"]: one["sha256"] for one in entry["files"]}
    assert digests == {name: hashlib.sha256((HONEST / name).read_bytes()).hexdigest() for name in FILES}
    assert (published / "libkernel.so").read_bytes()[:4] == b"\x7fELF"


def test_the_ledger_stands_and_the_run_is_as_it_was_sealed(promoted_workspace: Path) -> None:
    assert ledger_stands(promoted_workspace)
    checked = ask("run", "check", _entry(promoted_workspace)["run_id"], "--home", promoted_workspace, "--json")
    assert checked.document["ok"] is True


def test_the_lookup_answers_exactly(promoted_workspace: Path) -> None:
    answer = ask("lookup", *SLOT, "--home", promoted_workspace, "--json").document
    entry = _entry(promoted_workspace)
    assert (answer["match"], answer["kernel_id"], answer["rejected"]) == ("exact", KERNEL, [])
    found = Registry.open(promoted_workspace / "kernel_registry").lookup(
        op="fused_add_rmsnorm", gpu="cpu", dtype="fp32", shape={"batch": 16, "hidden_size": 4096}
    )
    assert found.kernel is not None
    assert found.kernel.kernel_id == entry["kernel_id"]
    assert Path(answer["source"]).is_absolute() or (promoted_workspace / "kernel_registry").is_dir()
    for other in ("batch=16,hidden_size=4097", "batch=17,hidden_size=4096"):
        slot = (*SLOT[:-1], other)
        assert ask("lookup", *slot, "--home", promoted_workspace, "--json").document["match"] != "exact"


def test_rebuilding_gives_the_same_bytes_even_from_nothing(promoted: Path) -> None:
    compared = ask("ledger", "rebuild", "--home", promoted, "--json").document["files"]
    assert {one["state"] for one in compared} == {"identical"}
    root = promoted / "kernel_registry"
    before = {path.relative_to(root): path.read_bytes() for path in _published(root)}
    assert {one["file"] for one in compared} <= {path.as_posix() for path in before}
    shutil.rmtree(root)
    rebuilt = ask("ledger", "rebuild", "--home", promoted, "--json").document["files"]
    assert {one["state"] for one in rebuilt} == {"made"}
    after = {path.relative_to(root): path.read_bytes() for path in _published(root)}
    assert [one["sha256"] for one in rebuilt] == [one["sha256"] for one in compared]
    named = {Path(one["file"]) for one in compared}
    tables = Path("history.db")  # caught up event by event, its rows are the same and its pages aren't
    assert {path: before[path] for path in named - {tables}} == {
        path: after[path] for path in after if path != tables
    }


def test_a_published_file_that_was_edited_is_named_and_replaced(promoted: Path) -> None:
    kernel = promoted / "kernel_registry" / "kernels" / KERNEL / "kernel.py"
    kernel.write_text("import os")
    compared = ask("ledger", "rebuild", "--home", promoted, "--json").document["files"]
    assert [one["file"] for one in compared if one["state"] != "identical"] == [f"kernels/{KERNEL}/kernel.py"]
    assert kernel.read_bytes() == (HONEST / "kernel.py").read_bytes()


def _published(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and not path.name.startswith("."))


def test_editing_a_file_of_a_sealed_run_shows(promoted: Path) -> None:
    run_id = _entry(promoted)["run_id"]
    report = promoted / "forge_runs" / run_id / "benchmark_report.json"
    report.chmod(0o644)
    report.write_bytes(report.read_bytes().replace(b"eager", b"eagle", 1))
    checked = ask("run", "check", run_id, "--home", promoted, "--json")
    assert checked.status == 1
    assert checked.document["problems"] == [{"kind": "mismatch", "path": "benchmark_report.json"}]
    audited = ask("ledger", "verify", "--home", promoted, "--json")
    assert audited.status == 1
    assert f"run {run_id}/benchmark_report.json" in audited.out


def test_promoting_twice_answers_alike_and_adds_nothing(promoted: Path) -> None:
    events = history(promoted)
    again = ask("promote", _entry(promoted)["run_id"], "--home", promoted, "--json")
    assert (again.status, again.document["kernel_id"]) == (0, _entry(promoted)["kernel_id"])
    assert "recorded already" in again.err
    assert history(promoted) == events


def test_claims_of_the_candidates_own_bench_were_held_against_the_benchmark(promoted_workspace: Path) -> None:
    entry, events = _entry(promoted_workspace), _events(promoted_workspace)
    assessed = [one["payload"] for one in events.values() if one["type"] == "ClaimAssessed"]
    claims = {
        one["payload"]["claim_id"]: one["payload"]
        for one in events.values()
        if one["type"] == "ClaimRecorded" and one["payload"]["run_id"] == entry["run_id"]
    }
    of_run = [one for one in assessed if one["claim_id"] in claims]
    assert {one["claim_id"] for one in of_run} == set(claims)
    for one in of_run:
        claim = claims[one["claim_id"]]
        if claim["metric"] == "speedup":
            expected = "confirmed" if claim["value"] <= entry["speedup"]["high"] else "overstated"
            assert (one["verdict"], one["measured_value"]) == (expected, entry["speedup"]["ratio"])
            assert one["measured_by_seq"] == entry["benchmark_seq"]
        else:
            assert (one["verdict"], one["measured_value"]) == ("not_comparable", None)


def test_the_same_bytes_in_another_run_are_a_duplicate_and_become_version_two(promoted: Path) -> None:
    entry = _entry(promoted)
    run_id = ask("run", "open", entry["task_id"], "--home", promoted, "--json").document["run_id"]
    assert (
        ask("submit", run_id, HONEST, "--home", promoted, "--author", "eve", "--json").document["candidate"]
        == entry["candidate"]
    )
    duplicated = history(promoted)[-1]
    assert duplicated["type"] == "CandidateDuplicated"
    earlier = _events(promoted)[duplicated["payload"]["earlier_seq"]]
    assert earlier["type"] == "CandidateVerified"
    assert earlier["payload"]["candidate"] == entry["candidate"]
    with Workspace.open(promoted) as workspace:
        stored = {one.seq: one.event for one in workspace.ledger.read()}
        verified, benchmark = stored[entry["verified_seq"]], stored[entry["benchmark_seq"]]
        assert isinstance(verified, CandidateVerified)
        assert isinstance(benchmark, BenchmarkRecorded)
        again = verified.model_copy(update={"run_id": run_id})
        seq = workspace.append((again,), run_id=run_id, key=f"verify:{run_id}:1", actor=GATE).last_seq
        timed = benchmark.model_copy(update={"run_id": run_id, "verified_seq": seq})
        workspace.append((timed,), run_id=run_id, key=f"bench:{run_id}:1", actor=GATE)
    second = ask("promote", run_id, "--home", promoted, "--json").document
    assert second["kernel_id"] == KERNEL.replace("_v1", "_v2")
    assert [one["kernel_id"] for one in ask("kernel", "list", "--home", promoted, "--json").document] == [
        KERNEL,
        KERNEL.replace("_v1", "_v2"),
    ]
    assert ledger_stands(promoted)


def test_a_verdict_on_the_target_itself_is_not_called_simulated(promoted: Path) -> None:
    run_id = _entry(promoted)["run_id"]
    shown = ask("verify", run_id, "--home", promoted)
    assert shown.status == 0, shown.err
    assert "accepted" in shown.out
    assert "SIMULATED" not in shown.out + shown.err + ask("run", "list", "--home", promoted).out
    assert ask("run", "show", run_id, "--home", promoted, "--json").document["simulated"] is False
