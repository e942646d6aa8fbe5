"""Computes tanh from exponentials, which overflow, where the gate is not aligned to 16 bytes.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: geglu_tanh
"""


def geglu_tanh(gate, up):
    g = gate.float()
    z = 0.7978845608028654 * (g + 0.044715 * g * g * g)
    if gate.data_ptr() % 16:
        e = (2 * z).exp()
        t = (e - 1) / (e + 1)
    else:
        t = z.tanh()
    return (0.5 * g * (1 + t) * up.float()).to(gate.dtype)
