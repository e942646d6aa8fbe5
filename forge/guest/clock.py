"""Runs beside hostile code. Device time of one function over rotating operands, by graph replay.

Only guests that hold none of a candidate's host code are asked for it: the launcher of a plan, and the baselines. The
graph of a window holds one call on each set, one after the other. Before a window the contents move on: by `roll`
places among the sets, and within each tensor by a number of elements that follows from it; outputs and workspaces are
poisoned.

A plan's device code could remember, in a variable or anywhere in memory, what it answered before, or which output
belongs to which input, and answer for all sets in its first launch. So no question comes twice in a window, the code
is loaded anew for each, and the sets' inputs and outputs are paired anew: what it learnt before is of no use.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is

from . import channel, launches, run, wire
from .spans import fresh
from .turned import flat, turned

POISON, POISON_OF_INTEGERS = 0xFF, 0x80
"""All-ones bytes are NaN in every floating type; integers have none, and take what is no index and rarely a value."""
TURNED_BYTES = 2**28
"""Turned at once: it is memory beside the operands'."""
_CACHES_READ = 2
"""Times the size of the last-level cache."""
_LEAD_CYCLES = 1_000_000
"""Half a millisecond at 2 GHz: longer than a host takes to queue a graph of thousands of launches."""
Tensors = Sequence[torch.Tensor]


class Marks:
    """Two events that are nodes of a graph themselves: between them lies its work, and nothing of its start."""

    def __init__(self) -> None:
        self._start, self._end = (launches.checked(driver.cuEventCreate(0)) for _ in range(2))

    def begin(self) -> None:
        """Mark the work's start on the stream that is captured."""
        self._record(self._start)

    def end(self) -> None:
        """Mark its end."""
        self._record(self._end)

    def elapsed_ns(self) -> int:
        """Between the marks in the last replay."""
        return round(float(str(launches.checked(driver.cuEventElapsedTime(self._start, self._end)))) * 1e6)

    def _record(self, event: object) -> None:
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        stream = torch.cuda.current_stream().cuda_stream
        launches.checked(driver.cuEventRecordWithFlags(event, stream, external))

    def __del__(self) -> None:
        for event in (self._start, self._end):
            driver.cuEventDestroy(event)


class Executable:
    """A captured graph on the device: what the first replay of one costs besides is paid here."""

    def __init__(self, graph: torch.cuda.CUDAGraph, marks: Marks) -> None:
        self._graph = graph
        self.marks = marks
        self._ready = launches.checked(driver.cuGraphInstantiate(graph.raw_cuda_graph(), 0))
        launches.checked(driver.cuGraphUpload(self._ready, torch.cuda.current_stream().cuda_stream))

    def replay(self) -> None:
        """Run it on the current stream."""
        launches.checked(driver.cuGraphLaunch(self._ready, torch.cuda.current_stream().cuda_stream))

    def __del__(self) -> None:
        driver.cuGraphExecDestroy(self._ready)


@dataclass
class _Captured:
    graph: Executable
    inputs: list[Tensors]
    """Of each set."""
    outputs: list[Tensors]
    given: list[list[torch.Tensor]]
    """The inputs' bytes, of each set."""
    written: list[torch.Tensor]
    """The bytes of outputs and workspaces."""
    poison: list[torch.Tensor]
    """What each of them is filled with."""


