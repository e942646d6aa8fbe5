"""What a stage holds of Forge: the guest of the process that made it, whatever has become of the checkout since."""

import importlib.util
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import forge
from forge.domain.evidence import Isolation
from forge.languages import find_language
from forge.sandbox.isolation import Walls
from forge.sandbox.stage import Program, Stage

UPGRADED = """
import sys
from pathlib import Path

from forge.domain.evidence import Isolation
from forge.languages import find_language
from forge.sandbox.stage import Program, Stage

program = Program(language=find_language("cpp"), files={"kernel.py": b""})
bare = Isolation(level="none", parts=(), missing=())


def staged():
    made = Stage(program, bare)
    package = Path(made.candidate_directory).parent / "guest"
    found = {str(one.relative_to(package)): one.read_bytes() for one in package.rglob("*.py*") if one.is_file()}
    made.remove()
    return found


before = staged()
for one in (Path(sys.argv[1]) / "forge").glob("**/*.py"):
    one.write_text("1 / 0")
assert staged() == before
assert len(before) > 40
"""


def test_a_host_keeps_its_guest_while_forge_is_upgraded(tmp_path: Path) -> None:
    """A guest of other bytes misunderstands the host, and a right candidate is refused for it."""
    shutil.copytree(Path(forge.__file__).parent, tmp_path / "forge", ignore=shutil.ignore_patterns("__pycache__"))
    program = [sys.executable, "-P", "-c", UPGRADED, str(tmp_path)]
    ended = subprocess.run(program, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]


def test_a_guest_compiles_no_file_of_forge_again_and_its_tracebacks_name_them(walls: Walls) -> None:
    isolation = Isolation(level=walls.level, parts=walls.parts, missing=walls.missing)
    stage = Stage(Program(language=find_language("torch"), files={}), isolation)
    try:
        package = Path(stage._directory) / "guest"
        for source in package.glob("*.py"):
            cached = Path(importlib.util.cache_from_source(str(source), optimization=""))
            content = cached.read_bytes()
            assert content[:4] == importlib.util.MAGIC_NUMBER
            assert content[4:8] == b"\1\0\0\0"  # taken as it is, whatever the source's time (PEP 552)
            assert content[8:16] == importlib.util.source_hash(source.read_bytes())
            assert f"/stage/guest/{source.name}".encode() in content
            assert not stat.S_IMODE(cached.stat().st_mode) & 0o022
    finally:
        stage.remove()
