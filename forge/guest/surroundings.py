"""Runs beside hostile code. Checks what a call must leave unchanged besides operands' bytes: forms, and settings.

A serving program loads a kernel, calls it with tensors that it keeps, and continues in the same process.
"""

import ctypes
import gc
import os
import random
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import mtrand
from torch.nn.attention import SDPBackend

from . import linux, torch_switches, wire
from .process import BESIDE_IMPORTS, PROCESS

_ONE, _MORE, _LESS, _SMALLEST = 1.0, 3 * 2.0**-54, 2.0**-54, 5e-324
"""Numbers that show the rounding mode and the treatment of subnormal numbers. One plus the second rounds up to the
next number; one plus the third rounds down to one."""
_TRAPS_TRIED = ((1.0, 0.0), (0.0, 0.0), (sys.float_info.max, 5e-324), (5e-324, 3.0))
"""Numbers whose quotients are infinite, not a number, too large, and too small and inexact."""
_LONG, _LITTLE = np.longdouble(1), np.longdouble(2.0**-60)
"""Numbers that show how precisely the processor's older unit adds, which C's `long double` uses on x86."""
_ELEMENTS_OF_A_WORKER = 2**15
"""Number of elements from which on torch gives a thread a part of its own (GRAIN_SIZE in ATen's TensorIterator.h)."""
_APART = 2**10
"""Distance between elements that show something. Chosen: a processor takes some 150 cycles for a subnormal number."""
_WORKERS, _LEFT_OUT = "how worker threads of OpenMP round", "what the garbage collector leaves out"
"""Names of two thorough readings in the log."""
_MT19937_BYTES = 4 * (624 + 1)
"""Size in bytes of the state of torch's generator on the processor: 624 words, and the position of the next one."""
_A_DRAW = 4
"""Offset of a GPU's generator after one draw; every offset is a multiple of it."""
_TRAPPED = getattr(ctypes.CDLL(None), "fegetexcept", None)
"""C function that returns the enabled floating-point traps, or None."""
_MADE_HERE: list[object] = []
"""Object that the garbage collector watches in every guest."""
_MADE_BEFORE = sys.modules
"""Object that it leaves out in a guest that was forked."""
_AS_LEFT: dict[str, object] = {}
"""Settings as they were after the last of some calls in a row, which the next calls find; empty if none are known."""
Form = tuple[object, ...]
Answers = tuple[tuple[float, float], ...]


class Surroundings(NamedTuple):
    """The forms and settings at one moment, for a comparison with a later one."""

    forms: tuple[Form, ...]
    settings: Mapping[str, object]
    generators: Mapping[str, object]
    beside_imports: Mapping[str, object]
    modules: int
    """Number of imported modules."""
    thorough: bool
    """Whether it also asks how operands are mapped, and more that takes as long as all else. Few releases do it."""
    mappings: tuple[linux.Mapping, ...]
    """Mappings of the operands; none if the look isn't thorough."""
    threads: dict[int, linux.Scheduling]
    """How the system schedules each thread; none if the look isn't thorough."""
    of_workers: Answers
    """Answers of this thread's workers to sums that show how they round; none if the look isn't thorough."""
    in_a_row: bool
    """Whether the next calls find the settings as these leave them, so that they are read once for both."""

    def status_after(self, inputs: Iterable[torch.Tensor], *, generators: bool = True) -> int:
        """Return the status of a load, or of a release of calls, after a comparison; the log names what changed.

        Random generators are compared too, unless the harness itself drew from them.
        """
        forget()
        operands, settings = tuple(inputs), _read(_SETTINGS)
        if _forms(operands) != self.forms:
            return wire.CHANGED_AN_INPUT
        rights = "the rights to memory of an operand"
        if self.thorough and _tell_changed({rights: self.mappings}, {rights: linux.mappings_of(operands)}):
            return wire.CHANGED_AN_INPUT
        if _tell_changed(self.settings, settings):
            return wire.CHANGED_A_SETTING
        _AS_LEFT.update(settings if self.in_a_row else ())
        if len(sys.modules) == self.modules and _tell_changed(self.beside_imports, _read(BESIDE_IMPORTS)):
            return wire.CHANGED_A_SETTING
        at_first = {_WORKERS: self.of_workers, _LEFT_OUT: _LEFT_OUT_AT_START}
        if self.thorough and _tell_changed(at_first, {_WORKERS: _arithmetic_of_workers(), _LEFT_OUT: _left_out()}):
            return wire.CHANGED_A_SETTING
        if self.thorough and linux.is_scheduled_anew(self.threads):
            print("left behind changed: how the system schedules other threads", file=sys.stderr)  # noqa: T201 (the log)
            return wire.CHANGED_A_SETTING
        drawn = generators and _tell_changed(self.generators, _read(_generators()))
        return wire.CHANGED_A_GENERATOR if drawn else wire.DONE


