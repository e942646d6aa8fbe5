"""Turns a captured call, as the guest wrote it, into a launch plan, or into the reason why it is none.

Distrusts all of it. Every reference must lie within a tensor of the call, and the scalars must be the operation's.
Every cubin must be for the target, hold a kernel that is launched, and start nothing by itself. What a plan computes
is judged later, by launching it. Its code can't remember anything between launches, since it is loaded anew
(forge/guest/clock.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from forge.domain.digest import sha256
from forge.domain.plan import Copy, KernelLaunch, LaunchPlan, Memset, NoPlan, Place
from forge.sandbox.cubin import Cubin, read_cubin
from forge.sandbox.reply import ArtifactFile, parse_artifact

PLAN_FILE = "plan.json"
"""Name of the file that holds the plan."""
LIMIT_BYTES = 64 * 2**20
"""Size of a plan with its cubins in bytes, at most. The limit is that of one cubin, a plan's largest part."""
_ENDINGS = (".cubin", ".json")
"""Endings of the files of a launch plan."""
_BLOCK_LIMIT = 1024
"""Number of threads in a block, at most. It is CUDA's limit for every compute capability (CUDA C++ Programming Guide,
technical specifications)."""
_GRID_LIMIT = 65535
"""Second and third extent of a grid, at most. It is CUDA's limit for every compute capability (CUDA C++ Programming
Guide, technical specifications)."""
_DETAIL_CHARACTERS = 500
"""Number of characters in an error's text, at most. The text comes from a guest. Chosen; a longer one makes an event
and a page longer."""


class PlanError(ValueError):
    """The guest wrote something that is neither a plan nor a reason; no honest capture does that."""

    def __init__(self, detail: str) -> None:
        super().__init__(_printable(detail[:_DETAIL_CHARACTERS]))


@dataclass(frozen=True)
class Captured:
    """A plan with the device code that it launches."""

    plan: LaunchPlan
    cubins: tuple[ArtifactFile, ...]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Limits of a plan: bytes of each input and each output, the scalars, and the architecture."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    scalars: tuple[float, ...]
    """Scalars of the operation; the captured call had exactly these."""
    arch: str

    def size_of(self, place: Place, workspaces: Sequence[int]) -> int:
        """Return the bytes of the tensor that a place lies in; raise PlanError if there is none."""
        spans = {"input": self.inputs, "output": self.outputs, "workspace": workspaces}[place.to]
        if place.index >= len(spans):
            raise PlanError(f"a reference to {place.to} {place.index}, of which there are {len(spans)}")
        return spans[place.index]


def parse_plan(untrusted: bytes, bounds: Bounds) -> Captured | NoPlan:
    """Read the result of a capture; raise PlanError for anything that Forge's capture never writes."""
    if len(untrusted) > LIMIT_BYTES:
        raise PlanError(f"a plan of {len(untrusted)} bytes, expected at most {LIMIT_BYTES}")
    try:
        files = {file.name: file.content for file in parse_artifact(untrusted, endings=_ENDINGS)}
        body = _object(orjson.loads(files.pop(PLAN_FILE)))
        if "kind" in body:
            return NoPlan.model_validate({**body, "detail": _printable(_text(body["detail"]))})
        plan = LaunchPlan.model_validate(_typed(body, files))
        read = {name: read_cubin(content) for name, content in files.items()}
    except KeyError as error:
        raise PlanError(f"the plan lacks {error}") from None
    except ValueError as error:
        raise PlanError(f"the plan makes no sense: {error}") from None
    return _checked(plan, files, read, bounds)


def _typed(body: dict[str, object], files: dict[str, bytes]) -> dict[str, object]:
    """Return the guest's short forms as the domain's."""
    steps = [_object(step) for step in _list(body["steps"])]
    for step in steps:
        for key in ("to", "source"):
            if key in step:
                step[key] = _place(step[key])
        if "arguments" in step:
            step["arguments"] = [_argument(_object(one)) for one in _list(step["arguments"])]
    digests = {name: sha256(content) for name, content in files.items()}
    return {**body, "steps": steps, "cubins": digests}


