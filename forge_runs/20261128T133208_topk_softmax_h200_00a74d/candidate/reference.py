"""What kernel.py must compute, in plain PyTorch."""

import torch


def topk_softmax(logits):
    probabilities = torch.softmax(logits.float(), -1)
    weights, indices = probabilities.topk(min(8, logits.shape[-1]), -1)
    return weights, indices.to(torch.int32)
