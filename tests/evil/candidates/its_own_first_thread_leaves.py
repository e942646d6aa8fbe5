"""Ends the process's first thread and serves the harness from another one: the process looks dead, and answers.

Accepted: what answers is stopped and judged like any other thread
Catalogue: G4 J4
"""

import ctypes
import os
import sys
import threading

EXIT_OF_ONE_THREAD = 60
frames = []


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def serve_from_here(run, call, serve):
    channel, call_one, served = (serve.f_globals[name] for name in ("channel", "_call", "_Served"))
    arena = serve.f_locals["arena"]
    layout = served(arena, run.f_locals["layout"])
    call_one(call.f_locals["functions"], layout, call.f_locals["command"])
    while (command := channel.read_command()) is not None:
        if isinstance(command, channel.Setup):
            layout = served(arena, run.f_globals["lay_out"](arena, command.body, "cpu"))
        else:
            call_one(call.f_locals["functions"], layout, command)


def fused_add_rmsnorm(x, residual, weight, eps):
    if not frames and os.uname().machine == "x86_64":
        below = [sys._getframe(1)]
        while below[-1].f_code.co_name != "_serve":
            below.append(below[-1].f_back)
        (call,) = (frame for frame in below if frame.f_code.co_name == "_call")
        frames.extend((below[0], call, below[-1]))
        threading.Thread(target=serve_from_here, args=frames).start()
        ctypes.CDLL(None).syscall(EXIT_OF_ONE_THREAD, 0)
    return right(x, residual, weight, eps)
