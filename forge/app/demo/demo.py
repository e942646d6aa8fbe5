"""Runs the whole loop on the examples that ship with Forge, in a workspace of its own."""

import importlib.util
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import forge
from forge.app.machine.chosen_device import chosen_device
from forge.app.phases.phase_answer import phase_answer
from forge.app.phases.phases import benchmark_candidate, promote_candidate, submit_candidate, verify_candidate
from forge.app.stored.policy_stamp import POLICY_FILE
from forge.app.tasks.create import create_task, open_run
from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.domain.tensors import parse_dtype, parse_shape
from forge.errors import EnvironmentUnfit
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateVerified, Event
from forge.lab.job import Progress
from forge.lookup import Registry
from forge.operations import find_operation
from forge.pipeline.benchmark import undecided
from forge.pipeline.create import TaskRequest
from forge.platforms.cuda import gpu_facts

ATTEMPTS = 2
"""Number of benchmarks before giving up: an inconclusive one is repeated, and all attempts count. Chosen; a third
would add minutes on a machine that is busy for longer."""
COLD_ALONE = """\
# The demonstration asks for one regime, so that it measures half as long as a new workspace does.
# All else is the rule of a new workspace: baselines, process pairs, rounds, the control, and a second measurement.
regimes = ["cold"]
"""
"""Policy of the demonstration's workspace, as `policy.toml`."""


@dataclass(frozen=True)
class Story:
    """What is demonstrated: a slot, an honest kernel for it, and a candidate that cheats."""

    op: str
    language: str
    gpu: str
    dtype: str
    shape: str
    honest: str
    """Folder of the honest example; `cheat` is that of the other."""
    cheat: str
    title: str

    @property
    def slot(self) -> str:
        """Return the slot as a line of a table."""
        return f"{self.op}, {self.gpu}, {self.dtype}, {self.shape.replace(',', ' ')}"


ON_A_CPU = Story(
    op="fused_add_rmsnorm",
    language="cpp",
    gpu="cpu",
    dtype="fp32",
    shape="batch=48,hidden_size=4096",  # at 16 rows the path's noise exceeded the work on a busy machine
    honest="honest_cpp",
    cheat="cached_answer",
    title="residual add and RMSNorm in one pass, C++, fp32, 48 x 4096",
)
GPUS = ("h100", "h200")
"""GPUs on which the example's softmax was faster than every baseline, and those with the same kind of processor."""


@dataclass(frozen=True)
class DemoResult:
    """The result of the demonstration."""

    home: str
    title: str
    slot: str
    honest_run: str
    cheat_run: str
    benchmark: dict[str, object]
    promoted: dict[str, object] | None
    refused: dict[str, object]
    claims: list[dict[str, object]]
    lookup: dict[str, object]


def on_a_gpu(gpu: str) -> Story:
    """Return the story for a GPU."""
    return Story(
        op="softmax",
        language="triton",
        gpu=gpu,
        dtype="bf16",
        shape="batch=4096,hidden_size=4096",
        honest="h200/softmax",
        cheat="cached_answer_gpu",
        title=f"softmax with its rows in registers, Triton, bf16, 4096 x 4096, on {gpu.upper()}",
    )


def story_here() -> Story:
    """Return the story for this machine's GPU if the examples and torch support it, otherwise for the CPU."""
    device = chosen_device()
    facts = gpu_facts(device.uuid) if device is not None else None
    return on_a_gpu(facts.slug) if facts is not None and facts.slug in GPUS and _can_compute() else ON_A_CPU


def _can_compute() -> bool:
    if any(importlib.util.find_spec(name) is None for name in ("torch", "triton", "cuda")):
        return False
    import torch

    return bool(torch.version.cuda)


def examples_folder() -> Path:
    """Return the folder of examples, in a source checkout or in an installed package; raise EnvironmentUnfit."""
    package = Path(forge.__file__).parent
    for folder in (package / "_examples", package.parent / "examples"):
        if (folder / "honest_cpp" / "kernel.py").exists():
            return folder
    raise EnvironmentUnfit("the shipped examples are missing: expected them in the package; install Forge again")


def make_workspace(home: Path, policy: str = COLD_ALONE) -> Workspace:
    """Make a workspace with this `policy.toml`; raise UsageError if there is one already."""
    file = home / POLICY_FILE
    if not any(path.exists() or path.is_symlink() for path in (file, home / LEDGER_FILE)):
        with suppress(OSError):  # a place that can't be written is refused below
            home.mkdir(parents=True, exist_ok=True)
            file.write_text(policy)
    return Workspace.create(home, origin="forge demo")


def demonstrate(workspace: Workspace, story: Story, *, progress: Callable[[str], Progress]) -> DemoResult:
    """Promote an honest kernel, refuse a cheat, and look the slot up."""
    examples = examples_folder()
    request = TaskRequest(op=story.op, language=story.language, gpu=story.gpu, dtype=story.dtype, shape=story.shape)
    opened = create_task(workspace, request)
    timed, promoted = _honest(workspace, opened.run_id, examples / story.honest, progress)
    cheat = open_run(workspace, opened.task_id).run_id
    submit_candidate(workspace, workspace.find_run(cheat), examples / story.cheat, author="forge demo")
    caught = verify_candidate(workspace, workspace.find_run(cheat), progress=progress("a cheat: verify"))
    state = workspace.find_run(opened.run_id)
    return DemoResult(
        home=str(workspace.home),
        title=story.title,
        slot=story.slot,
        honest_run=opened.run_id,
        cheat_run=cheat,
        benchmark=phase_answer(timed, workspace=workspace),
        promoted=phase_answer(promoted, workspace=workspace) if promoted else None,
        refused=phase_answer(caught, workspace=workspace),
        claims=[assessed.event.model_dump(mode="json") for assessed in state.assessments],
        lookup=_look_up(workspace.registry_root, story),
    )


def _honest(
    workspace: Workspace, run_id: str, folder: Path, progress: Callable[[str], Progress]
) -> tuple[Event, Event | None]:
    submit_candidate(workspace, workspace.find_run(run_id), folder, author="forge demo")
    verified = verify_candidate(workspace, workspace.find_run(run_id), progress=progress("an honest kernel: verify"))
    if not isinstance(verified, CandidateVerified):
        return verified, None
    timed: Event = verified
    for attempt in range(ATTEMPTS):
        again = " again (noise)" if attempt else ""
        timed = benchmark_candidate(
            workspace, workspace.find_run(run_id), progress=progress(f"an honest kernel: benchmark{again}")
        )
        if not (isinstance(timed, BenchmarkFailed) and undecided(timed.reason)):
            break
    if not isinstance(timed, BenchmarkRecorded):
        return timed, None
    return timed, promote_candidate(workspace, workspace.find_run(run_id))


def _look_up(registry: Path, story: Story) -> dict[str, object]:
    shape = parse_shape(story.shape, find_operation(story.op).axes)
    found = Registry.open(registry).lookup(op=story.op, gpu=story.gpu, dtype=parse_dtype(story.dtype), shape=shape)
    kernel = found.kernel
    return {
        "match": found.match,
        "kernel_id": kernel.kernel_id if kernel else None,
        "rejected": [list(item) for item in found.rejected],
    }