def _left_out() -> tuple[bool, ...]:
    """Return whether the garbage collector leaves out an object made here, and one made before a fork.

    Counting all that it leaves out takes 17 ms with torch imported.
    """
    watched = list(map(id, gc.get_objects()))
    return tuple(id(one) not in watched for one in (_MADE_HERE, _MADE_BEFORE))


_LEFT_OUT_AT_START = _left_out()
"""Answer of `_left_out` before the first line of foreign code ran."""


def forget() -> None:
    """Let the next look read the settings anew, since something else than the harness may change them before it."""
    _AS_LEFT.clear()


def look(inputs: Iterable[torch.Tensor], *, thorough: bool = False, in_a_row: bool = False) -> Surroundings:
    """Read the tensors' forms and the process's settings.

    Between calls `in_a_row` only the harness works, which changes no setting. So what the last ones left is what the
    next ones find. A thread of a candidate that changes a setting between them is refused with the next ones.

    It first draws a number from each generator, so that none is at its seed, as in any program that has drawn. A
    candidate that seeds a generator again then shows.
    """
    torch.rand(1), np.random.random(), random.random()  # noqa: S311 (the generator that all share)
    for generator in _on_devices():
        if generator.get_offset() == 0:
            generator.set_offset(_A_DRAW)
    operands = tuple(inputs)
    of_workers = _arithmetic_of_workers() if thorough else ()  # starts them, so that they are among the threads
    return Surroundings(
        forms=_forms(operands),
        settings=dict(_AS_LEFT) if in_a_row and _AS_LEFT else _read(_SETTINGS),
        generators=_read(_generators()),
        beside_imports=_read(BESIDE_IMPORTS),
        modules=len(sys.modules),
        thorough=thorough,
        mappings=linux.mappings_of(operands) if thorough else (),
        threads=linux.scheduling_of_threads() if thorough else {},
        of_workers=of_workers,
        in_a_row=in_a_row,
    )


