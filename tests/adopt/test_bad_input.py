"""What can't be adopted is refused by one error that names the value, what was expected and the next step."""

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import forge
from forge.adopt import adopt
from forge.domain.digest import canonical, sha256
from forge.errors import BlobCorrupt, EnvironmentUnfit, IntegrityError, UnknownName, UsageError, WorkspaceNotFound
from forge.operations import find_operation
from forge.operations.description import description
from tests.adopt.making import RMSNORM, kernel, publish
from tests.lookup.asking import publish_kernels, shown_kernel


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return publish(tmp_path / "registry", [kernel("rmsnorm", RMSNORM)])


def refused(registry: Path, error: type[Exception], match: str, **changes: object) -> None:
    with pytest.raises(error, match=match):
        adopt(registry, **{"trust": "promoted", "refresh_s": 0, **changes})
    assert not hasattr(torch.ops.forge, "rmsnorm")


def described_as(registry: Path, content: bytes) -> None:
    """Publish another description of the operation, with its right digest."""
    from forge.projections.files import put
    from forge.projections.snapshot import render
    from tests.lookup.asking import publish_snapshot

    put(registry, {"ops/rmsnorm.json": content})
    reference = sha256((registry / "ops" / "rmsnorm.py").read_bytes())
    publish_snapshot(registry, render([], {}, [("rmsnorm", sha256(content), reference)]), seq=2)


def test_no_registry_and_an_empty_folder(tmp_path):
    refused(tmp_path / "nothing", WorkspaceNotFound, "no published registry")
    refused(tmp_path, WorkspaceNotFound, "expected a workspace")


def test_a_registry_that_describes_no_operation(tmp_path):
    publish_kernels(tmp_path, [shown_kernel()])
    refused(tmp_path, UsageError, "describes no operation")


def test_a_damaged_pointer_and_snapshot(registry):
    pointer = registry / "current.json"
    whole = pointer.read_bytes()
    pointer.write_bytes(whole[:-5])
    refused(registry, BlobCorrupt, "can't be read")
    pointer.write_bytes(whole)
    snapshot = registry / json.loads(whole)["snapshot"]
    snapshot.chmod(0o644)
    snapshot.write_bytes(snapshot.read_bytes() + b" ")
    refused(registry, BlobCorrupt, "has digest")


def test_a_half_published_registry(registry):
    shutil.rmtree(registry / "ops")
    refused(registry, BlobCorrupt, r"ops/rmsnorm.json' can't be read")


def test_newer_schemas(registry):
    operation = description(find_operation("rmsnorm"))
    described_as(registry, canonical({**operation, "schema_version": 2}))
    refused(registry, IntegrityError, "in schema 2, expected 1: upgrade Forge")
    pointer = registry / "current.json"
    pointer.write_bytes(canonical({**json.loads(pointer.read_bytes()), "schema_version": 99}))
    refused(registry, IntegrityError, "schema 99")


def operand(name, **changes):
    plain = {"axes": ["batch", "hidden_size"], "element": None, "times": {}, "per": {}, "at_most": {}}
    return {"name": name, **plain, **changes}


@pytest.mark.parametrize("written", ["NaN", "Infinity", "1e999", "1" + "0" * 400])
def test_a_scalar_that_is_no_number(registry, written):
    known = canonical(description(find_operation("rmsnorm"))).decode()
    changed = known.replace('"scalars":{"eps":1e-6}', f'"scalars":{{"eps":{written}}}')
    assert changed != known
    described_as(registry, changed.encode())
    refused(registry, BlobCorrupt, "the description of operation 'rmsnorm' can't be read")


@pytest.mark.parametrize(
    "change",
    [
        {"op": "softmax"},
        {"inputs": []},
        {"inputs": [{"name": "x y", "axes": [], "element": None, "times": {}, "per": {}, "at_most": {}}]},
        {"dtypes": ["fp4"]},
        {"updates": ["z"]},
        {"scalars": {"eps": "small"}},
        {"outputs": [{"name": "y", "axes": ["depth"], "element": None, "times": {}, "per": {}, "at_most": {}}]},
        {"scalars": {"True": 1.0}},
        {"inputs": [operand("if")]},
        {"inputs": [operand("\ufb01")]},
        {"inputs": [operand("x", times={"batch": 0}), operand("weight")]},
        {"inputs": [operand("x", per={"batch": -1}), operand("weight")]},
        {"inputs": [operand("x", at_most={"batch": True}), operand("weight")]},
        {"inputs": [operand("x", axes=["batch", "9" * 5000]), operand("weight")]},
        {"inputs": [operand("x", axes=["batch", "\u0663"]), operand("weight")]},
        {"fixed": {"depth": -1}},
    ],
)
def test_a_description_that_makes_no_sense(registry, change):
    described_as(registry, canonical({**description(find_operation("rmsnorm")), **change}))
    refused(registry, BlobCorrupt, "the description of operation 'rmsnorm' can't be read")


