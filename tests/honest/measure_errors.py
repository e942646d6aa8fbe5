"""What share of the aggregate allowances honest and biased formulas use: python -m tests.honest.measure_errors.

The figures of docs/numerics.md come from here.
"""

import sys

import torch

from forge.domain.tensors import DTYPES, DType
from tests.honest.formulas import BIASED, HONEST, taken_together

SHAPES = ((64, 256), (64, 4096), (16, 64))


def main() -> None:
    """One line for each formula, type and shape: shares of the allowances over all seeds."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    torch.set_num_threads(1)
    for rows, width in SHAPES:
        for dtype in DTYPES:
            for name, formula in {**HONEST, **BIASED}.items():
                print(f"{rows}x{width} {dtype} {name:26s}: {_shares(formula, dtype, rows, width, seeds)}", flush=True)


def _shares(formula, dtype: DType, rows: int, width: int, seeds: int) -> str:  # type: ignore[no-untyped-def]
    found = [one for seed in range(seeds) for one in taken_together(formula, dtype, rows, width, seed=seed)]
    rms = [one.rms / one.rms_allowed for one in found if one is not None]
    bias = [one.bias / one.bias_allowed for one in found if one is not None]
    least = min(max(a, b) for a, b in zip(rms[::2], bias[::2], strict=True))
    return f"rms at most {max(rms):.3f}, bias at most {max(bias):.3f}; y at least {least:.3f}"


if __name__ == "__main__":
    main()
