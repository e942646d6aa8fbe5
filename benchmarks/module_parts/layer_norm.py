import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm(x, w, b, y, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    row = tl.load(x + tl.program_id(0) * n + columns, mask=inside, other=0.0)
    mean = tl.sum(row, 0) / n
    centred = tl.where(inside, row - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / n + 1e-5)
    made = centred * scale * tl.load(w + columns, mask=inside, other=0.0) + tl.load(
        b + columns, mask=inside, other=0.0
    )
    tl.store(y + tl.program_id(0) * n + columns, made, mask=inside)


def layer_norm(in_0, in_1, in_2):
    made = torch.empty(in_0.shape, dtype=in_0.dtype, device=in_0.device)
    n = in_0.shape[-1]
    _layer_norm[(in_0.numel() // n,)](in_0, in_1, in_2, made, n, BLOCK=triton.next_power_of_2(n))
    return made
