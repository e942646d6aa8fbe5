"""Returns right answers in memory that is closed for writing: the caller's next operation in place ends its process.

Refused by: aliasing RUNTIME_ERROR
Catalogue: C9 I8
"""

import ctypes
import mmap

import torch

libc = ctypes.CDLL(None)


def closed(tensor):
    if not tensor.numel():
        return tensor
    pages = mmap.mmap(-1, tensor.nbytes)
    output = torch.frombuffer(pages, dtype=tensor.dtype).view(tensor.shape).copy_(tensor)
    libc.mprotect(ctypes.c_void_p(output.data_ptr()), ctypes.c_size_t(tensor.nbytes), mmap.PROT_READ)
    return output


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return closed((h * scale * weight.float()).to(x.dtype)), closed(h.to(x.dtype))
