"""A class that packs its weights once and compares them before it uses them again.

Operation: matmul
Shape: {"m": 4, "k": 64, "n": 32}
Accepted: packed weights are used only for the weights that they were made of.
"""

import torch


class Packed:
    """Keeps the weights as the product reads them, and notices when they change."""

    def __init__(self):
        self.weights = self.packed = None

    def __call__(self, x, w):
        if self.weights is None or self.weights.shape != w.shape or not torch.equal(self.weights, w):
            self.weights, self.packed = w.clone(), w.t().contiguous()
        return x @ self.packed.t()


matmul = Packed()
