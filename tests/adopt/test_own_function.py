"""Where no kernel could answer, a model keeps its own function: a compiler sees that, and no operation of Forge."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from forge.adopt import adopt
from forge.adopt.engines import transformers
from forge.adopt.own_function import OwnFunctions
from forge.adopt.refusal import WhyNot
from forge.adopt.tally import Tally
from forge.errors import AdoptionRefused, UsageError
from tests.adopt.making import RMSNORM, cpp_kernel, kernel, publish
from tests.adopt.test_engines import SomeRMSNorm

EPS = 1e-6
OPERATION = "forge.rmsnorm"
NONE = "no kernel for this device and element type; the model's own function stays"
ON_A_GPU = kernel("rmsnorm", RMSNORM, gpu="h200")


def own_norm(x, weight, eps):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


class Graphs:
    """A compiler that keeps the names of what each program of a model calls, and runs it as it is."""

    def __init__(self, norm: Callable, *, dynamic: bool | None = None) -> None:
        self.programs: list[list[str]] = []
        torch._dynamo.reset()

        def model(x, weight):
            return norm(x + 1, weight, EPS) * 2

        self.model = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=self)

    def __call__(self, graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        self.programs.append([str(node.target) for node in graph.graph.nodes if node.op != "placeholder"])
        return graph

    def run(self, rows: int = 4, width: int = 64, dtype: torch.dtype = torch.float32, *, sizes_vary: bool = False):
        """Call the model; check its answer, and return the names that its newest program calls."""
        x, weight = torch.randn(rows, width).to(dtype), torch.randn(width).to(dtype)
        if sizes_vary:
            torch._dynamo.mark_dynamic(x, 0)
        with torch.no_grad():
            torch.testing.assert_close(self.model(x, weight), own_norm(x + 1, weight, EPS) * 2, rtol=2e-2, atol=2e-2)
        return self.programs[-1]


def counts(ops) -> dict[str, int]:
    return {line["reason"] or line["backend"]: line["hits"] for line in ops.report().lines}


def test_without_a_kernel_for_the_device_a_program_is_that_of_the_model_alone(tmp_path):
    plain = Graphs(own_norm).run()
    publish(tmp_path, [ON_A_GPU, cpp_kernel()])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        norm = ops.function("rmsnorm", own_norm)
        compiled = Graphs(norm)
        assert compiled.run() == plain
        assert compiled.run(8) == plain == compiled.run(16)
        (line,) = ops.report().lines
        assert (line["backend"], line["reason"], line["detail"]) == ("fallback", "own_function", NONE)
        assert (line["device"], line["dtype"], line["hits"]) == ("cpu", "fp32", len(compiled.programs))
        norm(torch.randn(4, 64), torch.ones(64), EPS)
        assert counts(ops) == {"own_function": len(compiled.programs) + 1}
        assert NONE in ops.report().table()


def test_a_kernel_that_a_refresh_brings_comes_into_use_and_a_revoked_one_leaves(tmp_path):
    right = kernel("rmsnorm", RMSNORM)
    publish(tmp_path, [ON_A_GPU])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        norm = ops.function("rmsnorm", own_norm)
        compiled = Graphs(norm)
        assert OPERATION not in compiled.run()
        publish(tmp_path, [ON_A_GPU, right], seq=2)
        assert ops.refresh()
        assert OPERATION in compiled.run()
        norm(torch.randn(4, 64), torch.ones(64), EPS)
        assert counts(ops) == {"own_function": 1, "source": 2}
        publish(tmp_path, [ON_A_GPU, right | {"status": "revoked", "status_reason": "wrong"}], seq=3)
        assert ops.refresh()
        compiled.run()
        norm(torch.randn(4, 64), torch.ones(64), EPS)
        assert counts(ops) == {"own_function": 2, "source": 2}
        assert len(compiled.programs) == 2


def test_a_publication_that_changes_no_answer_lets_a_program_stay(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        compiled = Graphs(ops.function("rmsnorm", own_norm))
        compiled.run()
        publish(tmp_path, [ON_A_GPU, kernel("rmsnorm", RMSNORM + "# another\n", kernel_id="torch_other_v1")], seq=2)
        assert ops.refresh()
        compiled.run()
        assert len(compiled.programs) == 1
        assert {line["kernel_id"] for line in ops.report().lines} == {"torch_rmsnorm_cpu_fp32_v1", "torch_other_v1"}


def test_sizes_that_do_not_vary_decide_while_a_program_is_traced(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        norm = ops.function("rmsnorm", own_norm)
        assert OPERATION not in Graphs(norm).run(65)
        assert [line["detail"] for line in ops.report().lines] == [
            "no kernel for this shape; the model's own function stays"
        ]
        compiled = Graphs(norm, dynamic=False)
        assert OPERATION in compiled.run(4)
        assert OPERATION not in compiled.run(65)
        assert counts(ops) == {"own_function": 2, "source": 1}


def test_where_sizes_vary_the_operation_decides_at_each_call(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        compiled = Graphs(ops.function("rmsnorm", own_norm))
        for rows in (65, 4, 8):
            assert OPERATION in compiled.run(rows, sizes_vary=True)
        assert len(compiled.programs) == 1
        assert {name: hits for name, hits in counts(ops).items() if name != "source"} == {"no_kernel": 1}


@pytest.mark.parametrize(
    ("settings", "dtype", "reason"),
    [
        ({}, torch.bfloat16, "own_function"),
        ({}, torch.float64, "dtype"),
        ({"backends": ("plan",)}, torch.float32, "own_function"),
    ],
)
def test_what_no_kernel_of_the_device_is_for_stays_with_the_model(tmp_path, settings, dtype, reason):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0, **settings) as ops:
        norm = ops.function("rmsnorm", own_norm)
        assert OPERATION not in Graphs(norm).run(dtype=dtype)
        norm(torch.ones(4, 64, dtype=dtype), torch.ones(64, dtype=dtype), EPS)
        assert counts(ops) == {reason: 2}


def test_a_kernel_that_failed_leaves_the_program_to_the_own_function(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", "def rmsnorm(x, weight, eps):\n    raise ValueError('no')\n")])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0, fallback={"rmsnorm": own_norm}) as ops:
        compiled = Graphs(ops.function("rmsnorm"))
        assert OPERATION in compiled.run()
        assert OPERATION not in compiled.run()
        assert counts(ops) == {"source": 1, "failed": 1, "own_function": 1}


def test_strict_mode_refuses_and_the_switch_keeps_the_own_function(tmp_path, monkeypatch):
    publish(tmp_path, [ON_A_GPU])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0, strict=True) as ops:
        with pytest.raises(AdoptionRefused, match="no_kernel"):
            ops.function("rmsnorm", own_norm)(torch.ones(4, 64), torch.ones(64), EPS)
        with pytest.raises(AdoptionRefused, match="no_kernel"):
            Graphs(ops.function("rmsnorm", own_norm)).run()
    monkeypatch.setenv("FORGE_ADOPT", "off")
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        assert OPERATION not in Graphs(ops.function("rmsnorm", own_norm)).run()
        assert counts(ops) == {"off": 1}


def test_a_process_that_was_forked_calls_the_operation_which_says_so(tmp_path):
    publish(tmp_path, [ON_A_GPU])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        norm = ops.function("rmsnorm", own_norm)
        norm(torch.ones(4, 64), torch.ones(64), EPS)
        ops.after_fork()
        norm(torch.ones(4, 64), torch.ones(64), EPS)
        assert counts(ops) == {"own_function": 1, "forked": 1}


def test_keywords_and_gradients_are_those_of_the_own_function(tmp_path):
    publish(tmp_path, [ON_A_GPU])
    x, weight = torch.randn(4, 64, requires_grad=True), torch.ones(64)
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        norm = ops.function("rmsnorm", lambda x, weight, eps=EPS, bias=1: own_norm(x, weight, eps) + bias)
        norm(x, weight, bias=2).sum().backward()
        torch.testing.assert_close(norm(x, weight), own_norm(x, weight, EPS) + 1)
        assert x.grad is not None
        assert counts(ops) == {"own_function": 2}
        torch.testing.assert_close(norm(x, weight=weight, eps=EPS), own_norm(x, weight, EPS))
        assert counts(ops) == {"own_function": 2, "gradient": 1}


@pytest.mark.parametrize("compiled", [False, True])
def test_an_operand_that_the_model_leaves_out_stays_with_the_own_function(tmp_path, compiled):
    def own(x, weight, eps):
        return own_norm(x, 1 if weight is None else weight, eps)

    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    torch._dynamo.reset()
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops, torch.no_grad():
        norm = ops.function("rmsnorm", own)
        model = torch.compile(norm, backend="eager", fullgraph=True) if compiled else norm
        x, weight = torch.randn(4, 64), torch.ones(64)
        torch.testing.assert_close(model(x, None, EPS), own_norm(x, 1, EPS))
        torch.testing.assert_close(model(x, weight, EPS), own_norm(x, weight, EPS))
        assert counts(ops) == {"source": 1} | ({} if compiled else {"tensor_type": 1})
        for given in (torch.enable_grad, torch.no_grad):
            with given(), pytest.raises(TypeError, match="rmsnorm: operand weight is None, expected a tensor"):
                torch.ops.forge.rmsnorm(x, None, EPS)


def test_an_own_function_of_other_arguments_is_refused(tmp_path):
    publish(tmp_path, [ON_A_GPU])
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        with pytest.raises(UsageError, match="can't be called with 3 arguments"):
            ops.function("rmsnorm", lambda x: x)
        with pytest.raises(UsageError, match="isn't adopted"):
            ops.function("softmax", own_norm)


def test_layers_of_a_model_keep_their_own_forward_until_there_is_a_kernel(tmp_path):
    publish(tmp_path, [ON_A_GPU])
    model, x = nn.Sequential(SomeRMSNorm(64), nn.Linear(64, 64), SomeRMSNorm(64)), torch.randn(2, 2, 64)
    with adopt(tmp_path, ["rmsnorm"], trust="promoted", refresh_s=0) as ops, torch.no_grad():
        before = model(x)
        assert transformers.kernelize(model, ops) == ["0", "2"]
        assert torch.equal(model(x), before)
        assert counts(ops) == {"own_function": 2}
        publish(tmp_path, [kernel("rmsnorm", RMSNORM)], seq=2)
        ops.refresh()
        torch.testing.assert_close(model(x), before)
        assert counts(ops) == {"own_function": 2, "source": 2}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_eager_calls_of_one_kind_are_decided_once_and_other_devices_each_time(count):
    asked: list[str] = []

    def rule_out(operands):
        asked.append(operands[-1].device.type)
        return None if asked[-1] == "cpu" else (None, WhyNot("tensor_type", "another device"))

    own = OwnFunctions("op", rule_out, Tally())
    function = own.function(lambda *_: "own", lambda *_: "operation", count)
    here, elsewhere = torch.zeros(2), torch.zeros(2, device="meta")
    others = [here] * (count - 1)
    assert [function(*others, elsewhere, 1.0) for _ in range(2)] == ["own"] * 2
    assert [function(*others, here, 1.0) for _ in range(3)] == ["operation"] * 3
    assert function(*others, here.double(), 1.0) == "operation"
    assert asked == ["meta", "meta", "cpu", "cpu"]
    assert function(*others, elsewhere, 1.0) == "operation"  # of the kind of those here: the operation looks again
    own.forget()
    assert function(*others, elsewhere, 1.0) == "own"
