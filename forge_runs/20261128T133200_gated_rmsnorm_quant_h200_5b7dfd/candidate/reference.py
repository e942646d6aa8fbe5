"""What kernel.py must compute, in plain PyTorch."""

import torch


def gated_rmsnorm_quant(x, gate, weight, eps):
    h, g = x.float(), gate.float()
    h = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * (g * torch.sigmoid(g)) * weight.float()
    scale = h.abs().amax(-1).clamp(min=1e-10) / 127.0
    return (h / scale.unsqueeze(-1)).round().clamp(-127.0, 127.0).to(torch.int8), scale
