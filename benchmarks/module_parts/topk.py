import torch
import triton
import triton.language as tl

CHOSEN = 2


@triton.jit
def _topk(x, values, places, n, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    left = columns < n
    found = tl.load(x + row * n + columns, mask=left, other=float("-inf"))
    for place in tl.static_range(COUNT):
        is_nan = (found != found) & left  # noqa: PLR0124  # this is how Triton asks for a NaN
        rank = tl.where(is_nan, float("inf"), tl.where(left, found, float("-inf")))
        highest = tl.max(rank, 0)
        fitting = left & (rank == highest)
        if tl.max(is_nan.to(tl.int32), 0) > 0:
            fitting = is_nan
        chosen = tl.min(tl.where(fitting, columns, BLOCK), 0)
        value = tl.sum(tl.where(columns == chosen, found, 0.0), 0)
        tl.store(values + row * COUNT + place, value)
        tl.store(places + row * COUNT + place, chosen.to(tl.int64))
        left = left & (columns != chosen)


def topk(in_0):
    sizes = (*in_0.shape[:-1], CHOSEN)
    values = torch.empty(sizes, dtype=in_0.dtype, device=in_0.device)
    places = torch.empty(sizes, dtype=torch.int64, device=in_0.device)
    n = in_0.shape[-1]
    _topk[(in_0.numel() // n,)](in_0, values, places, n, COUNT=CHOSEN, BLOCK=triton.next_power_of_2(n))
    return values, places
