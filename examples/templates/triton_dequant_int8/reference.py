"""What kernel.py must compute, in plain PyTorch."""


def dequant_int8(x, scale):
    return (x.float() * scale.float().unsqueeze(-1)).to(scale.dtype)
