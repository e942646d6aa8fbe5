"""The guest's side of a reference file, called here without a guest: the module is ours."""

import json
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch

from forge.domain.own_operation import Constant, Contract, Normal, Operand, Result, Weight
from forge.guest import module, passed, results, state_dict
from forge.lab.definitions.contract_file import CONTRACT_FILE, contract_file
from forge.operations.own import own_operation


class Scaled(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, 2, bias=False)
        self.again = self.linear
        self.hidden = torch.ones(2)

    def forward(self, x: torch.Tensor, factor: float) -> list[torch.Tensor]:
        return [self.linear(x).T * factor, (x.sum(), self.hidden + torch.zeros(2))]  # type: ignore[list-item]


CONTRACT = Contract(
    slug="scaled",
    source_sha256="0" * 64,
    form="model",
    entry="Scaled",
    init="[3]",
    seed=7,
    dtype="fp32",
    arguments=(
        Operand(name="x", element=None, sizes=(4, 3), batched=True, drawn=Normal(mean=0.0, deviation=1.0)),
        Constant(name="factor", literal="2.5"),
    ),
    weights=(Weight(names=("linear.weight", "again.weight"), element=None, sizes=(2, 3), parameter=True),),
    results=(Result(element=None, sizes=(2, 4)), Result(element=None, sizes=()), Result(element=None, sizes=(2,))),
    batch=4,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(CONTRACT))
    return tmp_path


def test_weights_are_operands_under_all_of_their_names_and_outputs_come_flat(folder: Path) -> None:
    function = module.wrapped({}, Scaled, folder, wrap=module.MODULE)
    x, weight = torch.rand(4, 3), torch.rand(2, 3)
    first, total, hidden = function(x, weight)  # type: ignore[misc]
    assert torch.equal(first, ((x @ weight.T) * 2.5).T)
    assert total.shape == ()
    assert torch.equal(hidden, torch.ones(2))


def test_the_wide_form_computes_in_fp64_with_whatever_the_module_holds(folder: Path) -> None:
    function = module.wrapped({}, Scaled, folder, wrap=module.WIDE)
    outputs = function(torch.rand(4, 3), torch.rand(2, 3))
    assert [one.dtype for one in outputs] == [torch.float64] * 3  # type: ignore[attr-defined]
    assert torch.get_default_dtype() == torch.float32


def test_a_plain_function_takes_the_arguments_and_then_the_weights(folder: Path) -> None:
    def kernel(x: torch.Tensor, factor: float, weight: torch.Tensor) -> torch.Tensor:
        return x @ weight.T * factor

    function = module.wrapped({}, kernel, folder, wrap=module.MODULE)
    x, weight = torch.rand(4, 3), torch.rand(2, 3)
    (got,) = function(x, weight)  # type: ignore[misc]
    assert torch.equal(got, x @ weight.T * 2.5)


def test_a_module_with_another_state_dict_is_refused_with_the_names(folder: Path) -> None:
    class Other(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(width, 2)

    with pytest.raises(
        state_dict.OtherStateError, match=r"missing \['again.weight', 'linear.weight'\].*'dense.bias'"
    ):
        module.wrapped({}, Other, folder, wrap=module.MODULE)


LAYERS = (
    Weight(names=("conv.weight",), element=None, sizes=(2, 3), parameter=True),
    Weight(names=("conv.bias",), element=None, sizes=(2,), parameter=True),
    Weight(names=("scale",), element=None, sizes=(2,), parameter=True),
)


@pytest.mark.parametrize("fits", [True, False])
def test_parameters_may_have_other_names_if_order_and_sizes_tell_which_is_which(fits: bool, tmp_path: Path) -> None:
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(CONTRACT.model_copy(update={"weights": LAYERS})))

    class Renamed(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(2, width) if fits else torch.zeros(width, 2))
            self.bias = torch.nn.Parameter(torch.zeros(2))
            self.scale = torch.nn.Parameter(torch.zeros(2))
            self.bias_again = self.bias

        def forward(self, x: torch.Tensor, factor: float) -> torch.Tensor:
            return (x @ self.weight.T + self.bias_again) * self.scale * factor

    if not fits:
        with pytest.raises(state_dict.OtherStateError, match=r"missing \['conv.bias', 'conv.weight'\]"):
            module.wrapped({}, Renamed, tmp_path, wrap=module.MODULE)
        return
    x, weight, bias, scale = torch.rand(4, 3), torch.rand(2, 3), torch.rand(2), torch.rand(2)
    function = module.wrapped({}, Renamed, tmp_path, wrap=module.MODULE)
    (got,) = function(x, weight, bias, scale)  # type: ignore[misc]
    assert torch.equal(got, (x @ weight.T + bias) * scale * 2.5)


def test_a_module_may_leave_out_a_buffer_or_have_buffers_of_its_own(tmp_path: Path) -> None:
    mask = Weight(names=("mask",), element=None, sizes=(4, 4), parameter=False)
    masked = CONTRACT.model_copy(update={"weights": (*CONTRACT.weights, mask)})
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(masked))

    class Other(Scaled):
        def __init__(self, width: int) -> None:
            super().__init__(width)
            self.register_buffer("lower", torch.ones(4, 4).tril())

    function = module.wrapped({}, Other, tmp_path, wrap=module.MODULE)
    x, weight = torch.rand(4, 3), torch.rand(2, 3)
    first, _, _ = function(x, weight, torch.ones(4, 4))  # type: ignore[misc]
    assert torch.equal(first, ((x @ weight.T) * 2.5).T)


