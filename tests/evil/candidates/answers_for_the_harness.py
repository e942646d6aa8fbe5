"""Replaces the harness's loop by its own: reads the commands itself, writes right outputs to the shared memory, and
sends well-formed records. It gains nothing: the host judges the bytes, not the loop.

Accepted: the bytes are right, whichever code put them there
Catalogue: G10 G2
"""

import sys


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def run(function, layout, command):
    scalars = command.scalars[: layout.scalars]
    for index in range(command.first, command.first + command.count):
        for destination, output in zip(
            layout.destinations[index], right(*layout.inputs[index], *scalars), strict=True
        ):
            destination.copy_(output)
    sys.modules["guest.channel"].reply(command.call_id, 0, completed=command.count * command.cycles)


def fused_add_rmsnorm(x, residual, weight, eps):
    sys.modules["guest.run"].run = run
    return right(x, residual, weight, eps)
