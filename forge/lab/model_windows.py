"""Measures a model with its own functions and with adopted kernels: windows in turn, by the host's clock.

Each process pair is a fresh guest that holds both sides and a control. The side that is built first may be faster for
where its memory lies. So the first process pair builds them in a random order, and each further one begins with the
next side of it. In each round the host asks for one window of every side, in random order, and times the answer. A
window takes long enough that the messages don't count.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import forge
from forge.domain.device import Device
from forge.domain.evidence import Isolation
from forge.domain.model_measurement import GREEDY_STEPS, ModelMode, ModelWorkload
from forge.domain.policy import Policy
from forge.errors import EnvironmentUnfit
from forge.lab.calls.trusted import CACHE_FOLDER, COMPILER_ENVIRONMENT, GPU_COMPILER_ENVIRONMENT
from forge.languages import LANGUAGES
from forge.sandbox.arena import Arena
from forge.sandbox.channel import Channel
from forge.sandbox.confinement import Bind
from forge.sandbox.folders import HeldFolder
from forge.sandbox.limits import Limits
from forge.sandbox.model_guest import ModelGuest
from forge.sandbox.stage import MODEL, Program, Stage

SIDES = ("own", "adopted", "control")
"""Names of the sides: the model with its own functions, with adopted ones, and the control."""
OWN, ADOPTED = 0, 1
"""Places of both sides that are compared."""
REPLY_BYTES = 1 << 20
"""Largest reply of a guest, in bytes: a report has some hundred lines."""
LIBRARY = ("__init__.py", "errors.py", "lookup", "proof", "adopt", "guest/plan_launcher.py")
"""What a program needs of Forge to adopt kernels."""
PUBLISHED = ("current.json", "lookup-*.json", "ops", "kernels")
"""Patterns of the published files that adoption reads."""
PLACE = "/model"
"""Folder in the guest with what adoption needs."""
SETUP_S, WINDOW_S = 600.0, 120.0
"""Seconds that a guest may take to build a model, and to answer one window."""
MOST_STEPS = 1 << 20
"""Number of steps of one window, at most. It ends the search for a length if a step takes next to no time."""


@dataclass(frozen=True, kw_only=True)
class ModelQuestion:
    """A model's file and what is asked of it."""

    name: str
    source: bytes
    workload: ModelWorkload
    modes: tuple[ModelMode, ...]
    """Modes that are measured in the same processes, one after the other."""
    seed: int
    gpu: Device | None
    """GPU that it runs on; None for the processor."""
    registry: Path


@dataclass(frozen=True)
class ModelSamples:
    """Times of one step in nanoseconds by side, process pair and round, and what the model's process says."""

    times_ns: Mapping[str, Sequence[Sequence[float]]]
    untrusted_facts: Mapping[str, Any]  # JSON of the guest


@dataclass(frozen=True, kw_only=True)
class WindowPlan:
    """How much is measured."""

    process_pairs: int
    rounds: int
    window_s: float
    """Least time of a window, in seconds."""
    threads: int


def measure_model(
    question: ModelQuestion, plan: WindowPlan, *, policy: Policy, isolation: Isolation, rng: Random
) -> dict[ModelMode, ModelSamples]:
    """Measure a model in each mode.

    Raise UsageError for a model that doesn't do what is asked, EnvironmentUnfit for a machine that can't.
    """
    times: dict[ModelMode, dict[str, list[list[float]]]] = {
        mode: {side: [] for side in SIDES} for mode in question.modes
    }
    facts: dict[str, Any] = {}
    built = rng.sample(range(len(SIDES)), len(SIDES))
    with _stage(question, isolation) as (stage, folder):
        for _ in range(plan.process_pairs):
            with _guest(stage, folder, question, plan, policy, built) as guest:
                for mode in question.modes:
                    steps = _steps(guest, mode, plan.window_s)
                    taken = _windows(guest, mode, steps, plan.rounds, rng)
                    for side in SIDES:
                        times[mode][side].append(taken[side])
                facts = facts or guest.facts()
            built = built[1:] + built[:1]
    return {mode: ModelSamples(found, facts) for mode, found in times.items()}