def test_an_unknown_operation_has_the_nearest_names(registry):
    refused(registry, UnknownName, "nearest: rmsnorm", ops=["rmsnrm"])
    refused(registry, UnknownName, "unknown operation in fallback", fallback={"softmax": len})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"trust": "yes"}, 'say trust="promoted"'),
        ({"ops": []}, "no operation to adopt"),
        ({"ops": "rmsnorm"}, "expected a list of names"),
        ({"backends": ("cubin",)}, "bad backends"),
        ({"backends": ()}, "bad backends"),
        ({"shadow": 2}, "bad shadow"),
        ({"shadow": float("nan")}, "bad shadow"),
        ({"refresh_s": -1}, "bad refresh_s"),
        ({"fallback": "mine"}, "bad fallback"),
        ({"fallback": {"rmsnorm": 3}}, "expected a function of x, weight, eps"),
        ({"fallback": {"rmsnorm": lambda x: x}}, "can't be called with 3 arguments"),
        ({"fallback": {"rmsnorm": divmod}}, "can't be called with 3 arguments"),
        ({"policy": None}, "bad policy None: expected a forge.lookup.Policy"),
        ({"strict": 1}, "bad strict 1: expected True or False"),
    ],
)
def test_settings_that_make_no_sense(registry, change, match):
    refused(registry, UsageError, match, **change)


def test_a_torch_without_what_is_needed(registry, monkeypatch):
    monkeypatch.delattr(torch.library, "register_fake")
    refused(registry, EnvironmentUnfit, "expected 2.6 or newer")


def test_adopting_while_a_program_is_traced_or_a_graph_captured(registry, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(torch.compiler, "is_compiling", lambda: True)
        refused(registry, UsageError, "adopt before compiling")
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "is_initialized", lambda: True)
        patched.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        refused(registry, UsageError, "before the capture")
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
        refused(registry, UsageError, "start it by spawn")


def test_twice_is_once_and_another_registry_is_refused(registry, tmp_path):
    first = adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0)
    assert adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) is first
    other = publish(tmp_path / "other", [kernel("rmsnorm", RMSNORM)])
    with pytest.raises(UsageError, match="close that handle first"):
        adopt(other, ["rmsnorm"], trust="promoted", refresh_s=0)
    first.close()
    first.close()
    with adopt(other, ["rmsnorm"], trust="promoted", refresh_s=0) as second:
        assert second is not first


def test_shapes_to_prepare_and_names_that_are_unknown(registry):
    with adopt(registry, trust="promoted", refresh_s=0) as ops:
        with pytest.raises(UsageError, match="expected a size for each of"):
            ops.prepare({"rmsnorm": [{"batch": 4}]}, dtype="fp32", device="cpu")
        with pytest.raises(UsageError, match="bad dtype"):
            ops.prepare({"rmsnorm": [{"batch": 4, "hidden_size": 64}]}, dtype="fp8", device="cpu")
        with pytest.raises(UsageError, match="isn't adopted"):
            ops.explain("softmax", torch.ones(1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="for a torch without CUDA")
def test_a_torch_without_cuda_prepares_no_gpu_and_its_calls_take_the_fallback(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM, gpu="h200")])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        with pytest.raises(EnvironmentUnfit, match="finds no GPU for device 'cuda'"):
            ops.prepare({"rmsnorm": [{"batch": 4, "hidden_size": 64}]}, dtype="fp32")
        torch.ops.forge.rmsnorm(torch.ones(4, 64), torch.ones(64), 1e-6)
        assert [line["reason"] for line in ops.report().lines] == ["no_kernel"]


def test_tensors_of_2_to_the_31_and_more_elements_take_the_fallback(registry):
    huge = torch.ones(1, 1).expand(2**16, 2**15)
    with adopt(registry, trust="promoted", refresh_s=0) as ops:
        told = ops.explain("rmsnorm", huge, torch.ones(1).expand(2**15))
        assert (told["takes"], told["reason"]) == ("fallback", "no_kernel")


def test_a_plan_on_a_machine_without_cuda_bindings_is_refused_with_the_next_step():
    from forge.adopt.plan import LoadablePlan
    from forge.adopt.plan_function import DevicePlan

    launcher = {"inputs": [], "outputs": [], "steps": [], "workspaces": [], "scalars": []}
    with pytest.raises(EnvironmentUnfit, match="needs the package cuda-bindings"):
        DevicePlan(LoadablePlan(launcher, {}, (), 256), "a_kernel_v1", 0)


def test_the_launcher_that_timed_the_plans_is_loaded_from_its_file_and_no_package_imports_it(monkeypatch):
    from forge.adopt import plan_function

    bindings = ModuleType("cuda.bindings")
    bindings.driver = ModuleType("cuda.bindings.driver")  # type: ignore[attr-defined]  # stands for the GPU's driver
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "forge.guest.plan_launcher", None)
    launcher = plan_function._launcher.__wrapped__()
    assert launcher.__file__ == str(Path(forge.__file__).with_name("guest") / "plan_launcher.py")
    assert {"PlanFunction", "LaunchError", "checked"} <= vars(launcher).keys()
