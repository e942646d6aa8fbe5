"""Every operation of the catalogue keeps its word: reference, oracle, bound, cost, source text."""

from collections.abc import Callable
from itertools import product
from typing import get_args

import pytest
import torch

from forge.domain.input_kind import REFERENCE_KINDS, InputKind
from forge.domain.policy import Policy
from forge.domain.relation import Additive, RowsIndependent, Scaled
from forge.domain.tensors import DTYPES, ITEMSIZE_BYTES, Chance, DType, Parts
from forge.lab.inputs.draw import draw, torch_dtype
from forge.lab.judge import PATTERNED_KINDS, SPECIAL_KINDS, judge, judge_specials, reference_call
from forge.operations import OPERATIONS, find_operation, reference_source, tolerance_digest, vendor_source
from forge.operations.operation import Expectation, Operation

KINDS = tuple(kind for kind in get_args(InputKind) if kind not in (*SPECIAL_KINDS, *REFERENCE_KINDS))
SIZES = ((1, 1), (3, 2), (2, 257), (5, 1024), (0, 8), (2, 4097))
POLICY = Policy()
CASES = [(name, dtype) for name, operation in OPERATIONS.items() for dtype in operation.dtypes]
Tensors = tuple[torch.Tensor, ...]


def shape_of(operation: Operation, rows: int, reduced: int) -> dict[str, int]:
    sizes = dict.fromkeys(operation.axes, 2)
    return {**sizes, operation.row_axis: rows, operation.reduced_axis: reduced}


def rows_of(operation: Operation) -> int:
    """Few, but where a row's answer is one position, which says less than a row of numbers."""
    return 256 if any(isinstance(spec.values, Chance) for spec in operation.inputs) else 4


def outputs_of(operation: Operation, inputs: Tensors, scalars: tuple[float, ...]) -> Tensors:
    return reference_call.outputs_of(operation, operation.reference, inputs, scalars)