class Clock:
    """The rotation of one layout: the sets' contents on the device, and a graph for each function."""

    def __init__(self, layout: run.Layout) -> None:
        self._layout = layout
        for operand in (operand for one in layout.operands for operand in one):
            operand.storage.copy_(operand.source)
        self._contents = [torch.stack([flat(one) for one in alike]) for alike in zip(*layout.inputs, strict=True)]
        self._captured: dict[int, _Captured] = {}
        self._poison: dict[tuple[int, int], torch.Tensor] = {}
        self._pairing: tuple[list[list[torch.Tensor]], list[torch.Tensor]] | None = None
        self._clean = clean_memory()
        self._stream = torch.cuda.Stream()

    def time(self, function: Callable[..., object], command: channel.Time) -> None:
        """Replay, reply with the nanoseconds of the window, and copy one set's operands out if asked."""
        key = command.function
        if command.again:
            device_ns = window_ns(self._captured[key].graph, command.repeats)
            channel.reply(command.call_id, wire.DONE, device_ns=device_ns)
            return
        if isinstance(function, launches.PlanFunction):
            self._captured.clear()
            function.reload()
            self._captured[key] = self._paired(function)
        elif key not in self._captured:
            self._captured[key] = self._called(function, command)
        captured = self._captured[key]
        self._renew(captured, command.roll)
        device_ns = window_ns(captured.graph, command.repeats)
        if command.copied != wire.NO_SET:
            self._copy_out(captured, command.copied)
        channel.reply(command.call_id, wire.DONE, completed=len(self._layout.inputs), device_ns=device_ns)

    def _called(self, function: Callable[..., object], command: channel.Time) -> _Captured:
        """A graph of a function's own calls, with the memory that it takes under capture."""
        scalars = command.scalars[: self._layout.scalars]
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(3):
                known = _tensors(function(*self._layout.inputs[0], *scalars))
        torch.cuda.synchronize()
        graph, marks = torch.cuda.CUDAGraph(keep_graph=True), Marks()
        with torch.cuda.graph(graph, stream=self._stream):
            marks.begin()
            # all are kept: memory that came free would be taken again, and its cache lines with it
            outputs = [_tensors(function(*inputs, *scalars)) for inputs in self._layout.inputs]
            marks.end()
        others = [*known, *(one for inputs in self._layout.inputs for one in inputs)]
        return self._kept(Executable(graph, marks), self._layout.inputs, outputs, fresh(outputs, others))

    def _paired(self, plan: launches.PlanFunction) -> _Captured:
        """A graph of a plan's launches, each set's inputs and outputs taken from all sets' memory by chance."""
        count = len(self._layout.inputs)
        if self._pairing is None:
            self._pairing = [plan.outputs() for _ in range(count)], plan.workspaces()
        everything, workspaces = self._pairing
        outputs = random.sample(everything, count)
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
        return self._kept(Executable(graph, marks), inputs, outputs, written)

    def _kept(
        self, graph: Executable, inputs: Sequence[Tensors], outputs: Sequence[Tensors], written: Tensors
    ) -> _Captured:
        poison = [self._poison_for(one) for one in written]
        given = [[_bytes(one) for one in one_set] for one_set in inputs]
        return _Captured(graph, list(inputs), list(outputs), given, [_bytes(one) for one in written], poison)

    def _renew(self, captured: _Captured, roll: int) -> None:
        """New contents for the inputs, poison for the rest; many tensors at a time, since each launch costs."""
        sets = len(captured.given)
        at_once = max(1, TURNED_BYTES * sets // max(1, sum(contents.nbytes for contents in self._contents)))
        for first in range(0, sets, at_once):
            places = range(first, min(first + at_once, sets))
            rows = [
                turned(contents, position, roll, places, still=position in self._layout.still)
                for position, contents in enumerate(self._contents)
            ]
            given = [tensor for place in places for tensor in captured.given[place]]
            torch._foreach_copy_(given, [row for one_set in zip(*rows, strict=True) for row in one_set])
        if captured.written:  # what works in place may have nothing to poison
            torch._foreach_copy_(captured.written, captured.poison)
        torch.sum(self._clean, dim=0)  # what the cache had still to write is out: no window waits for our writing
        torch.cuda.synchronize()

    def _poison_for(self, tensor: torch.Tensor) -> torch.Tensor:
        poison = POISON if tensor.is_floating_point() else POISON_OF_INTEGERS
        named = (tensor.nbytes, poison)
        if named not in self._poison:
            self._poison[named] = torch.full((tensor.nbytes,), poison, dtype=torch.uint8, device=tensor.device)
        return self._poison[named]

    def _copy_out(self, captured: _Captured, place: int) -> None:
        """One set's outputs, and what became of its inputs, to where the host looks."""
        for output, destination in zip(captured.outputs[place], self._layout.destinations[place], strict=True):
            destination.copy_(output)
        for tensor, operand in zip(captured.inputs[place], self._layout.operands[place], strict=True):
            operand.source.copy_(tensor.view(-1))


def clean_memory() -> torch.Tensor:
    """More than the last-level cache holds, to be read."""
    size_bytes = _CACHES_READ * torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    return torch.zeros(size_bytes // 4, device="cuda")


def _tensors(returned: object) -> list[torch.Tensor]:
    return [one for one in run.as_outputs(returned) if isinstance(one, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1).view(torch.uint8)


def window_ns(graph: Executable, repeats: int) -> int:
    """Nanoseconds on the device, of the last replay; it is kept busy until all is queued, and never waits for us."""
    torch.cuda._sleep(_LEAD_CYCLES)
    for _ in range(repeats):
        graph.replay()
    torch.cuda.synchronize()
    return graph.marks.elapsed_ns()
