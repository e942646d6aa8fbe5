"""A call becomes a launch plan exactly if it is launches on its own memory; and what is launched is judged."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.plan import Argument, Copy, KernelLaunch, LaunchPlan, Memset, NoPlan, NoPlanKind, Place
from forge.domain.verdict import Rejected
from forge.lab.calls import artifact
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, NotAsked, Passed
from forge.lab.job import Job
from forge.lab.launch_plan.capture import capture
from forge.lab.launch_plan.examine import examine_plan
from forge.lab.launch_plan.launcher import kept_plan, launched
from forge.lab.verification import examine
from forge.lookup.tuned import CONFIGURATION_FILE
from forge.sandbox.build import Built
from forge.sandbox.plans import Captured
from tests.candidates import EXAMPLES, job_for, left_over_children
from tests.evil.described import described
from tests.gpu.place import gpu

PLANS = Path(__file__).parent / "plans"
HOSTILE = sorted(PLANS.glob("*.py"))
HONEST = (EXAMPLES / "honest_triton" / "kernel.py").read_text()
CUDA = Path(__file__).parent / "cuda" / "honest.py"
CLUSTER = PLANS / "honest" / "cluster.py"
COOPERATIVE = PLANS / "honest" / "cooperative.py"
TENSOR_MAP = PLANS / "honest" / "tensor_map.py"
TENSOR_MAP_HEX = 256
"""Digits of the 128 bytes that a tensor map takes."""
KERNEL, ENTRY = HONEST.split("\n\n\ndef ")
LAUNCH = "_fused_add_rmsnorm[(rows,)]("
STEPS = """