def all_within(
    operation: Operation,
    got: Tensors,
    inputs: Tensors,
    dtype: DType,
    *,
    patterned: bool = False,
    integers: bool = False,
) -> bool:
    scalars = tuple(operation.scalars.values())
    expectations = operation.oracle(*inputs, *scalars)
    baselines = outputs_of(operation, inputs, scalars)
    return all(
        one.shape == baseline.shape
        and one.dtype == baseline.dtype
        and judge(
            one,
            expected,
            baseline,
            dtype=spec.rounded_to(dtype),
            policy=POLICY,
            patterned=patterned,
            integers=integers,
        ).within
        for spec, one, expected, baseline in zip(operation.outputs, got, expectations, baselines, strict=True)
    )


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_reference_is_within_its_own_bound(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    kinds = [kind for kind in KINDS if kind != "masked" or operation.masks]
    for kind, (seed, (rows, reduced)) in product(kinds, enumerate(SIZES)):
        shape, asked = shape_of(operation, rows, reduced), f"{kind} values, {rows} rows of {reduced}"
        inputs = draw(operation, shape, dtype, kind, seed=seed)
        outputs = outputs_of(operation, inputs, tuple(operation.scalars.values()))
        assert [tuple(o.shape) for o in outputs] == [spec.sizes(shape) for spec in operation.outputs], asked
        assert [o.dtype for o in outputs] == [torch_dtype(s.element_type(dtype)) for s in operation.outputs], asked
        assert all_within(operation, outputs, inputs, dtype, patterned=kind in PATTERNED_KINDS), asked


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_reference_and_variants_are_exact_on_integers_where_the_operation_says_so(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    scalars = tuple(operation.scalars.values())
    for seed, (rows, reduced) in enumerate(SIZES):
        inputs = draw(operation, shape_of(operation, rows, reduced), dtype, "integers", seed=seed)
        for function in (operation.reference, *operation.variants.values()):
            outputs = reference_call.outputs_of(operation, function, inputs, scalars)
            assert all_within(operation, outputs, inputs, dtype, integers=True)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_reference_and_variants_agree_on_specials(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    if operation.specials == "unspecified":
        return
    scalars = tuple(operation.scalars.values())
    for kind in sorted(SPECIAL_KINDS):
        inputs = draw(operation, shape_of(operation, 40, 64), dtype, kind, seed=1)
        expectations, baselines = operation.oracle(*inputs, *scalars), outputs_of(operation, inputs, scalars)
        for function in (operation.reference, *operation.variants.values()):
            outputs = reference_call.outputs_of(operation, function, inputs, scalars)
            for spec, got, expected, baseline in zip(
                operation.outputs, outputs, expectations, baselines, strict=True
            ):
                own, asked = spec.rounded_to(dtype), f"{kind} values, {function.__name__}, {spec.name}"
                if not isinstance(expected, Expectation):
                    assert judge(got, expected, baseline, dtype=own, policy=POLICY).within, asked
                    continue
                assert judge_specials(got, expected, baseline, dtype=own, policy=POLICY).within, asked
                swallowed = judge_specials(got.nan_to_num(), expected, baseline, dtype=own, policy=POLICY).within
                assert swallowed == bool(expected.value.isfinite().all()), asked


@pytest.mark.parametrize("name", OPERATIONS)
def test_relations_name_the_operations_own_operands(name: str) -> None:
    operation = find_operation(name)
    inputs, outputs = ({spec.name for spec in specs} for specs in (operation.inputs, operation.outputs))
    for relation in operation.relations:
        match relation:
            case Scaled():
                assert set(relation.inputs) <= inputs
                assert set(relation.scalars) <= set(operation.scalars)
                assert set(relation.outputs) == outputs
            case Additive():
                assert relation.input in inputs
                assert set(relation.outputs) <= outputs
            case _:
                assert operation.row_axis in operation.axes


@pytest.mark.parametrize("name", OPERATIONS)
def test_scaled_and_additive_relations_hold_for_the_oracle(name: str) -> None:
    operation = find_operation(name)
    inputs = draw(operation, shape_of(operation, 5, 64), "fp32", "normal", seed=4)
    names = [spec.name for spec in operation.inputs]
    scalars = tuple(operation.scalars.values())

    def oracle(inputs: Tensors, scalars: tuple[float, ...]) -> dict[str, torch.Tensor]:
        values = (one.value for one in operation.oracle(*inputs, *scalars))
        return dict(zip((spec.name for spec in operation.outputs), values, strict=True))

    for relation in operation.relations:
        if isinstance(relation, Scaled):
            scaled = tuple(
                t * 2.0 ** relation.inputs[n] if n in relation.inputs else t
                for n, t in zip(names, inputs, strict=True)
            )
            changed = tuple(
                value * 2.0 ** relation.scalars.get(n, 0) for n, value in zip(operation.scalars, scalars, strict=True)
            )
            for output, value in oracle(scaled, changed).items():
                back = value * 2.0 ** -relation.outputs[output] if relation.outputs[output] else value
                assert torch.allclose(back, oracle(inputs, scalars)[output], rtol=1e-12)
        if isinstance(relation, Additive):
            place = names.index(relation.input)
            mask = torch.arange(inputs[place].numel()).view(inputs[place].shape) % 3 == 0
            parts = [
                oracle((*inputs[:place], inputs[place] * one, *inputs[place + 1 :]), scalars) for one in (mask, ~mask)
            ]
            for output in relation.outputs:
                summed = parts[0][output] + parts[1][output]
                assert torch.allclose(summed, oracle(inputs, scalars)[output], rtol=1e-12)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_reference_leaves_its_inputs_alone(name: str) -> None:
    operation = find_operation(name)
    inputs = draw(operation, shape_of(operation, 3, 64), "fp32", "normal", seed=1)
    before = [tensor.clone() for tensor in inputs]
    outputs = outputs_of(operation, inputs, tuple(operation.scalars.values()))
    assert all(bool((now == then).all()) for now, then in zip(inputs, before, strict=True))
    assert not {o.data_ptr() for o in outputs} & {i.data_ptr() for i in inputs}


def one_precision_lower(operation: Operation, inputs: Tensors, dtype: DType) -> Tensors:
    """Inputs, and outputs that are floats of more than eight bits, rounded."""
    lower = torch.bfloat16 if dtype == "fp32" else torch.float8_e4m3fn

    def rounded(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(lower).to(tensor.dtype) if tensor.is_floating_point() and tensor.itemsize > 1 else tensor

    coarse = all(spec.element_type(dtype) not in DTYPES for spec in operation.outputs)
    asked = tuple(map(rounded, inputs)) if coarse else inputs
    return tuple(map(rounded, outputs_of(operation, asked, tuple(operation.scalars.values()))))


def times(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """Whole numbers and eight bits don't show a hundredth: twenty-five of them there."""
    coarse = tensor.itemsize == 1 or not tensor.is_floating_point()
    return (tensor.double() * (1.25 if coarse else factor)).to(tensor.dtype)


def one_changed(outputs: Tensors, value: Callable[[torch.Tensor], torch.Tensor]) -> Tensors:
    """One element of the first output, in its second row."""
    changed = outputs[0].clone()
    row = changed[1:2].view(-1)
    place = min(7, row.numel() - 1)
    row[place] = value(row[place].double()).to(changed.dtype)
    return (changed, *outputs[1:])


def unwritten(outputs: Tensors) -> Tensors:
    """What the arena's poison looks like where nothing was written: NaN, or a number that is no answer."""
    if outputs[0].is_floating_point():
        return one_changed(outputs, lambda element: element * float("nan"))
    poison = torch.iinfo(outputs[0].dtype).min
    return one_changed(outputs, lambda element: torch.full_like(element, poison))


def first_row_only(outputs: Tensors) -> Tensors:
    return tuple(torch.cat([o[:1], torch.zeros_like(o[1:])]) for o in outputs)


MUTANTS: dict[str, Callable[[Operation, Tensors, DType, Tensors], Tensors]] = {
    "zeros": lambda _, __, ___, outputs: tuple(torch.zeros_like(o) for o in outputs),
    "copy of the input": lambda _, inputs, __, outputs: tuple(inputs[0].clone() for _ in outputs),
    "permuted rows": lambda _, __, ___, outputs: tuple(o.roll(1, 0) for o in outputs),
    "one per cent more": lambda _, __, ___, outputs: tuple(times(o, 1.01) for o in outputs),
    "one precision lower": lambda operation, inputs, dtype, _: one_precision_lower(operation, inputs, dtype),
    "first row only": lambda _, __, ___, outputs: first_row_only(outputs),
    "one element off": lambda _, __, ___, outputs: one_changed(
        outputs, lambda element: element + 0.05 * outputs[0][1].double().abs().max()
    ),
    "one element unwritten": lambda _, __, ___, outputs: unwritten(outputs),
}


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_mutant_is_refused(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    inputs = draw(operation, shape_of(operation, rows_of(operation), 256), dtype, "normal", seed=3)
    outputs = outputs_of(operation, inputs, tuple(operation.scalars.values()))
    assert all_within(operation, outputs, inputs, dtype)
    for mutant, change in MUTANTS.items():
        assert not all_within(operation, change(operation, inputs, dtype, outputs), inputs, dtype), mutant


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_answer_to_the_last_question_is_refused(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    earlier, now = (
        draw(operation, shape_of(operation, rows_of(operation), 256), dtype, "normal", seed=seed) for seed in (1, 2)
    )
    assert not all_within(operation, outputs_of(operation, earlier, tuple(operation.scalars.values())), now, dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_scalar_left_out_is_refused_where_it_matters(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    inputs = draw(operation, shape_of(operation, rows_of(operation), 256), dtype, "small", seed=5)
    for position in range(len(operation.scalars)):
        scalars = list(operation.scalars.values())
        scalars[position] = 0.0
        assert not all_within(operation, outputs_of(operation, inputs, tuple(scalars)), inputs, dtype)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_input_left_out_is_refused(name: str) -> None:
    operation = find_operation(name)
    rows = rows_of(operation)
    shape = {**dict.fromkeys(operation.axes, 6), operation.row_axis: rows, operation.reduced_axis: 256}
    inputs = draw(operation, shape, "fp32", "normal", seed=6)
    for position in range(len(inputs)):
        changed = tuple(torch.ones_like(t) if i == position else t for i, t in enumerate(inputs))
        got = outputs_of(operation, changed, tuple(operation.scalars.values()))
        assert not all_within(operation, got, inputs, "fp32")


@pytest.mark.parametrize("name", OPERATIONS)
def test_summing_over_the_wrong_axis_is_refused(name: str) -> None:
    """The operands transposed, so that rows and columns change places; the weight is left at one for it."""
    operation = find_operation(name)
    if RowsIndependent() not in operation.relations:
        return  # taken over all axes together: none is the wrong one
    square = draw(operation, shape_of(operation, 64, 64), "fp32", "normal", seed=7)
    if any(t.dim() > 2 or (t.dim() == 2 and t.shape != (64, 64)) for t in square):
        return  # packed, with scales of groups, or with heads: columns can't take the rows' place
    expected = operation.oracle(*square, *operation.scalars.values())
    if all(isinstance(one, Expectation) and one.terms == 1 for one in expected):
        return  # element by element: nothing is summed over an axis
    inputs = tuple(t if t.dim() == 2 else torch.ones_like(t) for t in square)
    turned = tuple(t.t().contiguous() if t.dim() == 2 else t for t in inputs)
    wrong = tuple(o.t().contiguous() for o in outputs_of(operation, turned, tuple(operation.scalars.values())))
    assert not all_within(operation, wrong, inputs, "fp32")


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_costs_are_positive_and_count_every_operand_once(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    parts = any(isinstance(spec.values, Parts) for spec in operation.inputs)
    in_part = operation.updates or operation.reads_in_part or parts
    for shape in (*operation.workloads, shape_of(operation, 3, 65)):
        operands = (*operation.inputs, *operation.outputs)
        moved = operation.bytes_moved(shape, dtype)
        most = sum(
            torch.Size(spec.sizes(shape)).numel() * ITEMSIZE_BYTES[spec.element_type(dtype)] for spec in operands
        )
        assert moved == most or (in_part and 0 < operation.written_bytes(shape, dtype) < moved < most)
        assert operation.flops(shape) > 0


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_reference_runs_as_a_module_of_its_own(name: str) -> None:
    operation = find_operation(name)
    module: dict[str, object] = {}
    exec(compile(reference_source(operation), "reference.py", "exec"), module)
    function = module[operation.reference.__name__]
    assert callable(function)
    inputs = draw(operation, shape_of(operation, 3, 65), "fp32", "normal", seed=8)
    scalars = tuple(operation.scalars.values())
    alone = reference_call.outputs_of(operation, function, inputs, scalars)
    assert all(bool((a == b).all()) for a, b in zip(alone, outputs_of(operation, inputs, scalars), strict=True))


@pytest.mark.parametrize(("name", "dtype"), [case for case in CASES if OPERATIONS[case[0]].vendor is not None])
def test_the_vendors_operator_computes_the_same_as_a_module_of_its_own(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    source, module = vendor_source(operation), dict[str, object]()
    assert source is not None
    assert operation.vendor is not None
    exec(compile(source, "vendor.py", "exec"), module)
    function = module[operation.vendor.__name__]
    assert callable(function)
    for seed, (rows, reduced) in enumerate(SIZES):
        inputs = draw(operation, shape_of(operation, rows, reduced), dtype, "normal", seed=seed)
        returned = function(*inputs, *operation.scalars.values())
        assert all_within(operation, returned if isinstance(returned, tuple) else (returned,), inputs, dtype)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_describes_itself(name: str) -> None:
    operation = find_operation(name)
    assert operation.name == name
    assert {operation.row_axis, operation.reduced_axis} <= set(operation.axes)
    assert all(set(spec.axes) <= set(operation.axes) for spec in (*operation.inputs, *operation.outputs))
    assert all(set(shape) == set(operation.axes) for shape in operation.workloads)
    assert operation.signature.startswith(f"{operation.name}(")
    assert all(
        argument in operation.signature for argument in (*(s.name for s in operation.inputs), *operation.scalars)
    )
    assert len(operation.scalars) <= 4


def test_the_digest_of_a_bound_changes_with_the_bound() -> None:
    looser = POLICY.model_copy(update={"tolerance_accumulate_multiple": 3.0})
    digests = {tolerance_digest(op, policy) for op in OPERATIONS.values() for policy in (POLICY, looser)}
    assert len(digests) == 2 * len(OPERATIONS)


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.reads_in_part])
def test_an_operation_that_reads_in_part_doesnt_depend_on_the_rest(name: str) -> None:
    operation = find_operation(name)
    inputs = draw(operation, shape_of(operation, 3, 64), "fp32", "normal", seed=1)
    scalars = tuple(operation.scalars.values())
    before = outputs_of(operation, inputs, scalars)
    decisive = 0
    for column in range(inputs[0].shape[-1]):
        changed = inputs[0].clone()
        changed[:, column] += 1
        after = outputs_of(operation, (changed, *inputs[1:]), scalars)
        decisive += not all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    moved = operation.bytes_moved(shape_of(operation, 3, 64), "fp32")
    rest = sum(4 * torch.Size(spec.sizes(shape_of(operation, 3, 64))).numel() for spec in operation.outputs)
    rest += sum(4 * one.numel() for one in inputs[1:])
    assert 0 < decisive < inputs[0].shape[-1]
    assert moved == rest + 4 * 3 * decisive