def _argument(untrusted: dict[str, object]) -> dict[str, object]:
    references = [_list(one) for one in _list(untrusted.pop("references"))]
    return {**untrusted, "pointers": [_pointer(one) for one in references]}


def _pointer(untrusted: list[object]) -> dict[str, object]:
    at, *place = untrusted
    return {"at": at, "place": _place(place)}


def _place(untrusted: object) -> dict[str, object]:
    return dict(zip(("to", "index", "offset_bytes"), _list(untrusted), strict=True))


def _object(untrusted: object) -> dict[str, object]:
    if not isinstance(untrusted, dict):
        raise PlanError(f"a {type(untrusted).__name__} where a JSON object belongs")
    return untrusted


def _list(untrusted: object) -> list[object]:
    if not isinstance(untrusted, list):
        raise PlanError(f"a {type(untrusted).__name__} where a JSON list belongs")
    return untrusted


def _text(untrusted: object) -> str:
    if not isinstance(untrusted, str):
        raise PlanError(f"a {type(untrusted).__name__} where a text belongs")
    return untrusted


def _printable(untrusted: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in untrusted)


def _checked(plan: LaunchPlan, files: dict[str, bytes], read: dict[str, Cubin], bounds: Bounds) -> Captured | NoPlan:
    if plan.scalars != bounds.scalars:
        raise PlanError(f"the plan's scalars are {plan.scalars}, expected {bounds.scalars}")
    idle = set(read) - {kernel.cubin for kernel in plan.kernels}
    if idle:
        raise PlanError(
            f"no step launches from {', '.join(sorted(idle))}: expected only device code that a step launches"
        )
    for name, cubin in read.items():
        problem = _unfit(name, cubin, bounds.arch)
        if problem is not None:
            return problem
    for step in plan.steps:
        match step:
            case KernelLaunch():
                _check_launch(step, read, plan, bounds)
            case Memset():
                _check_written(step.to, step.size_bytes, plan, bounds)
            case Copy():
                _check_written(step.to, step.size_bytes, plan, bounds)
                _check_span(step.source, step.size_bytes, plan, bounds)
    return Captured(plan, tuple(ArtifactFile(name, content) for name, content in sorted(files.items())))


def _unfit(name: str, cubin: Cubin, arch: str) -> NoPlan | None:
    if cubin.arch.rstrip("af") != arch.rstrip("af"):
        raise PlanError(f"{name} is for {cubin.arch}, expected {arch}")
    if cubin.externals:
        detail = f"{name} calls {', '.join(sorted(cubin.externals))[:200]}, which isn't in it"
        return NoPlan(kind="external", detail=detail)
    return None


def _check_launch(step: KernelLaunch, read: dict[str, Cubin], plan: LaunchPlan, bounds: Bounds) -> None:
    cubin = read.get(step.cubin)
    if cubin is None or step.name not in cubin.kernels:
        raise PlanError(f"{step.cubin} has no kernel {step.name!r}")
    x, y, z = step.block
    if x * y * z > _BLOCK_LIMIT or max(step.grid[1:]) > _GRID_LIMIT:
        raise PlanError(
            f"a launch of {step.grid} blocks of {step.block} threads: expected at most {_BLOCK_LIMIT} threads, and "
            f"{_GRID_LIMIT} blocks in the second and third axis"
        )
    for argument in step.arguments:
        for pointer in argument.pointers:
            if pointer.at + 8 > len(argument.content) // 2:
                raise PlanError("an address lies outside of its argument")
            _check_span(pointer.place, 1, plan, bounds)


def _check_written(place: Place, length: int, plan: LaunchPlan, bounds: Bounds) -> None:
    if place.to == "input":
        raise PlanError("a fill of an input, or a copy into one")
    _check_span(place, length, plan, bounds)


def _check_span(place: Place, length: int, plan: LaunchPlan, bounds: Bounds) -> None:
    size = bounds.size_of(place, plan.workspaces)
    if place.offset_bytes + length > size:
        raise PlanError(
            f"bytes {place.offset_bytes} to {place.offset_bytes + length} of {place.to} {place.index}, "
            f"which has {size}"
        )
