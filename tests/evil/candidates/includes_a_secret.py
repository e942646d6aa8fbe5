"""C++ that includes and embeds files of the host: the compiler finds none of them.

Refused by: build COMPILE_ERROR
Catalogue: G18
Language: cpp
"""

CPP_SOURCE = r"""
#include "/proc/1/environ"
asm(".incbin \"/etc/shadow\"");
"""


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, x
