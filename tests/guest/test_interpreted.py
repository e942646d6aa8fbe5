"""Triton's interpreter, as guests prepare it, computes with bf16 as a GPU does: products, sums and roundings."""

import json
import os
import subprocess
import sys

PROGRAM = """
import importlib.util, json, sys
import torch, triton
import triton.language as tl

spec = importlib.util.spec_from_file_location("forge.guest.language", sys.argv[1])
language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(language)
language.prepare({"candidate_directory": sys.argv[2]})
sys.path.insert(0, sys.argv[2])
from products import product

x, w = (torch.randn(16, 16, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
worst = {}
for kind in (torch.bfloat16, torch.float16, torch.float32):
    y, expected = torch.empty(16, 16), x.to(kind).double() @ w.to(kind).double()
    product[(1,)](x.to(kind), w.to(kind), y)
    worst[str(kind)] = float((y.double() - expected).abs().max())
print(json.dumps(worst))
"""
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def product(x, w, y):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(y + at, tl.dot(tl.load(x + at), tl.load(w + at), input_precision="ieee"))
"""


def test_a_product_of_tiles_is_right_in_every_type(tmp_path):
    (tmp_path / "products.py").write_text(KERNEL)
    from forge.languages import find_language

    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(find_language("triton").guest_file), str(tmp_path)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    worst = json.loads(told.stdout)
    assert set(worst) == {"torch.bfloat16", "torch.float16", "torch.float32"}
    assert max(worst.values()) < 1e-5


CONDITIONS = """
import importlib.util, json, os, sys
import torch, triton
import triton.language as tl

spec = importlib.util.spec_from_file_location("forge.guest.language", sys.argv[1])
language = importlib.util.module_from_spec(spec)
spec.loader.exec_module(language)
language.prepare({"candidate_directory": sys.argv[2]})
told = {}
for place, body in enumerate(json.loads(sys.argv[3])):
    name = f"asked_{place}"
    with open(f"{sys.argv[2]}/{name}.py", "w") as file:
        file.write("import triton\\nimport triton.language as tl\\n\\n\\n@triton.jit\\ndef asked(y):\\n")
        file.write("    at = tl.arange(0, 16)\\n")
        file.writelines(f"    {line}\\n" for line in body.split("\\n"))
        file.write("    tl.store(y + tl.arange(0, 16), at)\\n")
    sys.path.insert(0, sys.argv[2])
    try:
        importlib.import_module(name).asked[(1,)](torch.zeros(16, dtype=torch.int32))
        told[body] = "ran"
    except Exception as error:
        told[body] = str(error)
print(json.dumps(told))
"""
REFUSED = (
    *("if at < 8:\n    at += 0", "if at:\n    at += 0", "while at < 0:\n    at += 1"),
    *("at = at if at < 8 else at + 0", "if (at < 8) and (at > 2):\n    at += 0", "if 0 <= at < 8:\n    at += 0"),
    *("if not (at < 8):\n    at += 0", "if not (at > 8 or at < 2):\n    at += 0"),
)
TAKEN = (
    *(
        "inside = (at < 8) and (at > 2)",
        "inside = (at < 8) or (at > 2)",
        "inside = 0 <= at < 8",
        "inside = not (at < 8)",
    ),
    *("if tl.sum(at) > 3:\n    at += 0", "if tl.program_id(0) == 0:\n    at += 0", "assert at < 16"),
    "at = tl.where(at < 8, at, at)",
)
"""Statements whose conditions Triton's compiler refuses, and takes: `CodeGenerator.visit_If` and `visit_BoolOp`."""


def test_a_block_decides_no_branch_as_in_the_compiler(tmp_path):
    from forge.languages import find_language

    guest = str(find_language("triton").guest_file)
    told = subprocess.run(
        [sys.executable, "-c", CONDITIONS, guest, str(tmp_path), json.dumps([*REFUSED, *TAKEN])],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(told.stdout.splitlines()[-1])
    assert {body for body, said in found.items() if "truth of a block" in said} == set(REFUSED)
    assert {body for body, said in found.items() if said == "ran"} == set(TAKEN)


COMBINED = {
    "at = tl.where((at < 8) and (at > 2), 1, 0)": [0, 0, 0, *[1] * 5, *[0] * 8],
    "at = tl.where((at < 2) or (at > 5) and (at < 8), 1, 0)": [1, 1, 0, 0, 0, 0, 1, 1, *[0] * 8],
    "at = tl.where(not (at < 8), 1, 0)": [*[0] * 8, *[1] * 8],
    "at = tl.where(tl.program_id(0) == 0 and at < 8, 1, 0)": [*[1] * 8, *[0] * 8],
    "at = tl.where(at < 8 and tl.program_id(0) == 1, 1, 0)": [0] * 16,
    "at = tl.where(at < 8 or tl.program_id(0) == 0, 1, 0)": [1] * 16,
    "some = None\nif some is not None and some > 3:\n    at += 1": list(range(16)),
}
"""What Triton's compiler makes of blocks: `CodeGenerator.visit_BoolOp` and `visit_UnaryOp`."""


def test_blocks_are_combined_by_element_as_in_the_compiler(tmp_path):
    from forge.languages import find_language

    guest = str(find_language("triton").guest_file)
    program = CONDITIONS.replace(
        'importlib.import_module(name).asked[(1,)](torch.zeros(16, dtype=torch.int32))\n        told[body] = "ran"',
        "y = torch.zeros(16, dtype=torch.int32)\n        importlib.import_module(name).asked[(1,)](y)\n"
        "        told[body] = y.tolist()",
    )
    numbers = "at = tl.where(at and at < 8, 1, 0)"
    told = subprocess.run(
        [sys.executable, "-c", program, guest, str(tmp_path), json.dumps([*COMBINED, numbers])],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(told.stdout.splitlines()[-1])
    assert "take blocks of truth values" in found.pop(numbers)
    assert found == COMBINED