class _TimedModel:
    """One guest that runs the model, timed by the host's clock."""

    def __init__(self, guest: ModelGuest) -> None:
        self._guest = guest

    def facts(self) -> dict[str, Any]:
        """Return what the model's process says of its answers."""
        return self._guest.ask({"do": "facts"}, SETUP_S)

    def window_s(self, mode: ModelMode, side: int, steps: int) -> float:
        """Return the host's time of a window, in seconds."""
        begun = time.perf_counter()
        self._guest.ask({"do": "window", "mode": mode, "side": side, "steps": steps}, WINDOW_S)
        return time.perf_counter() - begun


def _steps(guest: _TimedModel, mode: ModelMode, window_s: float) -> int:
    """Return the number of steps that fill a window of the faster of both sides."""
    steps = 1
    while steps < MOST_STEPS:
        took = min(guest.window_s(mode, side, steps) for side in (OWN, ADOPTED))
        if took >= window_s:
            return steps
        steps = max(2 * steps, min(int(steps * 1.1 * window_s / max(took, 1e-6)), 32 * steps))
    return steps


def _windows(guest: _TimedModel, mode: ModelMode, steps: int, rounds: int, rng: Random) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        order = list(enumerate(SIDES))
        rng.shuffle(order)
        for place, side in order:
            taken[side].append(guest.window_s(mode, place, steps) * 1e9 / steps)
    return taken


@contextmanager
def _guest(
    stage: Stage, folder: Path, question: ModelQuestion, plan: WindowPlan, policy: Policy, built: Sequence[int]
) -> Iterator[_TimedModel]:
    """Yield a fresh guest that has built the model's sides in an order."""
    arena = Arena(REPLY_BYTES)
    place = PLACE if stage.walled else str(folder)
    limits = Limits(
        wall_s=2 * SETUP_S + 64 * WINDOW_S,
        cpu_s=int(SETUP_S) * 16,
        memory_bytes=policy.memory_limit_bytes,
        waits_for_device=question.gpu is not None,
    )
    try:
        with closing(Channel(stage, MODEL, arena, limits=stage.bounded(limits), threads=plan.threads)) as channel:
            guest = ModelGuest(channel, arena, question.name)
            guest.ask(
                {
                    "path": f"{stage.candidate_directory}/model.py",
                    "library": place,
                    "registry": f"{place}/registry",
                    "workload": question.workload.model_dump(mode="json"),
                    "modes": list(question.modes),
                    "built": list(built),
                    "device": "cpu" if question.gpu is None else "cuda",
                    "seed": question.seed,
                    "greedy_steps": GREEDY_STEPS,
                    "arena_bytes": arena.size_bytes,
                    "threads": plan.threads,
                },
                SETUP_S,
            )
            yield _TimedModel(guest)
    finally:
        arena.close()


@contextmanager
def _stage(question: ModelQuestion, isolation: Isolation) -> Iterator[tuple[Stage, Path]]:
    if "graphs" in question.modes and question.gpu is None:
        raise EnvironmentUnfit("mode 'graphs' captures CUDA graphs: expected a GPU; use --mode eager or compile")
    with tempfile.TemporaryDirectory(prefix="forge-model-") as temporary, _compiled_folder() as compiled:
        folder = Path(temporary)
        _fill(folder, question.registry)
        program = Program(
            language=LANGUAGES["torch"],
            files={"model.py": question.source},
            environment=COMPILER_ENVIRONMENT if question.gpu is None else GPU_COMPILER_ENVIRONMENT,
            device="cpu" if question.gpu is None else "cuda",
            gpu=question.gpu,
            binds=(Bind(folder, PLACE), Bind(compiled, CACHE_FOLDER, writable=True)),
        )
        stage = Stage(program, isolation)
        try:
            yield stage, folder
        finally:
            stage.remove()


@contextmanager
def _compiled_folder() -> Iterator[Path]:
    """Yield a folder for what torch.compile leaves: the process pairs of one measurement compile the same code."""
    outer = HeldFolder("forge-compiled-model-")
    try:
        inside = outer.path / "inductor"
        inside.mkdir()
        inside.chmod(0o777)
        yield inside
    finally:
        outer.remove()


def _fill(folder: Path, registry: Path) -> None:
    """Copy what adoption needs: that part of Forge, and what is published."""
    home = Path(forge.__file__).parent
    for name in LIBRARY:
        source, target = home / name, folder / "forge" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    published = folder / "registry"
    published.mkdir()
    for pattern in PUBLISHED:
        for source in registry.glob(pattern):
            if source.is_dir():
                shutil.copytree(source, published / source.name)
            else:
                shutil.copyfile(source, published / source.name)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
