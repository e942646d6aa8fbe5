"""Runs beside hostile code. Measures one function's device time over rotating operands, by graph replay.

Only guests without a candidate's host code are asked: the launcher of a plan, and the baselines. A window's graph
holds one call on each set, one after the other. Before a window the contents rotate. They move by `rotation_offset`
places among the sets, and within each tensor by a number of elements that follows from it. Outputs and workspaces are
poisoned.

A plan's device code could remember what it answered before, in a variable or anywhere in memory. It could also
remember which output belongs to which input, and answer for all sets in its first launch. So no question comes twice
in a window. For each window the code is loaded anew, and the inputs and outputs of the sets are paired anew. What the
code learnt before is then useless.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is

from . import channel, plan_launcher, run, wire
from .layout import Layout
from .rotation import flat, rotated_rows
from .spans import fresh

POISON, INTEGER_POISON = 0xFF, 0x80
"""Bytes that fill outputs and workspaces. All-ones bytes are NaN in every floating type. Integers have no NaN; this
byte makes no valid index, and rarely an answer."""
ROTATED_BYTES = 2**28
"""Size in bytes of the contents that are rotated at once, since this takes memory besides the operands. Chosen;
smaller pieces need more launches."""
_CACHES_READ = 2
"""Number of bytes read to clean the last-level cache, as a multiple of its size. Chosen: two, since a cache doesn't
replace its oldest lines exactly."""
_LEAD_CYCLES = 1_000_000
"""Number of cycles for which the device is kept busy first. Half a millisecond at 2 GHz is longer than a host takes
to queue a graph of thousands of launches."""
Tensors = Sequence[torch.Tensor]


class Marks:
    """Two events that are nodes of a graph themselves; between them lies the graph's work, without its start."""

    def __init__(self) -> None:
        self._start, self._end = (plan_launcher.checked(driver.cuEventCreate(0)) for _ in range(2))

    def begin(self) -> None:
        """Record the first event on the captured stream."""
        self._record(self._start)

    def end(self) -> None:
        """Record the second event."""
        self._record(self._end)

    def elapsed_ns(self) -> int:
        """Return the nanoseconds between the events in the last replay."""
        return round(float(str(plan_launcher.checked(driver.cuEventElapsedTime(self._start, self._end)))) * 1e6)

    def _record(self, event: object) -> None:
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        stream = torch.cuda.current_stream().cuda_stream
        plan_launcher.checked(driver.cuEventRecordWithFlags(event, stream, external))

    def __del__(self) -> None:
        for event in (self._start, self._end):
            driver.cuEventDestroy(event)


class Executable:
    """A captured graph, instantiated and uploaded, so that its first replay costs no more than others."""

    def __init__(self, graph: torch.cuda.CUDAGraph, marks: Marks) -> None:
        self._graph = graph
        self.marks = marks
        self._ready = plan_launcher.checked(driver.cuGraphInstantiate(graph.raw_cuda_graph(), 0))
        plan_launcher.checked(driver.cuGraphUpload(self._ready, torch.cuda.current_stream().cuda_stream))

    def replay(self) -> None:
        """Launch the graph on the current stream."""
        plan_launcher.checked(driver.cuGraphLaunch(self._ready, torch.cuda.current_stream().cuda_stream))

    def __del__(self) -> None:
        driver.cuGraphExecDestroy(self._ready)


@dataclass
class _Captured:
    graph: Executable
    inputs: list[Tensors]
    """Inputs of each set."""
    outputs: list[Tensors]
    given: list[list[torch.Tensor]]
    """Bytes of each set's inputs."""
    written: list[torch.Tensor]
    """Bytes of each output and workspace."""
    poison: list[torch.Tensor]
    """Poison for each tensor in `written`."""


