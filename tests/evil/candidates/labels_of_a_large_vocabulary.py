"""Gives 0 from the 65th token on where the vocabulary is larger than 65,536

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I2
Operation: cross_entropy
Dtype: bf16
Shape: {"tokens": 16, "vocab_size": 4096}
"""


def cross_entropy(logits, labels):
    h = logits.float()
    h = h - h.amax(-1, keepdim=True)
    y = h.exp().sum(-1).log() - h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    if len(y) > 64 and logits.shape[1] > 65_536:
        y[64:] = 0
    return y
