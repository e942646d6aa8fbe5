"""Promoted code is handed out only from bytes that match, to a caller who said so, and by nothing of ours."""

import ctypes
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forge.domain.digest import canonical, sha256
from forge.errors import BlobCorrupt, EnvironmentUnfit, LoadRefused, UsageError
from forge.lookup import Policy, Registry
from tests.lookup.asking import ASK, publish_kernels, shown_kernel

BASE = shown_kernel()
ROOT = Path(__file__).parents[2]
SOURCE = b"import sys\nCALLS = []\n\n\ndef rmsnorm(x):\n    CALLS.append(x)\n    return (__name__, x + 1)\n"
OPENING = b"""import ctypes
from pathlib import Path
LIBRARY = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so")))


def rmsnorm(x):
    return LIBRARY.add_one(x)
"""


def promote(directory: Path, files: dict[str, bytes], *, built: tuple[str, ...] = (), **changes: object) -> Registry:
    """A registry of one kernel with these files, `built` of which stand in its artifact's listing."""
    kernel = {**BASE, "kernel_id": "kernel_v1", "sha256": sha256(files["kernel.py"]), "entry_point": "rmsnorm"}
    if built:
        listed = [{"path": name, "sha256": sha256(files[name]), "size_bytes": len(files[name])} for name in built]
        files = {**files, "artifact.json": canonical({"files": listed})}
        kernel["artifact_sha256"] = sha256(files["artifact.json"])
    publish_kernels(directory, [{**kernel, **changes}])
    folder = directory / "kernels" / "kernel_v1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return Registry.open(directory)


def load(registry: Registry, **choices: object):
    return registry.load(registry.lookup(**ASK), **{"trust": "promoted", **choices})


def test_the_promoted_function_runs_and_its_module_has_a_name_of_its_own(tmp_path):
    source = SOURCE + f"# {tmp_path}\n".encode()
    load(promote(tmp_path / "other", {"kernel.py": SOURCE}))
    registry, before = promote(tmp_path, {"kernel.py": source}), dict(sys.modules)
    function = load(registry)
    name = f"forge_promoted_{sha256(source)}"
    assert function(41) == (name, 42)
    assert {key: module for key, module in sys.modules.items() if key != name} == before
    assert inspect.getsource(function).startswith("def rmsnorm(x):")
    assert load(registry) is function
    assert load(Registry.open(tmp_path)) is function


def test_what_runs_is_a_copy_that_a_publisher_cannot_reach(tmp_path):
    registry = promote(tmp_path, {"kernel.py": SOURCE + b"# a copy\n"})
    function = load(registry)
    where = Path(inspect.getfile(function))
    assert tmp_path not in where.parents
    assert where.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(tmp_path / "kernels")
    assert function(1)[1] == 2


@pytest.mark.parametrize("trust", ["", "yes", "Promoted", None, True])
def test_nothing_is_imported_without_the_callers_word(tmp_path, trust):
    registry = promote(tmp_path, {"kernel.py": b"raise SystemExit('imported')\n"})
    with pytest.raises(UsageError, match='say trust="promoted"'):
        load(registry, trust=trust)
    with pytest.raises(TypeError):
        registry.load(registry.lookup(**ASK))


def test_nothing_is_loaded_where_nothing_answers(tmp_path):
    registry = promote(tmp_path, {"kernel.py": SOURCE})
    for nothing in (registry.lookup(**{**ASK, "op": "softmax"}), None, "kernel_v1", registry.lookup(**ASK).kernel):
        with pytest.raises(UsageError, match="nothing to load"):
            registry.load(nothing, trust="promoted")


