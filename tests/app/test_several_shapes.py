"""A task of several shapes: one kernel, promoted for those at which the rule holds and looked up there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.app.phases.phases import promote_candidate
from forge.app.workspace import Workspace
from forge.domain.digest import canonical
from forge.domain.verdict import Reason
from forge.events import KernelPromoted, ShapeTimed
from forge.lab.finding import Failed
from forge.lookup import Policy, Registry
from forge.pipeline.timings import Measured, MeasuredShape
from tests.app.prepared import concluded, samples, verified_run
from tests.cli.asking import ask, built_once, copied, history
from tests.ledger.forging import Edit, forge

SLOT = {"op": "fused_add_rmsnorm", "gpu": "cpu", "dtype": "fp32"}


def shape(batch: int) -> dict[str, int]:
    return {"batch": batch, "hidden_size": 4096}


def measured(candidate_ns: float, confirmed_ns: float | None = None) -> Measured:
    again = samples(candidate_ns=confirmed_ns or candidate_ns, later=50)
    return Measured(samples=samples(candidate_ns=candidate_ns), floor_ns=20_000.0, claims={}, confirmation=again)


NOISE = Failed(reason=Reason(code="CLOCKS_UNSTABLE", message="the clocks moved"), observed="", threshold="")
FURTHER = (
    MeasuredShape(shape(64), measured(40_000)),
    MeasuredShape(shape(8), measured(150_000)),
    MeasuredShape(shape(1), measured(45_000)),
    MeasuredShape(shape(2), NOISE),
)


@pytest.fixture(scope="session")
def promoted_workspace(tmp_path_factory: pytest.TempPathFactory, empty_workspace: Path) -> Path:
    """A workspace with a kernel of a task of five shapes, proven at three; to be copied, never changed."""

    def build(folder: Path) -> None:
        copied(empty_workspace, folder)
        task = ("task", "create", "--op", SLOT["op"], "--language", "cpp", "--gpu", "cpu", "--dtype", "fp32")
        sizes = [f"batch={batch},hidden_size=4096" for batch in (16, 64, 8, 1, 2)]
        named = [word for one in sizes for word in ("--shape", one)]
        assert ask(*task, *named, "--home", folder).status == 0
        run_id = verified_run(folder)
        with Workspace.open(folder) as workspace:
            concluded(workspace, run_id, samples(), further=FURTHER)
            event = promote_candidate(workspace, workspace.find_run(run_id))
            assert isinstance(event, KernelPromoted), event
            workspace.catch_up()

    return built_once(tmp_path_factory, "several_shapes", build)


@pytest.fixture
def home(promoted_workspace: Path, tmp_path: Path) -> Path:
    return copied(promoted_workspace, tmp_path / "home")


def events(home: Path, kind: str) -> list[dict]:
    return [one["payload"] for one in history(home) if one["type"] == kind]


def test_it_is_promoted_for_the_shapes_at_which_the_rule_holds_and_for_no_other(promoted_workspace: Path) -> None:
    (kernel,) = events(promoted_workspace, "KernelPromoted")
    assert kernel["coverage"]["measured"] == [shape(16), shape(64), shape(1)]
    assert kernel["kernel_id"] == "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
    said = next(gate for gate in kernel["gates"] if gate["name"] == "further shapes")
    assert said["observed"].split("; ") == [
        "batch=64,hidden_size=4096 proven",
        "batch=8,hidden_size=4096 TOO_SLOW",
        "batch=1,hidden_size=4096 proven",
        "batch=2,hidden_size=4096 CLOCKS_UNSTABLE",
    ]
    reasons = [one["reason"] and one["reason"]["code"] for one in events(promoted_workspace, "ShapeTimed")]
    assert reasons == [None, "TOO_SLOW", None, "CLOCKS_UNSTABLE"]


def test_the_registry_lists_each_shape_with_its_figures_or_the_reason(promoted_workspace: Path) -> None:
    document = json.loads((promoted_workspace / "kernel_registry" / "verified_kernels.json").read_text())
    (entry,) = document["kernels"]
    listed = {one["shape"]["batch"]: one for one in entry["further_shapes"]}
    assert [batch for batch, one in listed.items() if one["proven"]] == [64, 1]
    assert listed[64]["speedup"]["ratio"] == pytest.approx(2.5)
    assert listed[64]["candidate_median_ns"] == pytest.approx(40_000)
    assert listed[8]["why_not"].startswith("TOO_SLOW: 0.67x over eager")
    assert listed[2]["why_not"] == "CLOCKS_UNSTABLE: the clocks moved"


def test_a_lookup_answers_at_proven_shapes_and_between_them_alone(promoted_workspace: Path) -> None:
    registry = Registry.open(promoted_workspace / "kernel_registry")
    found = {batch: registry.lookup(**SLOT, shape=shape(batch)) for batch in (1, 2, 4, 8, 16, 17, 64, 65)}
    assert {batch: one.match for batch, one in found.items()} == {
        1: "exact",
        2: "none",
        4: "none",
        8: "none",
        16: "exact",
        17: "between",
        64: "exact",
        65: "none",
    }
    assert [one.shape["batch"] for one in found[17].neighbours] == [16, 64]
    assert found[64].evidence.speedup == pytest.approx(2.5)
    strict = Policy(shape="covered")
    assert registry.lookup(**SLOT, shape=shape(17), policy=strict).match == "none"


def test_a_lookup_on_the_command_line_says_both_neighbours(home: Path) -> None:
    command = (
        "lookup",
        "--op",
        SLOT["op"],
        "--gpu",
        "cpu",
        "--dtype",
        "fp32",
        "--shape",
        "batch=17,hidden_size=4096",
    )
    answer = ask(*command, "--home", home, "--json").document
    assert answer["match"] == "between"
    assert [one["shape"]["batch"] for one in answer["neighbours"]] == [16, 64]
    told = ask(*command, "--home", home)
    assert "lies between two that are proven: batch=16,hidden_size=4096 at" in told.err
    exact = ask(*command[:-1], "batch=64,hidden_size=4096", "--home", home, "--json").document
    assert "neighbours" not in exact


def audited(home: Path) -> list[dict]:
    """The problems that the audit finds if it derives every number again."""
    report = ask("ledger", "verify", "--full", "--home", home, "--json").document
    assert report["ok"] == (not report["problems"])
    return report["problems"]


def test_the_audit_derives_every_shape_again(home: Path) -> None:
    assert audited(home) == []


def other(kind: str, change: Callable[[dict], object], *, place: int = 0) -> Edit:
    """Change the payload of the event at a place among those of its type."""
    seen: list[int] = []

    def edit(seq: int, type_name: str, payload: str) -> str:
        if type_name != kind or (seen.append(seq), len(seen))[1] != place + 1:
            return payload
        document = json.loads(payload)
        change(document)
        return canonical(document).decode()

    return edit


def coverage(*batches: int) -> Callable[[dict], object]:
    return lambda one: one["coverage"].update(measured=[shape(batch) for batch in batches])


FORGED = {
    "a slower shape isn't named": other("BenchmarkRecorded", lambda one: one["further_seqs"].pop(1)),
    "shapes named in another order": other("BenchmarkRecorded", lambda one: one["further_seqs"].reverse()),
    "a shape named twice": other("BenchmarkRecorded", lambda one: one["further_seqs"].append(one["further_seqs"][0])),
    "a shape of an earlier attempt": other("ShapeTimed", lambda one: one.update(attempt=2)),
    "a shape of another run": other("ShapeTimed", lambda one: one.update(run_id="20200101T000000_x_000000")),
    "a shape of a guest without walls": other("ShapeTimed", lambda one: one["isolation"].update(level="none")),
    "a slower shape without its reason": other("ShapeTimed", lambda one: one.update(reason=None), place=1),
    "figures of a shape left out": other(
        "ShapeTimed", lambda one: one.update(timing=None, reason={"code": "NOISE_TOO_HIGH", "message": "noise"})
    ),
    "a faster shape": other(
        "ShapeTimed", lambda one: one["timing"]["confirmation"]["candidate"].update(median_ns=10_000.0)
    ),
    "one process pair at a shape": other("ShapeTimed", lambda one: one["timing"].update(process_pairs=1)),
    "a promotion for a slower shape": other("KernelPromoted", coverage(16, 64, 8, 1)),
    "a promotion that leaves a proven shape out": other("KernelPromoted", coverage(16, 64)),
    "a gate that failed": other("KernelPromoted", lambda one: one["gates"][0].update(verdict="failed")),
    "an author with feedback, and no shapes of its own": other(
        "KernelPromoted", lambda one: one.update(author="agent:search")
    ),
    "held-out shapes drawn by no seed": other(
        "KernelPromoted",
        lambda one: next(gate for gate in one["gates"] if gate["name"] == "held-out shapes").update(
            observed="drawn for this candidate alone"
        ),
    ),
    "a shape that no gate verified": other("CandidateVerified", lambda one: one["shapes_verified"].pop(1)),
}


def stands_forged(home: Path, edit: Edit) -> bool:
    """Whether the audit finds nothing in a forged ledger without anything beside it that would contradict it."""
    forge(home / "kernel_registry.db", edit)
    for beside in ("kernel_registry", "keys"):
        shutil.rmtree(home / beside)
    return audited(home) == []


def test_the_audit_finds_nothing_in_a_history_that_was_only_signed_anew(home: Path) -> None:
    assert stands_forged(home, lambda *row: row[2])


@pytest.mark.parametrize("forged", FORGED)
def test_the_audit_finds_a_forged_history(forged: str, home: Path) -> None:
    assert not stands_forged(home, FORGED[forged])


def test_the_registry_is_rebuilt_to_the_same_bytes(home: Path) -> None:
    registry = home / "kernel_registry"
    before = {path.name: path.read_bytes() for path in registry.glob("*.json")}
    assert ask("ledger", "rebuild", "--home", home).status == 0
    assert {path.name: path.read_bytes() for path in registry.glob("*.json")} == before


def test_bench_answers_with_every_shape(home: Path) -> None:
    answer = ask("bench", "last", "--home", home, "--json").document
    assert [one["shape"]["batch"] for one in answer["further_shapes"]] == [64, 8, 1, 2]
    assert [one["verdict"] for one in answer["further_shapes"]] == [
        "accepted",
        "rejected",
        "accepted",
        "inconclusive",
    ]
    assert "TOO_SLOW" not in ask("bench", "last", "--home", home).err


def test_a_shape_that_was_timed_is_one_of_the_task(home: Path) -> None:
    assert {one["shape"]["batch"] for one in events(home, "ShapeTimed")} == {64, 8, 1, 2}
    assert ShapeTimed.TYPE in {one["type"] for one in history(home)}


def test_kernel_show_names_each_shape_with_its_speedup_or_the_reason(promoted_workspace: Path, home: Path) -> None:
    (kernel,) = events(promoted_workspace, "KernelPromoted")
    shown = ask("kernel", "show", kernel["kernel_id"], "--home", home).out
    assert "At further shapes" in shown
    assert "batch=64,hidden_size=4096   40.00   2.500" in shown
    assert "TOO_SLOW: 0.67x over eager" in shown


def test_a_bundle_carries_every_shape_with_its_samples(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    assert ask("init", elsewhere).status == 0
    assert ask("ledger", "export", tmp_path / "bundle", "--home", home).status == 0
    assert ask("ledger", "import", tmp_path / "bundle", "--home", elsewhere).status == 0
    assert audited(elsewhere) == []


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda entry: entry["further_shapes"][1].update(proven=True), "further_shapes"),
        (lambda entry: entry["further_shapes"].pop(), "further_shapes"),
        (lambda entry: entry["coverage"]["measured"].append(shape(8)), "coverage.measured"),
    ],
    ids=["an unproven shape called proven", "a shape left out", "more coverage"],
)
def test_a_registry_that_says_more_of_the_shapes_than_the_events_is_found(
    edit: Callable[[dict], object], found: str, home: Path
) -> None:
    published = home / "kernel_registry" / "verified_kernels.json"
    document = json.loads(published.read_text())
    edit(document["kernels"][0])
    published.chmod(0o644)
    published.write_text(json.dumps(document))
    assert any(found in problem["what"] for problem in audited(home))
