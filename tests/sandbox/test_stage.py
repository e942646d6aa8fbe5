"""What a stage holds of Forge: the guest of the process that made it, whatever has become of the checkout since."""

import shutil
import subprocess
import sys
from pathlib import Path

import forge

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
    found = {one.name: one.read_bytes() for one in package.iterdir()}
    made.remove()
    return found


before = staged()
for one in (Path(sys.argv[1]) / "forge").glob("**/*.py"):
    one.write_text("1 / 0")
assert staged() == before
assert len(before) > 20
"""


def test_a_host_keeps_its_guest_while_forge_is_upgraded(tmp_path: Path) -> None:
    """A guest of other bytes misunderstands the host, and a right candidate is refused for it."""
    shutil.copytree(Path(forge.__file__).parent, tmp_path / "forge", ignore=shutil.ignore_patterns("__pycache__"))
    program = [sys.executable, "-P", "-c", UPGRADED, str(tmp_path)]
    ended = subprocess.run(program, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]
