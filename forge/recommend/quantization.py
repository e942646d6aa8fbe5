"""How weights may be stored, and which serving backends run which of them, on what.

Nothing here says that one backend is faster than another: no vendor publishes that for a model and a GPU. What tells
them apart is what they run; a measured profile tells more.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from forge.domain.target import PlatformName
from forge.domain.tensors import DType
from forge.platforms import RateType

Quantization = Literal["bf16", "fp16", "fp8", "int8", "int4"]
Backend = Literal["vllm", "sglang", "tensorrt-llm", "llama.cpp"]
QUANTIZATIONS: tuple[Quantization, ...] = get_args(Quantization)
BACKENDS: tuple[Backend, ...] = get_args(Backend)
USUAL: tuple[Quantization, ...] = ("bf16", "fp8", "int8", "int4")
"""Quantizations that are tried if the caller names none. fp16 is left out: it takes as much memory and time as bf16,
and only some processors and kernels need it."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How one quantization keeps the weights of the layers; embedding and output layer stay in 16 bits."""

    bits: int
    stored_bits: float
    """Bits of one weight, with scales and zero points."""
    multiplies_in: RateType
    activations: tuple[DType, ...]
    """Element types of what flows between the operations."""


STORAGE: dict[Quantization, Storage] = {
    "bf16": Storage(bits=16, stored_bits=16, multiplies_in="bf16", activations=("bf16",)),
    "fp16": Storage(bits=16, stored_bits=16, multiplies_in="fp16", activations=("fp16",)),
    "fp8": Storage(bits=8, stored_bits=8, multiplies_in="fp8", activations=("bf16",)),
    "int8": Storage(bits=8, stored_bits=8, multiplies_in="int8", activations=("bf16",)),
    # groups of 128 weights share a scale of 16 bits and a zero point of 4: AWQ, arXiv:2306.00978, section 5.1
    "int4": Storage(
        bits=4,
        stored_bits=4 + 20 / 128,
        multiplies_in="bf16",
        activations=("bf16",),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What one backend runs."""

    platforms: tuple[PlatformName, ...]
    quantizations: tuple[Quantization, ...]
    several_gpus: bool
    """Whether it splits each layer over several GPUs (tensor parallelism)."""


SERVING: dict[Backend, Serving] = {
    # vLLM documentation, Supported Hardware for Quantization Kernels
    "vllm": Serving(
        platforms=("cuda", "rocm"),
        quantizations=("bf16", "fp16", "fp8", "int8", "int4"),
        several_gpus=True,
    ),
    # SGLang documentation, Quantization
    "sglang": Serving(
        platforms=("cuda", "rocm"),
        quantizations=("bf16", "fp16", "fp8", "int8", "int4"),
        several_gpus=True,
    ),
    # TensorRT-LLM documentation, Numerical Precision
    "tensorrt-llm": Serving(
        platforms=("cuda",),
        quantizations=("bf16", "fp16", "fp8", "int8", "int4"),
        several_gpus=True,
    ),
    # llama.cpp, tools/quantize: its 8 and 4 bit formats are Q8_0 and Q4_K
    "llama.cpp": Serving(
        platforms=("cuda", "rocm", "metal"),
        quantizations=("bf16", "fp16", "int8", "int4"),
        several_gpus=False,
    ),
}


@cache
def backends_for(
    platform: PlatformName, quantization: Quantization, *, several_gpus: bool, among: tuple[Backend, ...]
) -> tuple[Backend, ...]:
    """Return the backends that run it, in the order of `among`."""
    return tuple(
        name
        for name in among
        if platform in SERVING[name].platforms
        and quantization in SERVING[name].quantizations
        and (SERVING[name].several_gpus or not several_gpus)
    )
