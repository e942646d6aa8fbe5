"""What can be read off the source: layers, names, sizes, and who may do what."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import forge

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "forge"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in MODULES]
LINES_LIMIT = 400
VAGUE_FILES = {"utils", "util", "helpers", "helper", "common", "misc", "core", "base", "manager", "service", "tools"}
VAGUE_CLASS = re.compile(r"(Manager|Service|Handler|Helper|Util|Utils|Base)$")

MAY_CATCH_ALL = {
    "guest/__main__.py",  # whatever a candidate raises is its answer
    "guest/build.py",  # building runs the candidate
    "guest/describe.py",  # describing runs a reference file
    "adopt/choice.py",  # whatever a promoted kernel raises, the call takes its fallback
    "adopt/deciding.py",  # loading a promoted source runs it
    "adopt/transparent.py",  # loading and tracing a promoted source runs it; one that can't be traced stays opaque
    "guest/model.py",  # a model file and its kernels are foreign
    "guest/parts.py",  # taking apart runs a module, and programs in its place
    "guest/run.py",  # whatever a call raises, its inputs are looked at before the answer
    "guest/memory.py",  # it asks a candidate's own exception what it says
    "recommend/passes.py",  # a pass is other people's code, and runs after the plans are made: they stand without it
    "sandbox/guest_entry/init.py",  # between fork and exec: it tells the parent of any fault, then the process ends
}
MAY_READ_ENVIRONMENT = (
    *("app/", "guest/", "languages/", "sandbox/guest_entry/"),
    *("lookup/machine.py", "adopt/", "executor/ray.py"),
)
"""The last three: two run in an engine's process, where no composition root of Forge says what is chosen; Ray's own
settings are variables, and its workers are processes that Ray starts."""
MAY_READ_WALL_TIME = ("app/",)
ENVIRONMENT = {"os.environ", "os.getenv", "os.environb", "os.putenv"}
WALL_TIME = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
CODE_FROM_DATA = {
    "ast.literal_eval",
    "eval",
    "exec",
    "compile",
    "__import__",
    "pickle.load",
    "pickle.loads",
    "marshal.load",
    "marshal.loads",
    "shelve.open",
    "torch.load",
    "torch.save",
    "runpy.run_path",
    "runpy.run_module",
    "yaml.load",
}
BESIDE_THE_CANDIDATE = ("guest/module.py", "guest/written.py")
"""Where a literal of a contract becomes a value: in the guest's process, which the candidate shares."""
CODE_FROM_DATA_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a module; parsing all modules takes a second, and ten tests need it."""
    return tuple(ast.walk(tree_of(path)))


def dotted(node: ast.expr) -> str:
    """`a.b.c` for such an expression; what isn't a name is `(...)`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "(...)"


@cache
def used(path: Path) -> frozenset[str]:
    """Every dotted name that a module mentions, under the name it was imported by."""
    names = {dotted(node) for node in nodes_of(path) if isinstance(node, ast.Attribute | ast.Name)}
    modules = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module]
    return frozenset(names | {f"{node.module}.{alias.name}" for node in modules for alias in node.names})


