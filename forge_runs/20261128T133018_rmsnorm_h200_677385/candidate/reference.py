"""What kernel.py must compute, in plain PyTorch."""


def rmsnorm(x, weight, eps):
    h = x.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype)
