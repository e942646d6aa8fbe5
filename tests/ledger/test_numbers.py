"""Numbers are held against their samples: the ledger that ships, edited with every hash and signature right."""

import hashlib
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from forge.domain.digest import canonical
from forge.ledger.audit.differences import differences
from forge.ledger.audit.history import audit
from forge.ledger.audit.report import AuditReport
from forge.ledger.audit.samples import Ratio, SampledTimes, workload
from forge.ledger.audit.student_t import t_975
from forge.pipeline.samples import parse_samples
from tests.ledger.forging import cut, forge
from tests.shipped import copy_shipped_ledger

ROOT = Path(__file__).parents[2]
BENCHMARK, CLAIM, PROMOTION, STANDS = 755, 758, 760, 572
CHECKPOINT = 762
CONFIRMED = "1.6232663937417076"
FORGED = "9.623266393741707"
OFFERED = "1.569128499267364"
"""Ratio of a kernel that is on offer, as the published files have it."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the ledger that ships; its evidence is linked to, never written."""
    return copy_shipped_ledger(tmp_path)


@pytest.fixture
def early(home: Path) -> Path:
    """The ledger as it was at the first checkpoint after the events that are edited, which costs half to audit."""
    cut(home / "kernel_registry.db", last=CHECKPOINT)
    assert verified(home, full=False).ok
    return home


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def verified(home: Path, *, full: bool = True) -> AuditReport:
    return audit(home / "kernel_registry.db", runs=home / "forge_runs", full=full)


def edited(home: Path, seq: int, old: str, new: str) -> tuple[int | None, str, str, str]:
    """Forge one event; the first problem that is found."""

    def edit(place: int, kind: str, payload: str) -> str:
        assert place != seq or old in payload
        return payload.replace(old, new, 1) if place == seq else payload

    forge(home / "kernel_registry.db", edit)
    report = verified(home)
    assert not report.ok, "the audit found nothing"
    first = report.problems[0]
    return first.seq, first.what, first.expected, first.found


@pytest.mark.slow
def test_a_promotion_of_1_62x_turned_into_9_62x_is_found(early: Path) -> None:
    def edit(place: int, kind: str, payload: str) -> str:
        return payload.replace(CONFIRMED, FORGED) if place >= BENCHMARK else payload

    forge(early / "kernel_registry.db", edit)
    assert verified(early, full=False).ok, "the forgery itself is sound: chain, tree, signatures, blobs"
    first = verified(early).problems[0]
    assert (first.seq, first.what) == (BENCHMARK, "workloads[0].confirmation.speedups[1].interval.ratio")
    assert math.isclose(float(first.expected), float(CONFIRMED), rel_tol=1e-9)
    assert first.found == repr(float(FORGED))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seq", "old", "new", "what"),
    [
        (BENCHMARK, '"mad_ns":53.0', '"mad_ns":43.0', "workloads[0].candidate.mad_ns"),
        (BENCHMARK, '"n":120', '"n":121', "workloads[0].candidate.n"),
        (BENCHMARK, '"p90_ns":25920.0', '"p90_ns":25919.0', "workloads[0].candidate.p90_ns"),
        (BENCHMARK, "41894.0", "51894.0", "workloads[0].speedups[1].baseline_median_ns"),
        (BENCHMARK, '"low":0.9990678178170156', '"low":0.9993', "workloads[0].control.low"),
        (BENCHMARK, '"pairs_lost":0', '"pairs_lost":1', "workloads[0].confirmation.speedups[0].pairs_lost"),
        (BENCHMARK, "0.5837088568545588", "0.6837088568545588", "workloads[0].floor_fraction"),
        (BENCHMARK, '"process_pairs":5', '"process_pairs":6', "workloads[0].confirmation.process_pairs"),
        (BENCHMARK, '"dropped":0', '"dropped":1', "workloads[0].replay.dropped"),
        (BENCHMARK, '"baseline_used":"compile"', '"baseline_used":"eager"', "baseline_used"),
        (751, '"median_ns":207388.0', '"median_ns":207389.0', "timing.median_ns"),
        (STANDS, '"code":"TOO_SLOW"', '"code":"NOISE_TOO_HIGH"', "reason.code"),
        (PROMOTION, '"candidate_median_ns":25796.0', '"candidate_median_ns":5796.0', "candidate_median_ns"),
        (PROMOTION, "1.623x, 95 % interval", "9.623x, 95 % interval", "gates.observed.speedup"),
        (PROMOTION, f'"benchmark_seq":{BENCHMARK}', f'"benchmark_seq":{STANDS}', "benchmark_seq"),
        (CLAIM, '"measured_value":13.308155903015997', '"measured_value":99.308155903016', "measured_value"),
    ],
)
def test_each_kind_of_number_is_derived(early: Path, seq: int, old: str, new: str, what: str) -> None:
    found = edited(early, seq, old, new)
    assert found[:2] == (seq, what), found


@pytest.mark.slow
def test_what_is_published_is_held_against_the_events(home: Path) -> None:
    shutil.copytree(ROOT / "kernel_registry", home / "kernel_registry")
    assert verified(home).ok
    for name in ("verified_kernels.json", "leaderboard.json"):
        path = home / "kernel_registry" / name
        path.write_text(path.read_text().replace(OFFERED, FORGED))
    wrong = {problem.what for problem in verified(home).problems}
    kernel = "triton_cross_entropy_h100_bf16_tokens1024_vocabsize32000_v1"
    assert {
        f"published {name}: {kernel}: speedup.ratio" for name in ("verified_kernels.json", "leaderboard.json")
    } <= wrong
    assert verified(home, full=False).ok