@triton.jit
def _sum_of_squares(x, residual, new_residual, sums, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row * width + columns
    inside = columns < width
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    tl.store(new_residual + at, h, mask=inside)
    tl.atomic_add(sums + row, tl.sum(h * h, axis=0))


@triton.jit
def _scaled(new_residual, sums, weight, y, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    h = tl.load(new_residual + row * width + columns, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.load(sums + row) / width + eps)
    tl.store(y + row * width + columns, h * scale * tl.load(weight + columns, mask=inside, other=0.0), mask=inside)


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows and width:
        sums = SUMS
        block = triton.next_power_of_2(width)
        _sum_of_squares[(rows, PIECES)](x, residual, new_residual, sums, width, BLOCK=block // PIECES)
        _scaled[(rows,)](new_residual, sums, weight, y, width, eps, BLOCK=block)
    return y, new_residual
"""
"""In two kernels: with PIECES of a row at once and SUMS for their memory. Two pieces add up the same in any order."""
ADDED = KERNEL.replace(
    "tl.load(x + at, mask=inside, other=0.0)", "tl.load(new_residual + at, mask=inside, other=0.0)"
)


def of_sums(sums: str, pieces: int) -> str:
    return KERNEL + STEPS.replace("SUMS", sums).replace("PIECES", str(pieces))


def with_line(line: str) -> str:
    """The honest kernel with a line of host code before its launch."""
    assert ENTRY.count(f"        {LAUNCH}") == 1
    return f"{KERNEL}\n\n\ndef {ENTRY}".replace(f"        {LAUNCH}", f"        {line}\n        {LAUNCH}")


CLONED = f"{ADDED}\n\n\ndef {ENTRY}".replace(
    "y, new_residual = torch.empty_like(x), torch.empty_like(x)", "y, new_residual = torch.empty_like(x), x.clone()"
)
AUTOTUNED = HONEST.replace(
    "@triton.jit\n",
    "@triton.autotune([triton.Config({}, num_warps=n) for n in (1, 2, 4)], key=['width'])\n@triton.jit\n",
).replace("BLOCK=block, num_warps=min(16, max(1, block // 256))", "BLOCK=block")


def on_the_gpu(kernel: str, *, language: str = "triton") -> Job:
    job = job_for(kernel, language=language, limit_s=120.0, memory_bytes=2**34)
    return replace(job, interpreted=False, device="cuda", gpu=gpu())


def staged_for(job: Job) -> dict[str, bytes]:
    """The candidate's files, and what is built from them where its language asks for it."""
    if not job.language.builds:
        return artifact.staged_files(job, ())
    built = artifact.build_artifact(job)
    assert isinstance(built, Built), built
    return artifact.staged_files(job, built.files)


def listed(job: Job) -> Captured | NoPlan | Failed:
    """What one call comes to, once one has been right."""
    limits = job.limits(120.0)
    with staged(job, staged_for(job), {}) as stage, loaded(job, stage, limits, label="test") as loaded_kernel:
        assert isinstance(loaded_kernel, LoadedKernel), loaded_kernel
        checked = loaded_kernel.check([loaded_kernel.case(job.shape)])
        assert not isinstance(checked, Failed), checked
        return capture(job, loaded_kernel)


def plan_of(kernel: str, *, language: str = "triton") -> LaunchPlan:
    """The plan of a candidate whose plan is right and keeps to its calls' bits."""
    job = on_the_gpu(kernel, language=language)
    finding, files = examine_plan(job, staged_for(job))
    assert isinstance(finding, Passed), finding
    captured = kept_plan(files)
    assert captured is not None, finding.observed
    configurations = {CONFIGURATION_FILE} if "triton.autotune" in kernel else set()
    assert {file.name for file in files} == {"plan.json", *captured.plan.cubins, *configurations}
    return captured.plan


def kinds(plan: LaunchPlan) -> list[str]:
    return [step.kind for step in plan.steps]


@pytest.mark.parametrize(("kernel", "language"), [(HONEST, "triton"), (CUDA.read_text(), "cuda")])
def test_an_honest_call_is_one_launch_on_its_operands(kernel: str, language: str) -> None:
    plan = plan_of(kernel, language=language)
    (launch,) = plan.kernels
    assert (kinds(plan), plan.workspaces, plan.scalars) == (["kernel"], (), (1e-6,))
    assert launch.grid == (4, 1, 1)
    places = [pointer.place for argument in launch.arguments for pointer in argument.pointers]
    assert places == [
        *(Place(to="input", index=0), Place(to="input", index=1), Place(to="input", index=2)),
        *(Place(to="output", index=0), Place(to="output", index=1)),
    ]


def test_kernels_come_in_order_with_their_workspace() -> None:
    plan = plan_of(of_sums("torch.empty(rows, device=x.device)", 1).replace("tl.atomic_add", "tl.store"))
    assert kinds(plan) == ["kernel", "kernel"]
    first, second = plan.kernels
    assert [first.name, second.name] == ["_sum_of_squares", "_scaled"]
    assert len(plan.workspaces) == 1
    assert plan.workspaces[0] >= 16
    for launch in (first, second):
        places = [pointer.place.to for argument in launch.arguments for pointer in argument.pointers]
        assert "workspace" in places


def test_scratch_that_is_zeroed_is_a_fill_before_its_kernels() -> None:
    plan = plan_of(of_sums("torch.zeros(rows, device=x.device)", 2))
    assert kinds(plan) == ["memset", "kernel", "kernel"]
    fill = plan.steps[0]
    assert isinstance(fill, Memset)
    assert (fill.to.to, fill.value, fill.size_bytes) == ("workspace", 0, 16)


def test_a_clone_is_a_copy() -> None:
    plan = plan_of(CLONED)
    copied, launched = plan.steps
    assert copied == Copy(to=Place(to="output", index=1), source=Place(to="input", index=0), size_bytes=4096)
    assert isinstance(launched, KernelLaunch)


def test_a_tuned_kernel_is_the_one_that_won() -> None:
    (launch,) = plan_of(AUTOTUNED).kernels
    assert launch.block[0] in (32, 64, 128)


def test_a_cluster_is_launched_as_one() -> None:
    (launch,) = plan_of(CLUSTER.read_text(), language="cuda").kernels
    assert (launch.cluster, launch.grid) == ((2, 1, 1), (8, 1, 1))


def test_a_cooperative_launch_has_all_its_blocks_at_once() -> None:
    (launch,) = plan_of(COOPERATIVE.read_text(), language="cuda").kernels
    assert (launch.cooperative, launch.grid) == (True, (4, 1, 1))


def test_a_tensor_map_holds_the_address_that_it_is_given() -> None:
    (launch,) = plan_of(TENSOR_MAP.read_text()).kernels
    maps = [argument for argument in launch.arguments if len(argument.content) == TENSOR_MAP_HEX]
    assert [[(one.at, one.place) for one in argument.pointers] for argument in maps] == [
        [(0, Place(to="input", index=0))],
        [(0, Place(to="input", index=1))],
    ]


@pytest.mark.parametrize(
    ("line", "kind", "detail"),
    [
        ("x.sum()", "foreign_kernel", "reduce_kernel"),
        ("torch.nn.functional.rms_norm(x, (width,))", "foreign_kernel", ""),
        ("torch.softmax(x, -1)", "foreign_kernel", "softmax"),
        ("globals().setdefault('_kept', x.clone()).copy_(x)", "foreign_address", "memory that isn't the call's own"),
        ("float(x[0, 0].item())", "capture_failed", ""),
        ("x.cpu()", "capture_failed", ""),
    ],
)
def test_a_call_that_is_more_than_its_launches_has_no_plan(line: str, kind: NoPlanKind, detail: str) -> None:
    said = listed(on_the_gpu(with_line(line)))
    assert isinstance(said, NoPlan), said
    assert said.kind == kind, said
    assert detail in said.detail.lower()


def test_a_workspace_that_is_kept_between_calls_is_not_the_calls_own() -> None:
    kept = of_sums("globals().setdefault('_sums', torch.empty(2**21, device=x.device))", 1)
    said = listed(on_the_gpu(kept.replace("tl.atomic_add", "tl.store")))
    assert isinstance(said, NoPlan), said
    assert said.kind == "foreign_address", said


@pytest.mark.parametrize("damage", ["shorter", "fewer", "more"])
def test_arguments_that_are_not_the_kernels_own_are_refused(damage: str) -> None:
    """The driver reads as many bytes as the kernel takes, whatever was captured: past the end of what is there."""
    job = on_the_gpu(HONEST)
    captured = listed(job)
    assert isinstance(captured, Captured), captured
    (launch,) = captured.plan.kernels
    last = next(one for one in reversed(launch.arguments) if not one.pointers and len(one.content) == 8)
    changed = {
        "shorter": tuple(Argument(content="00") if one is last else one for one in launch.arguments),
        "fewer": launch.arguments[:5],
        "more": (*launch.arguments, Argument(content="00" * 8)),
    }[damage]
    step = launch.model_copy(update={"arguments": changed})
    forged = Captured(captured.plan.model_copy(update={"steps": (step,)}), captured.cubins)
    with launched(job, forged, job.limits(60.0)) as launcher:
        assert isinstance(launcher, Failed)


def test_a_candidate_without_a_plan_is_accepted_all_the_same_and_says_why() -> None:
    finding, files = examine_plan(job := on_the_gpu(with_line("x.sum()")), staged_for(job))
    assert isinstance(finding, NotAsked), finding
    assert finding.observed.startswith("no launch plan (foreign_kernel): ")
    assert files == ()


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.stem)
def test_what_only_a_capture_shows_is_refused_as_it_says(path: Path) -> None:
    said = described(path)
    children = left_over_children()
    examined = examine(on_the_gpu(path.read_text(), language=said.language), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected), examined.gates
    assert said.gate in (examined.gates[-1].name, "any"), examined.gates[-1]
    assert examined.verdict.reason.code in said.codes, examined.verdict
    assert left_over_children() <= children