@pytest.mark.parametrize("change", ["a parameter too few", "a parameter too many", "a buffer of another size"])
def test_a_buffer_of_another_size_or_another_parameter_is_refused(change: str, tmp_path: Path) -> None:
    mask = Weight(names=("mask",), element=None, sizes=(4, 4), parameter=False)
    masked = CONTRACT.model_copy(update={"weights": (*CONTRACT.weights, mask)})
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(masked))

    class Other(Scaled):
        def __init__(self, width: int) -> None:
            super().__init__(width)
            if change == "a parameter too few":
                self.again = None  # type: ignore[assignment]  # as a candidate may
            elif change == "a parameter too many":
                self.shift = torch.nn.Parameter(torch.zeros(2))
            else:
                self.register_buffer("mask", torch.ones(4, 5))

    with pytest.raises(state_dict.OtherStateError):
        module.wrapped({}, Other, tmp_path, wrap=module.MODULE)


def test_the_state_under_a_seed_is_each_tensor_once(folder: Path) -> None:
    function = module.wrapped({}, Scaled, folder, wrap=module.STATE)
    one, same, other = (function(torch.tensor(seed)) for seed in (1, 1, 2))
    assert len(one) == 1  # type: ignore[arg-type]
    assert torch.equal(one[0], same[0])  # type: ignore[index]
    assert not torch.equal(one[0], other[0])  # type: ignore[index]


def test_a_guest_is_told_no_family_and_no_tolerance() -> None:
    told = json.loads(contract_file(CONTRACT))
    assert sorted(told) == [
        *("arguments", "borrowed", "dtype", "init", "init_named", "keys", "returned", "seed", "states")
    ]
    assert told["arguments"][0] == {"keyword": False, "literal": None, "name": "x"}


class Named(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor, factor: float = 1.0) -> dict[str, torch.Tensor]:
        return {"sum": (x * mask).sum(0), "rows": (x + self.shift) * factor}


NAMED = Contract(
    slug="named",
    source_sha256="0" * 64,
    form="model",
    entry="Named",
    init="[]",
    seed=7,
    dtype="fp32",
    arguments=(
        Operand(name="x", element=None, sizes=(4, 3), drawn=Normal(mean=0.0, deviation=1.0)),
        Operand(name="mask", element=None, sizes=(4, 3), drawn=Normal(mean=0.0, deviation=1.0), keyword=True),
        Constant(name="factor", literal="2.0", keyword=True),
    ),
    weights=(Weight(names=("shift",), element=None, sizes=(3,), parameter=False),),
    results=(Result(key="rows", element=None, sizes=(4, 3)), Result(key="sum", element=None, sizes=(3,))),
)


def test_keywords_are_passed_by_name_and_dictionaries_read_by_their_keys(tmp_path: Path) -> None:
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(NAMED))
    x, mask, shift = torch.rand(4, 3), torch.rand(4, 3), torch.rand(3)

    def kernel(x: torch.Tensor, shift: torch.Tensor, *, mask: torch.Tensor, factor: float) -> dict[str, torch.Tensor]:
        return {"rows": (x + shift) * factor, "sum": (x * mask).sum(0)}

    for called in (Named, kernel):
        rows, total = module.wrapped({}, called, tmp_path, wrap=module.MODULE)(x, mask, shift)  # type: ignore[misc]
        assert torch.equal(rows, (x + shift) * 2)
        assert torch.equal(total, (x * mask).sum(0))


def test_results_under_other_keys_are_refused_with_the_keys(tmp_path: Path) -> None:
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(NAMED))

    def kernel(x: torch.Tensor, shift: torch.Tensor, *, mask: torch.Tensor, factor: float) -> object:
        return (x + shift) * factor, (x * mask).sum(0)

    with pytest.raises(results.OtherKeysError, match=r"the keys \[\], expected \['rows', 'sum'\]"):
        module.wrapped({}, kernel, tmp_path, wrap=module.MODULE)(torch.rand(4, 3), torch.rand(4, 3), torch.rand(3))