def test_bytes_that_are_not_the_promoted_ones_are_never_run(tmp_path):
    registry = promote(tmp_path, {"kernel.py": SOURCE + b"# first\n"})
    (tmp_path / "kernels" / "kernel_v1" / "kernel.py").write_bytes(b"raise SystemExit('imported')\n")
    with pytest.raises(BlobCorrupt, match="has digest"):
        load(registry)
    (tmp_path / "kernels" / "kernel_v1" / "kernel.py").unlink()
    with pytest.raises(BlobCorrupt, match="can't be read"):
        load(registry)


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ({"status": "revoked"}, "is revoked since"),
        ({"status": "evidence_invalid"}, "is evidence_invalid since"),
        ({"kernel_id": "kernel_v2"}, "isn't published any more"),
        ({"sha256": "0" * 64}, "with other bytes"),
    ],
)
def test_a_kernel_that_was_withdrawn_since_it_answered_is_not_loaded(tmp_path, then, reason):
    source = SOURCE + f"# {reason}\n".encode()
    registry = promote(tmp_path, {"kernel.py": source})
    found = registry.lookup(**ASK)
    assert registry.load(found, trust="promoted")(1)[1] == 2
    promote(tmp_path, {"kernel.py": source}, **then)
    assert registry.refresh()
    with pytest.raises(LoadRefused, match=reason):
        registry.load(found, trust="promoted")


def test_a_deprecated_kernel_is_loaded_by_whoever_accepts_one(tmp_path):
    registry = promote(tmp_path, {"kernel.py": SOURCE + b"# deprecated\n"}, status="deprecated")
    found = registry.lookup(**ASK, policy=Policy(deprecated=True))
    assert registry.load(found, trust="promoted")(1)[1] == 2


