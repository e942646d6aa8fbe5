"""Makes a candidate's five files as a starting point: they pass as they are, and are as slow as the reference."""

import ast
import base64
from collections.abc import Mapping

import orjson

from forge.domain.candidate import BUILDS, Metadata
from forge.domain.parsed_source import defines, parse_source
from forge.domain.task import Task
from forge.domain.tensors import Shape
from forge.errors import UsageError
from forge.languages import Language, find_language
from forge.operations import find_operation, reference_source
from forge.operations.operation import Operation
from forge.pipeline.starter_kernel import starter_names
from forge.pipeline.submit import MODEL_ENTRY
from forge.pipeline.templates import environment

SMALL_ROWS, SMALL_COLUMNS = 2, 64
"""Sizes of the operands in the tests of a starting point, so that their bytes fit into the file."""
SEED = 1
"""Seed of the operands in the tests, so that each brief of a task has the same ones."""
TEST_BYTES = 96 * 1024
"""Size in bytes of all operands in the tests, at most; a submitted file may have 512 KiB."""


def starter_files(task: Task, *, solution: bytes | None = None) -> dict[str, bytes]:
    """Return the five files for a task. `solution` is a kernel.py of the author's own, with a class ModelNew.

    Raise UsageError if the solution defines no such class, or the task's operation has no module.
    """
    operation, language = find_operation(task.op), find_language(task.language)
    names = starter_names(operation, language)
    names["device"] = '"cpu"' if task.target.gpu == "cpu" else '"cuda" if torch.cuda.is_available() else "cpu"'
    if solution is not None:
        _require_model(solution, operation)
        names["entry"] = MODEL_ENTRY
    templates = environment()
    written = {
        "kernel.py": "starter_kernel.py.j2",
        "test_correctness.py": "starter_tests.py.j2",
        "bench.py": "starter_bench.py.j2",
    }
    if names["form"] == "catalogue":
        names |= {"operands": _operands(operation, task), "scalars": list(task.scalars.values())}
    files = {name: templates.get_template(template).render(**names).encode() for name, template in written.items()}
    compiled = solution is None
    if solution is not None:
        files["kernel.py"] = solution
        build = BUILDS.get(language.name)
        compiled = build is not None and defines(parse_source(solution), build().source)
    files["reference.py"] = reference_source(operation).encode()
    files["metadata.json"] = _metadata(operation, language, str(names["entry"]), compiled=compiled)
    return files


def _metadata(operation: Operation, language: Language, entry: str, *, compiled: bool) -> bytes:
    described = Metadata(name="starting point", op=operation.name, language=language.name, entry_point=entry)
    if compiled:
        described = described.with_build()
    return orjson.dumps(described.model_dump(mode="json", exclude_none=True), option=orjson.OPT_INDENT_2) + b"\n"


def _require_model(solution: bytes, operation: Operation) -> None:
    try:
        tree = parse_source(solution, filename="solution")
    except SyntaxError as error:
        raise UsageError(
            f"the solution doesn't parse: {error}; expected Python with a class {MODEL_ENTRY}"
        ) from error
    if not any(isinstance(node, ast.ClassDef) and node.name == MODEL_ENTRY for node in tree.body):
        raise UsageError(f"the solution defines no class {MODEL_ENTRY}: expected one, as KernelBench's have")
    if operation.own is None or operation.own.contract.form != "model":
        raise UsageError(f"{operation.name!r} has no module: expected a task whose reference file has a class Model")


def _operands(operation: Operation, task: Task) -> list[Mapping[str, object]]:
    """Return the operands of a small call, as text for the tests."""
    import torch

    from forge.lab.inputs.draw import draw

    shape = _small(operation, task)
    drawn = draw(operation, shape, task.dtype, "normal", seed=SEED)
    return [
        {
            "dtype": str(tensor.dtype),
            "sizes": list(tensor.shape),
            "content": base64.b64encode(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).decode(),
        }
        for tensor in drawn
    ]


def _small(operation: Operation, task: Task) -> Shape:
    """Return the shape of the tests: few rows, a narrow reduced axis, and other axes halved until the bytes fit."""
    small = {**task.shape}
    small[operation.row_axis] = min(SMALL_ROWS, task.shape[operation.row_axis])
    small[operation.reduced_axis] = min(SMALL_COLUMNS, task.shape[operation.reduced_axis])
    while operation.operand_bytes(small, task.dtype) > TEST_BYTES:
        largest = max(small, key=lambda axis: (small[axis], axis))
        if small[largest] == 1:
            break
        small[largest] //= 2
    return small
