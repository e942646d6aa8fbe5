"""Has a guest export a module and run programs in its place; the host compares every byte of their outputs.

Distrusts the guest: the graph is parsed into typed values, and outputs are raw bytes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from forge.domain.evidence import Isolation
from forge.domain.policy import Policy
from forge.errors import ReferenceRefused
from forge.lab.job import STILL_S, WALL_PER_CPU_S
from forge.lab.parts.graph import Graph
from forge.lab.parts.program import Composed
from forge.languages import LANGUAGES
from forge.sandbox.limits import Limits
from forge.sandbox.log import harmless
from forge.sandbox.one_shot import run_one_shot
from forge.sandbox.reply import Refused
from forge.sandbox.stage import PARTS, Program, Stage

GRAPH_BYTES = 16 * 2**20
"""Size of a stated graph in bytes, at most. It is about 3 KiB for each of `MOST_NODES` nodes."""
OUTPUT_BYTES = 256 * 2**20
"""Size of all outputs of one comparison in bytes, at most. Chosen; the host's memory holds all of them."""
EXPORTING_MODULES = ("torch._dynamo", "torch.export._trace")
"""Modules with which torch writes a module down as a graph. They take four seconds to import."""
LIMIT_S = 120.0
"""Processor seconds of a thread for an export, or for all calls of a comparison. Chosen; it is twice a reference's
own `LIMIT_S`."""
SEEDS = (11, 12, 13)
"""Seeds of the inputs with which a program is compared with the whole module. Chosen: three draws; each costs a call
of both."""
HEADER = 8
"""Number of bytes of a header's length. It is one 64-bit number."""


class NotExported(Exception):
    """The module has no graph that can be taken apart; the message says why."""


@dataclass(frozen=True)
class Same:
    """A program gave the same bytes as the module for every draw."""


@dataclass(frozen=True)
class Differs:
    """A program gave something else than the module."""

    why: str


def export(source: bytes, *, policy: Policy, isolation: Isolation) -> Graph:
    """Return a module's graph; raise NotExported, or ReferenceRefused if its guest ended."""
    said, _ = _asked(source, None, GRAPH_BYTES, policy=policy, isolation=isolation)
    try:
        return Graph.model_validate(said)
    except ValidationError as error:
        raise NotExported(f"its graph can't be read: {error.errors()[0]['msg'][:200]}") from error


def compare(
    source: bytes, programs: Sequence[Composed], *, policy: Policy, isolation: Isolation
) -> list[Same | Differs]:
    """Say of each program whether it stands for the whole module, bit for bit, on three draws of its inputs."""
    said, content = _asked(source, programs, OUTPUT_BYTES, policy=policy, isolation=isolation)
    found: list[Same | Differs] = [Same()] * len(programs)
    compared = [0] * len(programs)
    at, whole = 0, None
    for row in said["rows"]:
        sizes = [int(one["bytes"]) for one in row["outputs"]]
        ends = [at + sum(sizes[: place + 1]) for place in range(len(sizes))]
        outputs = [
            (one["dtype"], one["sizes"], content[end - size : end])
            for one, size, end in zip(row["outputs"], sizes, ends, strict=True)
        ]
        at += sum(sizes)
        if row["program"] is None:
            whole = outputs
            continue
        place = int(row["program"])
        compared[place] += 1
        if outputs != whole or not outputs:
            found[place] = Differs(_why(row, outputs, whole or []))
    if compared != [len(SEEDS)] * len(programs):
        raise NotExported(f"its guest compared {compared} draws: expected {len(SEEDS)} of each program")
    return found


def _why(row: dict[str, Any], outputs: Sequence[tuple[Any, ...]], whole: Sequence[tuple[Any, ...]]) -> str:
    if "raised" in row:
        return harmless(str(row["raised"])[:200].encode())
    if len(outputs) != len(whole):
        return f"{len(outputs)} results, expected {len(whole)}"
    place = next(place for place, (one, other) in enumerate(zip(outputs, whole, strict=True)) if one != other)
    one, other = outputs[place], whole[place]
    form = f"{one[0]}{one[1]}, expected {other[0]}{other[1]}" if one[:2] != other[:2] else "other values"
    return f"result {place}: {form}"


def _asked(
    source: bytes, programs: Sequence[Composed] | None, most_bytes: int, *, policy: Policy, isolation: Isolation
) -> tuple[dict[str, Any], bytes]:
    files = {"reference.py": source}
    files |= {f"program_{place}.py": one.source.encode() for place, one in enumerate(programs or ())}
    rare = EXPORTING_MODULES if programs is None else ()
    stage = Stage(Program(language=LANGUAGES["torch"], files=files, warm=True, rare_modules=rare), isolation)
    listed = [
        {"path": f"{stage.candidate_directory}/program_{place}.py", "state": list(one.state)}
        for place, one in enumerate(programs or ())
    ]
    body = {"path": f"{stage.candidate_directory}/reference.py", "seed": SEEDS[0], "seeds": list(SEEDS)}
    limits = Limits(
        wall_s=WALL_PER_CPU_S * LIMIT_S,
        cpu_s=int(LIMIT_S * 16),
        thread_cpu_s=LIMIT_S,
        still_s=STILL_S,
        memory_bytes=policy.memory_limit_bytes,
    )
    try:
        untrusted = run_one_shot(
            stage,
            PARTS,
            {**body, "programs": None if programs is None else listed},
            what="it",
            most_bytes=most_bytes,
            limits=limits,
            threads=1,
        )
    finally:
        stage.remove()
    if isinstance(untrusted, Refused):
        raise ReferenceRefused(f"the module can't be taken apart, correct its file: {untrusted.reason.message}")
    return _read(untrusted)


def _read(untrusted: bytes) -> tuple[dict[str, Any], bytes]:
    """Return what the guest said as JSON, and the bytes behind it."""
    end = HEADER + int.from_bytes(untrusted[:HEADER], "little")
    try:
        said = json.loads(untrusted[HEADER:end])
    except (ValueError, RecursionError):
        said = None  # no guest of Forge says that
    if not isinstance(said, dict) or "problem" in said:
        problem = said.get("problem", "") if isinstance(said, dict) else ""
        raise NotExported(harmless(str(problem)[:400].encode()) or "its guest said nothing")
    return said, untrusted[end:]