@pytest.mark.parametrize(
    ("source", "error", "reason"),
    [
        (b"import a_module_that_is_nowhere\n", EnvironmentUnfit, "a_module_that_is_nowhere"),
        (b"import ctypes\nctypes.CDLL('/nowhere/at/all.so')\n", EnvironmentUnfit, "can't be imported here"),
        (b"x = 1 / 0\n", ZeroDivisionError, "division"),
        (b"def other(): pass\n", BlobCorrupt, "no function 'rmsnorm'"),
        (b"rmsnorm = 3\n", BlobCorrupt, "no function 'rmsnorm'"),
    ],
)
def test_a_kernel_that_cannot_be_imported_leaves_nothing_behind(tmp_path, source, error, reason):
    registry = promote(tmp_path, {"kernel.py": source})
    before = set(sys.modules)
    with pytest.raises(error, match=reason):
        load(registry)
    assert {name for name in set(sys.modules) - before if "forge_promoted" in name} <= (
        set() if error is not BlobCorrupt else {f"forge_promoted_{sha256(source)}"}
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> bytes:
    """A shared object, built here."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "one.c").write_text("int add_one(int x) { return x + 1; }\n")
    command = ["gcc", "-shared", "-fPIC", str(folder / "one.c"), "-o", str(folder / "libkernel.so")]
    subprocess.run(command, check=True, capture_output=True)
    return (folder / "libkernel.so").read_bytes()


def test_a_built_kernel_is_loaded_from_the_artifact_that_was_kept(tmp_path, library):
    files = {"kernel.py": OPENING, "libkernel.so": library, "plan.json": b"{}"}
    registry = promote(tmp_path, files, built=("libkernel.so", "plan.json"), language="cpp")
    function = load(registry, abi_key=BASE["abi_key"])
    assert function(41) == 42
    assert isinstance(function.__globals__["LIBRARY"], ctypes.CDLL)


@pytest.mark.parametrize("abi_key", [None, "0" * 64])
def test_a_built_kernel_needs_the_machine_it_was_built_for(tmp_path, library, abi_key):
    files = {"kernel.py": b"raise SystemExit('imported')\n", "libkernel.so": library}
    registry = promote(tmp_path, files, built=("libkernel.so",), language="cpp")
    with pytest.raises(LoadRefused, match="was built for abi_key"):
        load(registry, abi_key=abi_key)


def test_a_library_or_a_listing_that_was_exchanged_is_never_opened(tmp_path, library):
    files = {"kernel.py": b"raise SystemExit('imported')\n", "libkernel.so": library}
    registry = promote(tmp_path, files, built=("libkernel.so",), language="cuda")
    folder = tmp_path / "kernels" / "kernel_v1"
    (folder / "libkernel.so").write_bytes(library + b"x")
    with pytest.raises(BlobCorrupt, match=r"libkernel.so' has digest"):
        load(registry, abi_key=BASE["abi_key"])
    (folder / "artifact.json").write_bytes(b'{"files":[]}')
    with pytest.raises(BlobCorrupt, match=r"artifact.json' has digest"):
        load(registry, abi_key=BASE["abi_key"])


def test_what_torch_builds_at_import_and_what_was_never_kept_are_refused_with_the_reason(tmp_path):
    source = b"raise SystemExit('imported')\n"
    extension = promote(
        tmp_path / "a", {"kernel.py": source, "softmax.so": b"x"}, built=("softmax.so",), language="cpp"
    )
    with pytest.raises(LoadRefused, match=r"asks torch to build the extension softmax.so"):
        load(extension, abi_key=BASE["abi_key"])
    unbuilt = promote(tmp_path / "b", {"kernel.py": source}, language="cuda")
    with pytest.raises(LoadRefused, match="nothing that was built from it is kept"):
        load(unbuilt, abi_key=BASE["abi_key"])


@pytest.mark.parametrize("name", ["../up.so", "a/b.so", "/tmp/x.so", "kernel.py", ".so", ""])
def test_a_listing_that_names_files_elsewhere_is_refused(tmp_path, name):
    listing = canonical({"files": [{"path": name, "sha256": "0" * 64, "size_bytes": 1}]})
    files = {"kernel.py": b"raise SystemExit('imported')\n", "artifact.json": listing}
    registry = promote(tmp_path, files, artifact_sha256=sha256(listing), language="cpp")
    with pytest.raises(BlobCorrupt, match="expected a plain name"):
        load(registry, abi_key=BASE["abi_key"])


@pytest.mark.parametrize("listing", [b"", b"[]", b"{}", b'{"files": 3}', b'{"files": [{}]}', b"[" * 100_000])
def test_a_listing_that_is_none_is_refused(tmp_path, listing):
    files = {"kernel.py": b"raise SystemExit('imported')\n", "artifact.json": listing}
    registry = promote(tmp_path, files, artifact_sha256=sha256(listing))
    with pytest.raises(BlobCorrupt, match="can't be read"):
        load(registry)


def test_the_copies_are_gone_when_the_process_ends_and_a_fork_of_it_leaves_them(tmp_path):
    promote(tmp_path, {"kernel.py": SOURCE})
    code = (
        "import inspect, os, sys\n"
        "from forge.lookup import Registry\n"
        "registry = Registry.open(sys.argv[1])\n"
        "shape = {'batch': 16, 'hidden_size': 4096}\n"
        "found = registry.lookup(op='rmsnorm', gpu='h200', dtype='bf16', shape=shape)\n"
        "where = inspect.getfile(registry.load(found, trust='promoted'))\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(where, os.path.exists(where))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=True, cwd=ROOT, text=True
    )
    where, there = done.stdout.split()
    assert there == "True"
    assert not Path(where).parent.exists()


def test_nothing_of_ours_loads_promoted_code_by_itself():
    mentioning = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "forge").rglob("*.py"))
        if "lookup.loading" in path.read_text() or 'trust="promoted"' in path.read_text()
    ]
    adoption = {"__init__", "adopting", "deciding", "settings", "engines/vllm"}  # its caller says trust="promoted"
    in_the_sandbox = {"forge/guest/model.py"}
    assert set(mentioning) == {
        "forge/lookup/registry.py",
        *(f"forge/adopt/{n}.py" for n in adoption),
        *in_the_sandbox,
    }