def _tell_changed(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Return whether anything differs, and write the names to the log, where an author looks."""
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        print(f"left behind changed: {', '.join(changed)}", file=sys.stderr)  # noqa: T201 (the log is where an author looks)
    return bool(changed)


def _forms(inputs: Iterable[torch.Tensor]) -> tuple[Form, ...]:
    return tuple(map(_form, inputs))


def _form(tensor: torch.Tensor) -> Form:
    where = (tensor.shape, tensor.stride(), tensor.data_ptr(), tensor.dtype)
    marks = tensor.grad is None, bool(tensor._backward_hooks)
    hidden = [name for name in vars(tensor) if hasattr(type(tensor), name)]
    return type(tensor), *where, tensor.requires_grad, tensor.is_neg(), tensor.is_conj(), *marks, *hidden


def _arithmetic() -> bytes:
    """Return how this thread rounds, and whether it treats subnormal numbers as zeros."""
    long = float(_LONG + _LITTLE - _LONG)
    return struct.pack("5d", _ONE + _MORE, _ONE + _LESS, -_ONE - _LESS, _SMALLEST * _ONE, long)


def _arithmetic_of_workers() -> Answers:
    """Return the least and the largest answer of OpenMP's threads to some sums, each on its own part of a tensor.

    They are those that this thread has started, or starts for that. A worker that was told to end the process at a
    division by zero or the like does so here.
    """
    count = torch.get_num_threads() * _ELEMENTS_OF_A_WORKER
    left, right, answer = torch.ones(3, count, dtype=torch.float64)
    for one, other in _TRAPS_TRIED:
        left[::_APART], right[::_APART] = one, other
        torch.div(left, right, out=answer)
    answers = []
    for one, other in ((_ONE, _MORE), (_ONE, _LESS), (-_ONE, -_LESS), (_SMALLEST, 0.0)):
        left[::_APART], right[::_APART] = one, other
        found = torch.add(left, right, out=answer).mul_(_ONE)[::_APART]
        answers.append((float(found.min()), float(found.max())))
    return tuple(answers)


def _traps() -> int:
    """Return which floating-point exceptions end the process; 0 if the C library can't say."""
    return int(_TRAPPED()) if _TRAPPED is not None else 0


def _processors() -> set[int] | None:
    """Return the processors that this thread may use; None if the system can't say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


def _modes() -> tuple[int, ...]:
    """Return the numbers of modes that are entered; each of them may change what any call of torch does."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def _libraries() -> tuple[object, ...]:
    """Return which of NVIDIA's libraries torch calls, and how; a switch of theirs changes all later calls."""
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    preferred = getattr(torch._C, "_get_blas_preferred_backend", None)
    return (
        *(cudnn.enabled, cudnn.benchmark, cudnn.deterministic),
        *(products.allow_fp16_reduced_precision_reduction, products.allow_bf16_reduced_precision_reduction),
        None if preferred is None else preferred(),
    )


def _attention() -> tuple[object, ...]:
    """Return which implementations of attention are allowed, and the order of all but cuDNN's.

    On some GPUs torch itself puts cuDNN's first in the first call of attention.
    """
    cuda = torch.backends.cuda
    order: tuple[int, ...] = getattr(torch._C, "_get_sdp_priority_order", tuple)()
    allowed = (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled())
    return *allowed, cuda.cudnn_sdp_enabled(), *(one for one in order if one != SDPBackend.CUDNN_ATTENTION.value)


def _numpy_generator() -> tuple[object, ...]:
    """Return the generator's numbers from its memory: numpy's own method takes a hundred microseconds."""
    generator = mtrand.get_bit_generator()
    known = type(generator) is np.random.MT19937
    return generator, ctypes.string_at(generator.ctypes.state_address, _MT19937_BYTES) if known else b""


def _on_devices() -> tuple[torch.Generator, ...]:
    """Return each GPU's generator, if this process uses GPUs. Reading one sends nothing to its GPU."""
    return torch.cuda.default_generators if torch.cuda.is_initialized() else ()


Readings = Mapping[str, Callable[[], object]]


def _read(readings: Readings) -> dict[str, object]:
    return {name: read() for name, read in readings.items()}


_GENERATORS: Readings = {
    "torch's generator": lambda: torch.get_rng_state().numpy().tobytes(),
    "torch's generators on GPUs": lambda: tuple((one.initial_seed(), one.get_offset()) for one in _on_devices()),
    "numpy's generator": _numpy_generator,
    "Python's generator": random.getstate,
}
_OF_LIBRARIES = "FORGE_GUEST_OF_A_LIBRARY"
"""Environment variable of a guest that runs a library's function as a baseline. Libraries draw names and ports from
Python's and numpy's generators when they are imported or compile; torch's generator is asked of them as well."""


@cache
def _generators() -> Readings:
    """Return the random generators that are compared, as the host said before the first line of foreign code ran."""
    if os.environ.get(_OF_LIBRARIES) != "1":
        return _GENERATORS
    return {name: read for name, read in _GENERATORS.items() if name.startswith("torch's")}


_SETTINGS: Readings = {
    "whether torch casts by itself, and to which type": torch_switches.autocast,
    "torch's default type": torch.get_default_dtype,
    "torch's default device": torch.get_default_device,
    "torch's threads": torch.get_num_threads,
    "torch's threads for tasks": torch.get_num_interop_threads,
    "modes of torch that see each call": _modes,
    "whether torch fills new memory": lambda: torch.utils.deterministic.fill_uninitialized_memory,
    "whether torch uses fast attention modules": torch.backends.mha.get_fastpath_enabled,
    "whether torch records gradients": torch.is_grad_enabled,
    "torch's inference mode": torch.is_inference_mode_enabled,
    "torch's anomaly detection": torch.is_anomaly_enabled,
    "the precision of torch's products": torch_switches.products,
    "whether torch is deterministic": torch.are_deterministic_algorithms_enabled,
    "hooks of all modules": torch_switches.hooks_of_modules,
    "how torch dispatches calls, or whether it profiles them": torch_switches.dispatch,
    "hooks of tensors that are kept for gradients": torch_switches.kept_for_gradients,
    "how torch converts modules": torch_switches.conversions,
    "whether torch orders the products of einsum": lambda: torch.backends.opt_einsum.enabled,
    "whether gradients are computed in threads": torch._C._is_multithreading_enabled,
    "whether torch uses oneDNN": lambda: torch.backends.mkldnn.enabled,
    "how torch uses cuDNN and cuBLAS": _libraries,
    "which kinds of attention torch may use": _attention,
    "other switches of torch": torch_switches.other_switches,
    "what numpy does about errors, and its buffers": lambda: (np.geterr(), np.geterrcall(), np.getbufsize()),
    "how the processor rounds": _arithmetic,
    "what the processor stops at": _traps,
    "the processors it may use": _processors,
    "the working directory": os.getcwd,
    **PROCESS,
}
