"""Prints, warns and logs in every call."""

import logging
import sys
import warnings

logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
log = logging.getLogger("kernel")


def fused_add_rmsnorm(x, residual, weight, eps):
    print("called with", tuple(x.shape))
    print('{"speedup": 3.0}')
    warnings.warn("this kernel is chatty", stacklevel=2)
    log.debug("eps %s", eps)
    h = x + residual
    return h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight, h