def imported(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def offenders(found: set[str], *, but: tuple[str, ...] | set[str] = ()) -> list[str]:
    """Modules that mention one of `found`, outside the allowed places."""
    allowed = tuple(but)
    return [
        f"{name}: {word}"
        for name, path in zip(NAMES, MODULES, strict=True)
        if not (allowed and name.startswith(allowed))
        for word in sorted(used(path) & found)
    ]


def test_the_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    assert linter.exists(), "import-linter isn't installed: pip install -e '.[dev]'"
    answer = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 broken" in answer.stdout
    assert " 0 kept" not in answer.stdout


@pytest.mark.slow
def test_a_module_is_short_says_what_it_is_for_and_has_a_name_that_means_something() -> None:
    for name, path in zip(NAMES, MODULES, strict=True):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES_LIMIT, name
        assert path.stem not in VAGUE_FILES, name
        docstring = ast.get_docstring(tree_of(path)) or ""
        assert len(docstring.split()) >= 3, name
        if name.startswith("guest/") or re.fullmatch(r"languages/[^/]+/guest\.py", name):
            assert docstring.startswith("Runs beside hostile code."), f"the zone is visible in the file {name}"
        classes = (node for node in nodes_of(path) if isinstance(node, ast.ClassDef))
        assert [node.name for node in classes if VAGUE_CLASS.search(node.name)] == [], name


def test_no_folder_has_a_name_without_meaning() -> None:
    folders = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    assert folders & VAGUE_FILES == set()


@pytest.mark.slow
def test_only_the_ledgers_statements_and_the_projections_own_file_hold_an_insert() -> None:
    holding = [
        name
        for name, path in zip(NAMES, MODULES, strict=True)
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.search(r"\b(INSERT\s+(OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b", node.value)
    ]
    # the ranking of skills, machines that an answer leaves out, and a copy of imported rows fill
    # tables of one connection
    passing = {"ledger/audit/history.py", "pipeline/skill_ranking.py", "app/stored/leave_out_machines.py"}
    passing |= {"projections/imported.py"}
    statements = {name for name in holding if name not in passing}
    assert statements <= {"ledger/statements.py", "ledger/store.py", "projections/sqlite_file.py"}, statements


def test_only_the_store_runs_the_ledgers_inserts() -> None:
    allowed = {"ledger/statements.py", "ledger/store.py", "ledger/writing.py"}
    assert offenders({"INSERT_EVENT", "INSERT_META"}, but=allowed) == []
    writers = [name for name, path in zip(NAMES, MODULES, strict=True) if "forge.ledger.writing.write" in used(path)]
    assert writers == ["ledger/store.py"]


@pytest.mark.slow
def test_only_the_composition_root_reads_the_environment() -> None:
    assert offenders(ENVIRONMENT, but=MAY_READ_ENVIRONMENT) == []


def test_only_the_composition_root_reads_the_time_of_day() -> None:
    assert offenders(WALL_TIME, but=MAY_READ_WALL_TIME) == []


def test_nothing_is_caught_blindly_but_beside_the_guest() -> None:
    blind = set()
    for name, path in zip(NAMES, MODULES, strict=True):
        for node in nodes_of(path):
            if isinstance(node, ast.ExceptHandler):
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                reraised = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
                for one in caught:
                    word = "everything" if one is None else dotted(one)
                    if word in {"Exception", "everything"} or (word == "BaseException" and not reraised):
                        blind.add(name)
    assert blind == MAY_CATCH_ALL


def test_no_code_is_ever_made_of_data() -> None:
    assert offenders(CODE_FROM_DATA, but=BESIDE_THE_CANDIDATE) == []
    for name, path in zip(NAMES, MODULES, strict=True):
        roots = {module.split(".")[0] for module in imported(path)}
        assert roots & CODE_FROM_DATA_MODULES == set(), name


def test_the_words_for_code_made_of_data_stand_beside_the_candidate_or_in_a_list_of_what_it_may_not_use() -> None:
    holding = {
        name
        for name, path in zip(NAMES, MODULES, strict=True)
        if not name.startswith("guest/")
        if re.search(r"pickle|torch\.load|eval\(|exec\(", path.read_text(encoding="utf-8"))
    }
    assert holding == {"domain/source_text.py", "lab/triage/rules.py"}


def test_no_subprocess_goes_through_a_shell() -> None:
    for name, path in zip(NAMES, MODULES, strict=True):
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                shell = [word for word in node.keywords if word.arg == "shell"]
                assert not shell, name
                assert dotted(node.func) not in {"os.system", "os.popen"}, name


def test_the_read_side_starts_without_the_heavy_packages() -> None:
    code = "import sys, forge.lookup; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "forge" in loaded
    assert not {"torch", "numpy", "sqlmodel", "sqlalchemy", "pydantic", "typer", "orjson"} & set(loaded)


HEAVY = {"torch", "numpy", "sqlmodel", "sqlalchemy", "pydantic", "rich"}


def _loaded_by(*arguments: str, cwd: Path = ROOT) -> set[str]:
    """Return the packages that a command loads, as Python's own list of imports names them."""
    command = [sys.executable, "-X", "importtime", "-m", "forge", *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd).stderr
    return {line.rpartition("|")[2].strip().split(".")[0] for line in said.splitlines() if line.startswith("import")}


def test_the_help_of_a_command_loads_no_heavy_package() -> None:
    loaded = _loaded_by("task", "create", "--help")
    assert "typer" in loaded
    assert not HEAVY - {"pydantic"} & loaded  # the parser brings it


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_a_plain_lookup_loads_neither_the_parser_nor_the_catalogue(form: tuple[str, ...]) -> None:
    slot = (
        "--op",
        "gated_rmsnorm_quant",
        "--gpu",
        "h100",
        "--dtype",
        "bf16",
        "--shape",
        "batch=4096,hidden_size=4096",
    )
    loaded = _loaded_by("lookup", *slot, *form)
    assert "forge" in loaded
    assert (
        not (HEAVY | {"typer", "dataclasses", "inspect"} - ({"dataclasses", "inspect"} if form else set())) & loaded
    )


def test_help_loads_neither_the_parser_nor_a_command() -> None:
    loaded = _loaded_by("--help")
    assert "forge" in loaded
    assert not (HEAVY | {"typer", "dataclasses", "inspect", "json"}) & loaded


def test_one_module_compares_a_measurement_with_the_policy() -> None:
    thresholds = ("control_half_width", "replay_control_half_width", "floor_slack", "gpu_timing_authority")
    reading = {
        name
        for name, path in zip(NAMES, MODULES, strict=True)
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in thresholds
    }
    deriving = "domain/policy.py"  # it says from its own field when more rounds add nothing
    assert reading == {"pipeline/promotion_rule.py", deriving}


def test_one_function_says_which_kernel_is_on_offer() -> None:
    asking = {
        name
        for name, path in zip(NAMES, MODULES, strict=True)
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr == "newest_active"
    }
    assert asking == {"app/incumbent.py"}


def test_no_gate_asks_what_runs_the_calls_or_where_the_operation_is_from() -> None:
    asked = [
        f"{name}: {node.attr}"
        for name, path in zip(NAMES, MODULES, strict=True)
        if name.startswith("lab/gates/")
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in {"device", "interpreted", "own"}
    ]
    assert asked == [], "ask kernel.runner or kernel.definition"


def test_the_map_and_the_layers_name_every_package() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith("__")}
    assert packages <= set(re.findall(r"`(\w+)`", forge.__doc__ or ""))
    layers = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    assert packages - {"prompts", "skills"} <= set(re.findall(r"\w+", layers))