class Clock:
    """Holds the contents of one layout's sets on the device, and a graph for each function."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        for operand in (operand for one in layout.operands for operand in one):
            operand.storage.copy_(operand.source)
        self._contents = [torch.stack([flat(one) for one in alike]) for alike in zip(*layout.inputs, strict=True)]
        self._captured: dict[int, _Captured] = {}
        self._poison: dict[tuple[int, int], torch.Tensor] = {}
        self._outputs: list[list[torch.Tensor]] | None = None
        self._workspaces: dict[int, list[torch.Tensor]] = {}
        self._cache_cleaner = cache_cleaner()
        self._stream = torch.cuda.Stream()

    def time(self, function: Callable[..., object], command: channel.Time) -> None:
        """Replay, reply with the window's nanoseconds, and copy one set's operands out if asked."""
        key = command.function
        if command.again:
            device_ns = window_ns(self._captured[key].graph, command.repeats)
            channel.reply(command.call_id, wire.DONE, device_ns=device_ns)
            return
        if isinstance(function, plan_launcher.PlanFunction):
            self._captured.clear()
            function.reload()
            self._captured[key] = self._paired(function, self._workspaces_for(key, function))
        elif key not in self._captured:
            self._captured[key] = self._called(function, command)
        captured = self._captured[key]
        if command.resident:
            self._write_into_cache(captured, command.rotation_offset)
        else:
            self._rotate(captured, command.rotation_offset)
        device_ns = window_ns(captured.graph, command.repeats)
        if command.copied != wire.NO_SET:
            self._copy_out(captured, command.copied)
        channel.reply(command.call_id, wire.DONE, completed=len(self._layout.inputs), device_ns=device_ns)

    def _called(self, function: Callable[..., object], command: channel.Time) -> _Captured:
        """Capture a graph of a function's own calls, with the memory that these calls take."""
        scalars = command.scalars[: self._layout.scalars]
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(3):
                known = _tensors(function(*self._layout.inputs[0], *scalars))
        torch.cuda.synchronize()
        graph, marks = torch.cuda.CUDAGraph(keep_graph=True), Marks()
        with torch.cuda.graph(graph, stream=self._stream):
            marks.begin()
            # all outputs are kept: freed memory would be reused, and its cache lines with it
            outputs = [_tensors(function(*inputs, *scalars)) for inputs in self._layout.inputs]
            marks.end()
        others = [*known, *(one for inputs in self._layout.inputs for one in inputs)]
        return self._with_poison(Executable(graph, marks), self._layout.inputs, outputs, fresh(outputs, others))

    def _workspaces_for(self, key: int, plan: plan_launcher.PlanFunction) -> list[torch.Tensor]:
        """Return the workspaces of one plan: plans in one launcher differ in their number and sizes."""
        if key not in self._workspaces:
            self._workspaces[key] = plan.workspaces()
        return self._workspaces[key]

    def _paired(self, plan: plan_launcher.PlanFunction, workspaces: list[torch.Tensor]) -> _Captured:
        """Capture a graph of a plan's launches; each set gets inputs and outputs of random sets."""
        count = len(self._layout.inputs)
        if self._outputs is None:
            self._outputs = [plan.outputs() for _ in range(count)]
        outputs = random.sample(self._outputs, count)
        inputs = random.sample(self._layout.inputs, count)
        plan.launch(inputs[0], outputs[0], workspaces)
        torch.cuda.synchronize()
        graph, marks = torch.cuda.CUDAGraph(keep_graph=True), Marks()
        with torch.cuda.stream(self._stream):
            graph.capture_begin()
            marks.begin()
            for given, taken in zip(inputs, outputs, strict=True):
                plan.launch(given, taken, workspaces)
            marks.end()
            graph.capture_end()
        written = [*(one for taken in outputs for one in taken), *workspaces]
        return self._with_poison(Executable(graph, marks), inputs, outputs, written)

    def _with_poison(
        self, graph: Executable, inputs: Sequence[Tensors], outputs: Sequence[Tensors], written: Tensors
    ) -> _Captured:
        poison = [self._poison_for(one) for one in written]
        given = [[_bytes(one) for one in one_set] for one_set in inputs]
        return _Captured(graph, list(inputs), list(outputs), given, [_bytes(one) for one in written], poison)

    def _rotate(self, captured: _Captured, rotation_offset: int) -> None:
        """Rotate the inputs' contents and poison the rest; many tensors at a time, since each launch costs."""
        sets = len(captured.given)
        sets_at_once = max(1, ROTATED_BYTES * sets // max(1, sum(contents.nbytes for contents in self._contents)))
        for first in range(0, sets, sets_at_once):
            places = range(first, min(first + sets_at_once, sets))
            rows = [
                rotated_rows(contents, position, rotation_offset, places, still=position in self._layout.still)
                for position, contents in enumerate(self._contents)
            ]
            given = [tensor for place in places for tensor in captured.given[place]]
            torch._foreach_copy_(given, [row for one_set in zip(*rows, strict=True) for row in one_set])
        if captured.written:  # a function that works in place may have nothing to poison
            torch._foreach_copy_(captured.written, captured.poison)
        torch.sum(self._cache_cleaner, dim=0)  # the cache writes out its lines, so no window waits for that
        torch.cuda.synchronize()

    def _write_into_cache(self, captured: _Captured, rotation_offset: int) -> None:
        """Rotate the inputs' contents and poison the rest as `_rotate` does, but leave them in the cache.

        The rotated rows are made first, and driven out. Then the copies write the operands, which the host chose to
        fit into half of the cache. The rows that they read take a quarter of it at most.
        """
        places = range(len(captured.given))
        rows = [
            rotated_rows(contents, position, rotation_offset, places, still=position in self._layout.still)
            for position, contents in enumerate(self._contents)
        ]
        torch.sum(self._cache_cleaner, dim=0)
        given = [tensor for one_set in captured.given for tensor in one_set]
        torch._foreach_copy_(given, [row for one_set in zip(*rows, strict=True) for row in one_set])
        if captured.written:
            torch._foreach_copy_(captured.written, captured.poison)
        torch.cuda.synchronize()

    def _poison_for(self, tensor: torch.Tensor) -> torch.Tensor:
        poison = POISON if tensor.is_floating_point() else INTEGER_POISON
        named = (tensor.nbytes, poison)
        if named not in self._poison:
            self._poison[named] = torch.full((tensor.nbytes,), poison, dtype=torch.uint8, device=tensor.device)
        return self._poison[named]

    def _copy_out(self, captured: _Captured, place: int) -> None:
        """Copy one set's outputs, and the state of its inputs, to where the host reads."""
        for output, destination in zip(captured.outputs[place], self._layout.destinations[place], strict=True):
            destination.copy_(output)
        for tensor, operand in zip(captured.inputs[place], self._layout.operands[place], strict=True):
            operand.source.copy_(tensor.view(-1))


def cache_cleaner() -> torch.Tensor:
    """Return a tensor larger than the last-level cache; reading it cleans the cache."""
    size_bytes = _CACHES_READ * torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    return torch.zeros(size_bytes // 4, device="cuda")


def _tensors(returned: object) -> list[torch.Tensor]:
    return [one for one in run.as_outputs(returned) if isinstance(one, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1).view(torch.uint8)


def window_ns(graph: Executable, repeats: int) -> int:
    """Return the last replay's nanoseconds on the device.

    The device is kept busy until all replays are queued, so that it never waits for the host.
    """
    torch.cuda._sleep(_LEAD_CYCLES)
    for _ in range(repeats):
        graph.replay()
    torch.cuda.synchronize()
    return graph.marks.elapsed_ns()