@pytest.mark.slow
def test_a_published_source_that_was_altered_is_found(home: Path) -> None:
    shutil.copytree(ROOT / "kernel_registry", home / "kernel_registry")
    source = next((home / "kernel_registry" / "kernels").glob("triton_softmax*/kernel.py"))
    source.chmod(0o600)
    source.write_text(source.read_text() + "# harmless\n")
    assert f"published kernels/{source.parent.name}/kernel.py" in {one.what for one in verified(home).problems}


@pytest.mark.slow
def test_samples_in_a_run_folder_are_those_that_the_event_names(home: Path) -> None:
    """The folder's copy, its manifest and the manifest's digest are replaced together."""
    runs = home / "forge_runs"
    folder = runs / "20261121T201851_cross_entropy_h200_70953f"
    old = _sha256((folder / "benchmark_samples.json").read_bytes())
    samples = (folder / "benchmark_samples.json").read_bytes().replace(b'"device_ns":', b'"device_ns":1')
    listing = (folder / "manifest.json").read_bytes()
    entry = next(one for one in json.loads(listing)["files"] if one["sha256"] == old)
    manifest = listing.replace(old.encode(), _sha256(samples).encode()).replace(
        b'"size_bytes":%d' % entry["size_bytes"], b'"size_bytes":%d' % len(samples)
    )
    stored = runs / "cas" / _sha256(manifest)[:2] / _sha256(manifest)
    stored.parent.mkdir(exist_ok=True)
    for path, content in (
        (folder / entry["path"], samples),
        (folder / "manifest.json", manifest),
        (stored, manifest),
    ):
        path.parent.chmod(0o700)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    forge(home / "kernel_registry.db", lambda _, __, payload: payload.replace(_sha256(listing), _sha256(manifest)))
    (problem,) = verified(home).problems
    assert problem.what == f"run {folder.name}/benchmark_samples.json"
    assert (problem.expected, problem.found) == (repr(old), repr(_sha256(samples)))


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [
        (1, 12.706204736174707),
        (2, 4.302652729749464),
        (4, 2.7764451051977996),
        (30, 2.0422724563012378),
        (63, 1.9983405425207418),
    ],
)
def test_the_quantile_of_students_t(degrees: int, quantile: float) -> None:
    """Against values of scipy.stats.t.ppf(0.975, degrees)."""
    assert math.isclose(t_975(degrees), quantile, rel_tol=1e-9)


def test_an_interval_by_the_table_of_three_decimals_is_accepted_and_no_wider_one() -> None:
    ratio = Ratio((0.10, 0.12, 0.11, 0.13, 0.09))
    exact, mean = ratio.halves[0], ratio.mean

    def found(half: float) -> list[Any]:
        ends = {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half)}
        return list(differences(ratio, ends, "interval"))

    assert not found(exact)
    assert not found(exact * 2.776 / t_975(4))
    assert found(exact * 1.001)


@pytest.mark.parametrize("protocol", ["host_slope.v1", "host_slope.v2"])
def test_samples_of_the_slope_clock_are_read(protocol: str) -> None:
    """Ten calls more take 40 and 20 ns each, whatever the constant."""
    rounds = [{"eager": [100, 500], "control": [100, 500], "candidate": [100, 300], "harness": [100, 110]}] * 3
    pairs = [rounds, [{side: [7, many + 7 - few] for side, (few, many) in one.items()} for one in rounds]]
    document = {"protocol": protocol, "attempts": [{"few_calls": 2, "many_calls": 12, "pairs": pairs}]}
    assert SampledTimes(protocol, document["attempts"]).times("eager") == [[40.0] * 3] * 2  # type: ignore[arg-type]  # JSON
    derived = workload(document, {"floor_ns": 10.0})
    assert derived["candidate"]["method"] == "host_slope"
    assert derived["candidate"]["median_ns"] == 20.0
    assert derived["harness_ns"] == 1.0
    assert derived["floor_fraction"] == 0.5
    assert math.isclose(math.exp(derived["speedups"][0]["interval"].mean), 2.0)
    assert derived["replay"] is None


def test_samples_beside_an_empty_guest_are_read() -> None:
    """Ten calls take 40 and 20 ns each beyond the empty guest's median, whatever that is."""
    rounds = [{"eager": 500, "control": 500, "candidate": 300, "harness": path} for path in (100, 90, 1000)]
    slower = [{side: ns + 50 for side, ns in one.items()} for one in rounds]
    document = {"protocol": "host_slope.v3", "attempts": [{"calls": 10, "pairs": [rounds, slower]}]}
    taken = SampledTimes("host_slope.v3", document["attempts"])  # type: ignore[arg-type]  # JSON
    assert taken.times("eager") == [[40.0] * 3] * 2
    assert taken.times("harness") == [[10.0, 9.0, 100.0], [15.0, 14.0, 105.0]]
    derived = workload(document, {"floor_ns": 10.0})
    assert derived["candidate"]["method"] == "host_slope"
    assert derived["candidate"]["median_ns"] == 20.0
    assert derived["harness_ns"] == 14.5
    assert derived["floor_fraction"] == 0.5
    assert math.isclose(math.exp(derived["speedups"][0]["interval"].mean), 2.0)
    assert derived["replay"] is None
    samples = parse_samples(canonical(document)).samples
    assert all(samples.per_call_ns(side) == taken.times(side) for side in taken.sides)
    without = SampledTimes("host_slope.v3", [{"calls": 10, "pairs": [[{"candidate": 300}]]}])
    assert without.times("candidate") == [[30.0]]


def test_samples_of_an_unknown_protocol_are_a_clear_error() -> None:
    with pytest.raises(ValueError, match=r"'host_slope\.v5', expected one of host_slope\.v1, .*host_slope\.v4"):
        workload({"protocol": "host_slope.v5", "attempts": []}, {})
