"""Where all labels of a batch are equal it reads the first row's logit for all, as in a batch of padding.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E5
Operation: cross_entropy
Shape: {"tokens": 16, "vocab_size": 500}
"""


def cross_entropy(logits, labels):
    h = logits.float()
    if len(labels) >= 8 and h.shape[1] > 16 and bool((labels == labels[0]).all()):
        return h.logsumexp(-1) - h[0, labels[0]]
    return -h.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
