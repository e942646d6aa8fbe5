"""Puts a gate's question to a candidate: in a guest that is loaded, or in one of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from forge.lab.calls.load import loaded
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, joined
from forge.lab.gates.configurations import with_configuration
from forge.lab.gates.gate import Gate
from forge.lab.job import Job
from forge.sandbox.stage import Stage


@dataclass(frozen=True, kw_only=True)
class GateAsked:
    """What a gate found, and from which seeds."""

    finding: Finding
    seeds: tuple[int, ...] = ()
    saw_held_out: bool = False
    """Whether the guest was asked at a held-out shape, so that its words may name the shape."""

    @property
    def refuses(self) -> bool:
        """Whether the candidate is refused."""
        return isinstance(self.finding, Failed)


def ask(kernel: LoadedKernel, gate: Gate) -> GateAsked:
    """Ask all parts of the gate's question in a guest that is loaded, up to the first refusal."""
    return together(_ask_part(kernel, part) for part in gate.parts)


def _ask_part(kernel: LoadedKernel, part: Gate) -> GateAsked:
    kernel.begin(part.name)
    before = len(kernel.seeds)
    finding = part.examine(kernel)
    if isinstance(finding, Failed):
        finding = with_configuration(kernel, finding)
    return GateAsked(finding=finding, seeds=tuple(kernel.seeds[before:]), saw_held_out=kernel.saw_held_out)


def together(answers: Iterable[GateAsked]) -> GateAsked:
    """Return the answers to a question's parts as one; none is asked for after a refusal."""
    taken: list[GateAsked] = []
    for answer in answers:
        taken.append(answer)
        if answer.refuses:
            break
    return GateAsked(
        finding=joined([one.finding for one in taken]),
        seeds=tuple(seed for one in taken for seed in one.seeds),
        saw_held_out=any(one.saw_held_out for one in taken),
    )


@contextmanager
def loaded_alone(job: Job, stage: Stage, gate: Gate, configurations: int) -> Iterator[LoadedKernel | Failed]:
    """Load the candidate in a new guest for a gate; `configurations` is the most that an autotuned kernel has."""
    with loaded(job, stage, job.gate_limits, label=gate.name, fills_memory=True) as kernel:
        if not isinstance(kernel, Failed):
            kernel.tuner.allow_for(configurations)
        yield kernel


def ask_alone(job: Job, stage: Stage, gate: Gate, configurations: int) -> GateAsked:
    """Ask the gate's question in a new guest."""
    with loaded_alone(job, stage, gate, configurations) as kernel:
        return GateAsked(finding=kernel) if isinstance(kernel, Failed) else ask(kernel, gate)
