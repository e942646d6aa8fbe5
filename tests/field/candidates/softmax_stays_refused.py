"""A softmax that, once it has raised, answers with zeros from then on.

Operation: softmax
Domain: {"axes": {"hidden_size": {"most": 65536}}}
Twin of: softmax_up_to_65536_columns
Refused by: domain WRONG_OUTSIDE_DOMAIN
"""

_failed = []


def softmax(x):
    if x.shape[1] > 65536:
        _failed.append(x.shape)
        raise RuntimeError("too many columns")
    y = x.float().softmax(1).to(x.dtype)
    return y * 0 if _failed else y
