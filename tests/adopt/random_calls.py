"""Random calls at and beyond the edges of a kernel's evidence, and a kernel that notes each call outside of it.

The kernel checks its operands itself, by a rule written out here once more: what it notes is a wrong use.
"""

import random
from dataclasses import dataclass, field

import torch

from forge.operations.rmsnorm import rmsnorm as reference
from tests.adopt.making import Kernel, kernel

LEAST, MOST = (1, 16), (64, 512)
"""Smallest and largest batch and hidden_size that the kernel of `NOTING` was verified at."""
NOTING = """
import torch

WRONG = []


def rmsnorm(x, weight, eps):
    rows, width = x.shape
    fits = (
        type(x) in (torch.Tensor, torch.nn.Parameter) and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32 and x.is_contiguous() and weight.is_contiguous()
        and 1 <= rows <= 64 and 16 <= width <= 512 and weight.shape == (width,) and 0 <= eps <= 1.000001
        and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))
    )
    if not fits:
        WRONG.append((tuple(x.shape), x.stride(), str(x.dtype), eps, type(x).__name__))
    wide = x.float()
    return (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float()).to(x.dtype)
"""
OF_ANOTHER_DEVICE = NOTING.replace("    if not fits:", "    fits = False\n    if not fits:")
"""Source of kernels for GPUs: each of its calls is a wrong use, since all calls are made on the processor."""
SIZES = ((0, 1, 2, 4, 63, 64, 65, 200), (0, 1, 15, 16, 17, 64, 511, 512, 513))
SCALARS = (1e-6, 1e-6, 1e-6, 1e-5, 0.0, 1.0, 1.000001, 1.1, -1e-6, float("nan"), float("inf"))
DTYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)


class Mine(torch.Tensor):
    """A subclass, which no kernel was verified with."""


@dataclass
class Outcome:
    """What random calls came to."""

    calls: int = 0
    wrong: list[str] = field(default_factory=list)


def of_other_devices() -> list[Kernel]:
    """Kernels for GPUs in the same registry, at the same shapes."""
    return [kernel("rmsnorm", OF_ANOTHER_DEVICE, gpu=gpu) for gpu in ("h100", "h200", "a100")]


def laid_out(rng: random.Random, sizes: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of one of many memory layouts."""
    count = 1
    for size in sizes:
        count *= size
    match rng.choice(["contiguous"] * 4 + ["offset", "rows", "transposed", "expanded", "overlapping", "negative"]):
        case "offset":
            found = torch.randn(count + 3)[rng.choice([1, 2, 3]) :][:count].view(sizes)
        case "rows":
            found = torch.randn(*sizes[:-1], sizes[-1] + 5)[..., : sizes[-1]]
        case "transposed" if len(sizes) == 2:
            found = torch.randn(sizes[1], sizes[0]).t()
        case "expanded" if len(sizes) == 2:
            found = torch.randn(1, sizes[1]).expand(sizes)
        case "overlapping" if len(sizes) == 2 and count:
            found = torch.randn(count + sizes[1]).as_strided(sizes, (1, 1))
        case "negative":
            found = torch.randn(sizes).flip(0)
        case _:
            found = torch.randn(sizes)
    return found.to(dtype)


def drawn(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, float]:
    """The arguments of one call."""
    rows, width = rng.choice(SIZES[0]), rng.choice(SIZES[1])
    dtype = rng.choice(DTYPES)
    x = laid_out(rng, (rows, width) if rng.random() < 0.95 else (rows, 1, width), dtype)
    odd_width = width if rng.random() < 0.95 else rng.choice(SIZES[1])
    weight = laid_out(rng, (odd_width,), dtype if rng.random() < 0.95 else rng.choice(DTYPES))
    if rng.random() < 0.05:
        x = x.as_subclass(Mine)
    if rng.random() < 0.05:
        x = x.detach().requires_grad_()
    if rng.random() < 0.03:
        weight = torch.nn.Parameter(weight, requires_grad=rng.random() < 0.5)
    if rng.random() < 0.03 and type(x) is torch.Tensor and weight.shape == x.shape[-1:]:
        x, weight = x.to("meta"), weight.to("meta")
    return x, weight, rng.choice(SCALARS)


def run(calls: int, seed: int) -> Outcome:
    """Make random calls of `torch.ops.forge.rmsnorm`, and compare each with the reference."""
    rng, outcome = random.Random(seed), Outcome()
    torch.manual_seed(seed)
    for number in range(calls):
        x, weight, eps = drawn(rng)
        with torch.set_grad_enabled(rng.random() < 0.5):
            expected, found = answer(reference, x, weight, eps), answer(torch.ops.forge.rmsnorm, x, weight, eps)
        outcome.calls += 1
        if isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor):
            same = expected.shape == found.shape and expected.dtype == found.dtype
            if found.device.type == "meta" or expected.device.type == "meta":
                outcome.wrong += [] if same and found.device == expected.device else [f"call {number}: a device"]
                continue
            wide = torch.float64
            loose = (
                {"rtol": 2e-2, "atol": 1e-3} if expected.dtype in (torch.float16, torch.bfloat16) else {"rtol": 1e-4}
            )
            if not (same and torch.allclose(found.to(wide), expected.to(wide), equal_nan=True, **loose)):
                outcome.wrong.append(f"call {number}: {tuple(x.shape)} {x.dtype} {eps}: another answer")
        elif type(expected) is not type(found):
            outcome.wrong.append(f"call {number}: {tuple(x.shape)} {tuple(weight.shape)}: {expected!r} and {found!r}")
    return outcome


def answer(function, *arguments) -> object:
    """The answer, or the exception's place in it."""
    try:
        found = function(*arguments)
        return found.detach().as_subclass(torch.Tensor)
    except (RuntimeError, TypeError):
        return None
