"""Works and never returns.

Refused by: signature TIMEOUT
Catalogue: J1
Limit: 5 s
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    while True:
        pass