def test_arguments_are_named_by_the_function_that_takes_them() -> None:
    def function(x: object, y: object = 0, *, scale: float = 1.0, bias: float = 0.0) -> None: ...

    def named(drawn: object) -> list[tuple[str, object, bool]]:
        return passed.passed_values(drawn, function, skip=0)

    assert named([1, 2, 3, 4]) == [("x", 1, False), ("y", 2, False), ("scale", 3, True), ("bias", 4, True)]
    assert named({"bias": 4, "x": 1}) == [("x", 1, False), ("bias", 4, True)]
    assert named({"y": 2, "other": 5}) == [("y", 2, True), ("other", 5, True)]
    assert named([1, 2, 3, 4, 5])[-1] == ("input_4", 5, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda xs, _: xs.clear(),
        lambda xs, _: xs.reverse(),
        lambda xs, _: xs.__setitem__(0, xs[0].clone()),
        lambda _, options: options["inner"].pop(),
        lambda _, options: options.update(times=4),
        lambda _, options: options.update(more=None),
    ],
)
def test_a_call_that_changes_a_list_or_dictionary_is_seen(
    change: Callable[[list[torch.Tensor], dict[str, Any]], None],
) -> None:
    literals: passed.Literals = ((False, [..., ...]), (False, {"inner": [...], "times": float("nan")}))
    operands = [torch.ones(2), torch.ones(2), torch.ones(2)]
    arguments = passed.arguments(literals, operands)
    passed.require_unchanged(("xs", "options"), arguments, literals, operands)
    change(*arguments)  # type: ignore[arg-type]  # a list and a dictionary
    with pytest.raises(passed.ChangedContainerError, match="has other content than before the call"):
        passed.require_unchanged(("xs", "options"), arguments, literals, operands)


def test_nested_results_are_named_by_keys_and_positions() -> None:
    first, second, third = torch.ones(1), torch.ones(2), torch.ones(3)
    found = results.flatten_with_places(({"b": [second, third], "a": first}, third))
    assert [key for key, _ in found] == ["0.a", "0.b.0", "0.b.1", ""]


class _LazyMapping(Mapping[str, torch.Tensor]):
    def __getitem__(self, key: str) -> torch.Tensor:
        return torch.ones(1)

    def __iter__(self) -> Iterator[str]:
        return iter(("a",))

    def __len__(self) -> int:
        return 1


class _LazyDict(dict[str, torch.Tensor]):
    def __getitem__(self, key: str) -> torch.Tensor:
        return torch.zeros(1)


class _LazyTuple(tuple[torch.Tensor, ...]):
    def __getitem__(self, place: object) -> Any:
        return torch.zeros(1)


class _LazyList(list[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter((torch.ones(1),))


class _SaysItIsPlain(type):
    __mro__ = (tuple, object)  # what a reader of the class would believe


class _Disguised(tuple[torch.Tensor, ...], metaclass=_SaysItIsPlain):
    def __getitem__(self, place: object) -> Any:
        return torch.zeros(1)


def _user_dict(content: dict[str, torch.Tensor]) -> UserDict[str, torch.Tensor]:
    found: UserDict[str, torch.Tensor] = UserDict()
    found.data = content
    return found


@pytest.mark.parametrize(
    "returned",
    [
        _LazyMapping(),
        _LazyDict(a=torch.ones(1)),
        _LazyTuple((torch.ones(1),)),
        _LazyList((torch.zeros(1),)),
        (_LazyTuple((torch.ones(1),)),),
        {"a": _LazyList((torch.zeros(1),))},
        MappingProxyType(_LazyDict(a=torch.ones(1))),
        _user_dict(_LazyDict(a=torch.ones(1))),
        _Disguised((torch.ones(1),)),
    ],
    ids=[
        *("a mapping", "a dictionary", "a tuple", "a list", "in a tuple", "in a dictionary"),
        *("behind a proxy", "in a user's dictionary", "with a class of its class"),
    ],
)
def test_a_container_that_computes_what_is_read_is_refused(returned: object) -> None:
    keys = tuple(key for key, _ in results.flatten_with_places(returned) if key)
    with pytest.raises(results.OtherFormError, match="of its own, expected plain ones"):
        results.read_results(returned, keys, results.nesting(returned), frozenset(), ())


class _Named(NamedTuple):
    a: torch.Tensor


@pytest.mark.parametrize(
    "returned",
    [
        (torch.ones(3),),
        [torch.ones(3)],
        {"a": torch.ones(3)},
        OrderedDict(a=torch.ones(3)),
        UserDict(a=torch.ones(3)),
        defaultdict(list, a=torch.ones(3)),
        MappingProxyType({"a": torch.ones(3)}),
        _Named(torch.ones(3)),
        torch.ones(3).topk(2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_containers_of_python_and_torch_that_store_their_content_are_read(returned: object) -> None:
    keys = tuple(key for key, _ in results.flatten_with_places(returned) if key)
    assert results.read_results(returned, keys, results.nesting(returned), frozenset(), ())


@pytest.mark.parametrize("key", [0, "0", "a.b", "", None, ("a",)])
def test_a_key_that_could_be_taken_for_another_place_is_refused(key: object) -> None:
    with pytest.raises(results.OtherKeysError, match="expected names of letters, digits and underscores"):
        results.flatten_with_places({"a": torch.ones(1), key: torch.ones(1)})


def test_a_contract_reads_as_an_operation_that_this_process_cant_run() -> None:
    operation = own_operation(CONTRACT, b"source")
    assert [spec.sizes({"batch": 9}) for spec in operation.inputs] == [(9, 3), (2, 3)]
    assert operation.axes == ("batch",)
    assert operation.bytes_moved({"batch": 4}, "fp32") == 4 * (8 + 1 + 2)
    with pytest.raises(AssertionError, match="never runs in this process"):
        operation.reference(torch.rand(4, 3))
