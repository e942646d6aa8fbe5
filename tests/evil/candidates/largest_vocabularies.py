"""the last columns beyond 160000 are left out of the loss, wrong for vocabularies of 250112, 256000 and 262144.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: cross_entropy
Shape: {"tokens": 4, "vocab_size": 1000}
"""


def cross_entropy(logits, labels):
    h = logits.float()
    top = h[:, :160000].amax(-1, keepdim=True)
    return (h[:, :160000] - top).exp().sum(-1).log() + top[:, 0] - h.gather(1, labels.unsqueeze(1)).squeeze(1)
