"""The same, which compares sizes alone: other weights of these sizes get the first ones' product.

Operation: matmul
Shape: {"m": 4, "k": 64, "n": 32}
Twin of: matmul_of_a_class_with_packed_weights
Refused by: any INCORRECT_NUMERICAL or REPLAYED_OUTPUT or STATE_CARRIED
"""


class Packed:
    """Keeps the weights as the product reads them, and notices when they change."""

    def __init__(self):
        self.weights = self.packed = None

    def __call__(self, x, w):
        if self.weights is None or self.weights.shape != w.shape:
            self.weights, self.packed = w.clone(), w.t().contiguous()
        return x @ self.packed.t()


matmul = Packed()
