import pytest

from forge.domain.own_operation import Constant, Generated, Normal, Operand, Uniform, Weight
from forge.errors import EnvironmentUnfit, ReferenceRefused
from forge.lab.reference import describe, reference_guest
from forge.lab.reference.describe import Declared
from forge.operations.own import own_operation
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, frozen, square_contract

INPUTS = "\ndef get_inputs():\n    return [torch.randn(4, 32)]\n"
BAD = {
    "doesn't parse": ("import torch\ndef kernel(x:\n", "the file raises SyntaxError"),
    "imports a module that isn't there": (
        "import torch, einops_of_nowhere\ndef kernel(x):\n    return x\n" + INPUTS,
        "'einops_of_nowhere'; a reference may import what the Python that runs forge has installed",
    ),
    "doesn't run": ("import torch\ndef kernel(x):\n    return x @ x\n" + INPUTS, "the call raises RuntimeError"),
    "has no inputs": ("import torch\ndef kernel(x):\n    return x\n", "no get_inputs()"),
    "has no entry": (
        "import torch\n" + INPUTS,
        "neither a class Model nor exactly one function, but neither functions nor classes: name its class Model",
    ),
    "has another class": (
        "import torch\nclass Other(torch.nn.Module):\n    pass\n" + INPUTS,
        "but the class Other: name",
    ),
    "has two functions": (
        "import torch\ndef f(x):\n    return x\ndef g(x):\n    return x\n" + INPUTS,
        "but f, g: name one by --function",
    ),
    "draws random numbers": (
        "import torch\ndef kernel(x):\n    return x * torch.rand(1)\n" + INPUTS,
        "a generator of random numbers that the whole process shares",
    ),
    "remembers": (
        "import torch\nseen = []\ndef kernel(x):\n    seen.append(1)\n    return x * len(seen)\n" + INPUTS,
        "remembers earlier calls",
    ),
    "reads a file": (
        "import torch\ndef kernel(x):\n    return x * len(open('weights.bin').read())\n" + INPUTS,
        "it opens the file 'weights.bin': a reference reads no files",
    ),
    "hides that it reads a file": (
        "import torch\ndef kernel(x):\n    try:\n        open('/data/weights.bin')\n"
        "    except OSError:\n        pass\n    return x * 2\n" + INPUTS,
        "it opens the file '/data/weights.bin'",
    ),
    "asks the network": (
        "import torch, urllib.request\ndef kernel(x):\n    urllib.request.urlopen('http://example.org')\n"
        "    return x\n" + INPUTS,
        "it asks the network for 'example.org'",
    ),
    "starts a program": (
        "import torch, subprocess\ndef kernel(x):\n    subprocess.run(['true'])\n    return x\n" + INPUTS,
        "it starts the program",
    ),
    "returns no tensor": ("import torch\ndef kernel(x):\n    return float(x.sum())\n" + INPUTS, "returns float"),
    "takes no tensor": ("import torch\ndef kernel(x):\n    return x\ndef get_inputs():\n    return [1]\n", "tensor"),
    "has a class that is no module": (
        "class Model:\n    def forward(self, x):\n        return x\n" + INPUTS,
        "its class Model is no torch.nn.Module",
    ),
    "returns nothing": ("import torch\ndef kernel(x):\n    return ()\n" + INPUTS, "it returns no tensor"),
    "needs more room than there is": (
        "import torch\ndef kernel(x):\n    return x\ndef get_inputs():\n    return [torch.rand(2**20, 2**20)]\n",
        "it needs 4398046511104 bytes of operands and weights: expected at most",
    ),
    "needs more memory than there is": (
        "import torch\ndef kernel(x):\n    return x * len(bytearray(2**40))\n" + INPUTS,
        "the call needs more memory than a guest may have",
    ),
    "answers for a while": (
        "import torch\ncalls = []\ndef kernel(x):\n    calls.append(1)\n    if len(calls) > 50:\n"
        "        raise MemoryError\n    return x * 2\n" + INPUTS,
        "it answers only sometimes: the reference failed in its guest: "
        "the import or the call found too little memory",
    ),
    "ends its process": ("import os, torch\ndef kernel(x):\n    os._exit(3)\n" + INPUTS, "it ended its process"),
    "forges what it is": (
        'import json, torch\njson.dumps = lambda *_: \'{"problem": {"code": "forward", "text": "\\\\u001b[2J"}}\'\n'
        "def kernel(x):\n    return x\n" + INPUTS,
        r"\x1b[2J",
    ),
    "writes to its guest's channel": ("import os\nos.write(4, b'more')\nos._exit(0)\n", "it meddles with its guest"),
    "closes its guest's channel": (
        "import os, time\nos.close(4)\ntime.sleep(600)\n",
        "it meddles with its guest: the guest closed the reply channel",
    ),
    "gives another form when it isn't described": (
        "import sys, torch\ndescribed = 'describe' in sys.modules['__main__'].__file__\n"
        "def kernel(x):\n    return x * 2 if described else x[:, :5]\n" + INPUTS,
        "the outputs have another shape: float32[4, 5]",
    ),
    "changes a list that it takes": (
        "import torch\ndef kernel(xs):\n    return xs.pop() * 2\n"
        "def get_inputs():\n    return [[torch.randn(4, 32), torch.randn(4, 32)]]\n",
        "a list or dictionary of the arguments has other content",
    ),
    "writes to its operands": (
        "import torch\ndef kernel(x):\n    return x.relu_() + 1\n" + INPUTS,
        "it writes to its operands",
    ),
    "gives a constant": ("import torch\ndef kernel(x):\n    return torch.ones(4)\n" + INPUTS, "doesn't depend on"),
    "gives NaN": ("import torch\ndef kernel(x):\n    return x.log()\n" + INPUTS, "NaN or infinity"),
    "remembers calls for a while": (
        "import torch\ncalls = []\ndef kernel(x):\n    calls.append(1)\n"
        "    return x * 2 if len(calls) < 40 else x * 3\n" + INPUTS,
        "two calls with the same operands differ",
    ),
    "draws random numbers under a seed of its own": (
        "import torch\ndef kernel(x):\n    own = torch.Generator().manual_seed(0)\n"
        "    return x + torch.randn(32, generator=own, dtype=x.dtype)\n" + INPUTS,
        "in fp64 it gives another answer",
    ),
    "seeds torch": (
        "import torch\ndef kernel(x):\n    torch.manual_seed(0)\n    return x + torch.randn(32)\n" + INPUTS,
        "a generator of random numbers that the whole process shares",
    ),
    "asks for a GPU": (
        "import torch\ndef kernel(x):\n    return x * 2\ndef get_inputs():\n    return [torch.rand(4, 32).cuda()]\n",
        "a reference runs on the processor",
    ),
    "makes tensors without values": (
        "import torch\ntorch.set_default_device('meta')\ndef kernel(x):\n    return x * 2\n" + INPUTS,
        "a tensor lies on the device 'meta'",
    ),
    "returns fp8": (
        "import torch\ndef kernel(x):\n    return x.to(torch.float8_e4m3fn)\n" + INPUTS,
        "a result is float8_e4m3fn: expected floats of 16 bits or more",
    ),
    "returns nested tensors": (
        "import torch\ndef kernel(x):\n    return torch.nested.nested_tensor([x[0], x[1, :3]])\n" + INPUTS,
        "a tensor is nested",
    ),
    "returns a parameter": (
        "import torch\ndef kernel(x):\n    return torch.nn.Parameter(x * 2)\n" + INPUTS,
        "the call returns Parameter, where plain tensors are expected",
    ),
    "takes a number of too many digits": (
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "    def forward(self, x):\n        return x * 2\n"
        + INPUTS
        + "def get_init_inputs():\n    return [10**5000]\n",
        "get_init_inputs() raises ValueError",
    ),
    "gives complex numbers": ("import torch\ndef kernel(x):\n    return torch.fft.fft(x)\n" + INPUTS, "complex64"),
    "takes what can't be written down": (
        "import torch\ndef kernel(x, f):\n    return x\ndef get_inputs():\n    return [torch.rand(4, 32), print]\n",
        "can't be written down",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_reference_is_refused_with_its_reason(name: str, walls: Walls) -> None:
    source, reason = BAD[name]
    with pytest.raises(ReferenceRefused) as refused:
        ask(source)
    assert "7_a_reference.py" in refused.value.message
    assert reason in refused.value.message
    assert refused.value.exit_status == 2


def test_a_reference_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, walls: Walls) -> None:
    monkeypatch.setattr(describe, "LIMIT_S", 1.0)
    with pytest.raises(ReferenceRefused, match="takes longer than 1 s"):
        ask("import torch\ndef kernel(x):\n    while True: pass\n" + INPUTS)


@pytest.mark.parametrize("function", ["kernel(x)", "get_inputs()"])
def test_a_reference_that_a_busy_machine_ends_is_not_refused(
    function: str, monkeypatch: pytest.MonkeyPatch, walls: Walls
) -> None:
    monkeypatch.setattr(reference_guest, "SESSION_LIMIT_S", 6.0)
    source = "import time, torch\ncalls = []\ndef kernel(x):\n    return x * 2\n" + INPUTS
    stands = source.replace(
        f"def {function}:\n",
        f"def {function}:\n    calls.append(1)\n    if len(calls) > 4:\n        time.sleep(600)\n",
    )
    with pytest.raises(EnvironmentUnfit, match="no verdict"):
        ask(stands)


def test_a_model_is_inferred_with_its_operands_weights_and_batches(walls: Walls) -> None:
    contract = frozen().contract
    assert (contract.form, contract.entry, contract.init) == ("model", "Model", "[16, 0.25]")
    x, scale = contract.arguments
    assert x == Operand(
        name="x", element=None, sizes=(6, 16), batched=True, drawn=Uniform(low=0.0, high=1.0), source="file"
    )
    assert scale == Constant(name="scale", literal="1.5")
    names = [name for weight in contract.weights for name in weight.names]
    assert names[:2] == ["norm.weight", "norm.bias"]
    assert {one.names[0]: one.parameter for one in contract.weights}["norm.running_mean"] is False
    (result,) = contract.results
    assert result.sizes == (6, 8)
    assert result.batched
    assert 0 < result.error <= 1e-5
    assert contract.varies
    assert contract.wide
    assert frozen().held_out
    assert all(shape["batch"] >= 2 for shape in frozen().held_out)


def test_known_wrong_answers_to_a_model_are_refused_and_right_ones_accepted(walls: Walls) -> None:
    admission = frozen().admission
    assert admission.killed == admission.mutants >= 8
    assert not admission.refused


def test_the_same_file_inferred_again_has_the_same_name(walls: Walls) -> None:
    again = ask(frozen().source.decode())
    assert again.operation.name == frozen().operation.name
    assert again.operation.name.startswith("own_a_reference_")


def test_an_argument_that_is_not_named_in_ascii_goes_by_its_place(walls: Walls) -> None:
    (argument,) = ask("import torch\ndef kernel(größe):\n    return größe * 2\n" + INPUTS).contract.arguments
    assert argument.name == "input_0"


def test_a_function_with_declared_operands_needs_no_generator(walls: Walls) -> None:
    operands = (
        Declared(name="table", dtype="float32", sizes=(50, 8)),
        Declared(name="index", dtype="int64", sizes=(12,), low=0, high=49),
    )
    source = "import torch\ndef kernel(table, index):\n    return table[index]\ndef other():\n    pass\n"
    contract = ask(source, operands=operands, function="kernel").contract
    assert [one.drawn.family for one in contract.tensors] == ["normal", "integers"]
    assert not contract.varies or contract.batch == 50


def test_inputs_with_a_structure_are_drawn_by_the_file_under_the_hosts_seed(walls: Walls) -> None:
    source = (
        "import torch\ndef kernel(x):\n    return torch.tril(x @ x)\n"
        "def get_inputs():\n    return [torch.tril(torch.rand(24, 24))]\n"
    )
    (operand,) = ask(source).contract.tensors
    assert isinstance(operand.drawn, Generated)
    assert "triangular" in operand.drawn.structure


def test_values_that_no_bound_sees_show_as_a_weak_task_and_one_sample_alone_is_held_out(walls: Walls) -> None:
    few = "import torch\ndef kernel(x):\n    return torch.cat([x[:, :3], x[:, :3] * 1e7], -1)\n"
    inferred = ask(few + INPUTS)
    assert inferred.admission.survivors == ("output: the smaller half left out",)
    assert inferred.held_out[0] == {"batch": 1}


def test_small_values_beside_huge_ones_are_seen_where_errors_follow_each_value(walls: Walls) -> None:
    inferred = ask("import torch\ndef kernel(x):\n    return torch.cat([x, x * 1e7], -1)\n" + INPUTS)
    assert inferred.admission.survivors == ()


def test_a_mean_that_is_always_nearly_zero_shows_as_a_weak_task(walls: Walls) -> None:
    source = (
        "import torch\ndef kernel(x):\n    return torch.nn.functional.layer_norm(x, (32,)).mean(-1) + 1e-4\n" + INPUTS
    )
    survivors = ask(source).admission.survivors
    assert any("the last call's output" in one for one in survivors)


def test_what_belongs_where_it_stands_stays_there() -> None:
    contract = square_contract(4)
    structured = Generated(structure="symmetric")
    drawn = [structured, Normal(mean=0.0, deviation=1.0), structured]
    arguments = tuple(contract.tensors[0].model_copy(update={"drawn": one}) for one in drawn)
    weights = (
        Weight(names=("scale",), element=None, sizes=(4,), parameter=True),
        Weight(names=("mean",), element=None, sizes=(4,), parameter=False),
        Weight(names=("order",), element="int64", sizes=(4,), parameter=True),
    )
    asked = contract.model_copy(update={"arguments": arguments, "weights": weights})
    assert own_operation(asked, b"").still == {0, 2, 4, 5}
    assert own_operation(asked, b"").weights >= {3, 4, 5}
