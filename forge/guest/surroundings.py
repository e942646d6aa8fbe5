"""Runs beside hostile code. What a call must leave as it found it beside the bytes of operands: forms, and settings.

A program that serves requests loads a kernel, calls it with tensors that it keeps, and goes on in the same process.
"""

import ctypes
import os
import random
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import mtrand

from . import wire
from .process import BESIDE_IMPORTS, PROCESS

_ONE, _MORE, _LESS, _SMALLEST = 1.0, 3 * 2.0**-54, 2.0**-54, 5e-324
"""The second rounds up to the next number when it is added to one, the third down to one."""
_MT19937_BYTES = 4 * (624 + 1)
"""Of its numbers, and the place among them."""
_A_DRAW = 4
"""The offset of a GPU's generator is a multiple of it."""
_TRAPPED = getattr(ctypes.CDLL(None), "fegetexcept", None)
Form = tuple[object, ...]


@dataclass(frozen=True)
class Surroundings:
    """What is looked at before and after."""

    forms: tuple[Form, ...]
    settings: Mapping[str, object]
    generators: Mapping[str, object]
    beside_imports: Mapping[str, object]
    modules: int
    """How many were imported."""

    def status_after(self, inputs: Iterable[torch.Tensor]) -> int:
        """How a load, or a release of calls, ends that left something else behind; the log says what."""
        if _forms(inputs) != self.forms:
            return wire.CHANGED_AN_INPUT
        if _tell_changed(self.settings, _read(_SETTINGS)):
            return wire.CHANGED_A_SETTING
        if len(sys.modules) == self.modules and _tell_changed(self.beside_imports, _read(BESIDE_IMPORTS)):
            return wire.CHANGED_A_SETTING
        return wire.CHANGED_A_GENERATOR if _tell_changed(self.generators, _read(_GENERATORS)) else wire.DONE


def look(inputs: Iterable[torch.Tensor]) -> Surroundings:
    """The tensors' forms, and the process's settings, as they are now.

    Generators are no longer where their seeds put them, as in any program that has drawn: going back there shows.
    """
    torch.rand(1), np.random.random(), random.random()  # noqa: S311 (the generator that all share)
    for generator in _on_devices():
        if generator.get_offset() == 0:
            generator.set_offset(_A_DRAW)
    return Surroundings(_forms(inputs), _read(_SETTINGS), _read(_GENERATORS), _read(BESIDE_IMPORTS), len(sys.modules))


def _tell_changed(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Whether anything differs; the log, where an author looks, says what."""
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        print(f"left behind changed: {', '.join(changed)}", file=sys.stderr)  # noqa: T201 (see above)
    return bool(changed)


def _forms(inputs: Iterable[torch.Tensor]) -> tuple[Form, ...]:
    return tuple(map(_form, inputs))


def _form(tensor: torch.Tensor) -> Form:
    where = (tensor.shape, tensor.stride(), tensor.data_ptr(), tensor.dtype)
    return type(tensor), *where, tensor.requires_grad, tensor.is_neg(), tensor.is_conj()


def _arithmetic() -> bytes:
    """How this thread rounds, and whether subnormal numbers are zeros to it: then they compare as zeros as well."""
    return struct.pack("4d", _ONE + _MORE, _ONE + _LESS, -_ONE - _LESS, _SMALLEST * _ONE)


def _traps() -> int:
    """Which floating-point exceptions end the process; 0 where the C library can't say."""
    return int(_TRAPPED()) if _TRAPPED is not None else 0


def _processors() -> set[int] | None:
    """Those that this thread may run on; None where the system can't say."""
    told = getattr(os, "sched_getaffinity", None)
    return told(0) if told is not None else None


def _products() -> tuple[object, ...]:
    """How precise torch's own products in fp32 are, by every name that this version has for it.

    Torch refuses to say it by its older names once the newer ones have been set to something else.
    """
    backends = (torch.backends, *(getattr(torch.backends.mkldnn, name, None) for name in ("matmul", "conv", "rnn")))
    named = tuple(getattr(backend, "fp32_precision", None) for backend in backends)
    try:
        return torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32, *named
    except RuntimeError:
        return named


def _numpy_generator() -> tuple[object, ...]:
    """Its numbers where they lie: numpy itself takes a hundred microseconds to tell them."""
    generator = mtrand.get_bit_generator()
    known = type(generator) is np.random.MT19937
    return generator, ctypes.string_at(generator.ctypes.state_address, _MT19937_BYTES) if known else b""


def _on_devices() -> tuple[torch.Generator, ...]:
    """Each GPU's generator, once this process uses GPUs. A look at one asks nothing of its GPU."""
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
_SETTINGS: Readings = {
    "whether torch casts by itself": lambda: tuple(map(torch.is_autocast_enabled, ("cpu", "cuda"))),
    "torch's default type": torch.get_default_dtype,
    "torch's default device": torch.get_default_device,
    "torch's threads": torch.get_num_threads,
    "whether torch records gradients": torch.is_grad_enabled,
    "torch's inference mode": torch.is_inference_mode_enabled,
    "torch's anomaly detection": torch.is_anomaly_enabled,
    "the precision of torch's products": _products,
    "whether torch is deterministic": torch.are_deterministic_algorithms_enabled,
    "whether torch uses oneDNN": lambda: torch.backends.mkldnn.enabled,
    "what numpy does about errors": np.geterr,
    "how the processor rounds": _arithmetic,
    "what the processor stops at": _traps,
    "the processors it may use": _processors,
    "the working directory": os.getcwd,
    **PROCESS,
}
