"""The import beside the caller is whole when it is used, and silent where there is no torch."""

import subprocess
import sys

import pytest

BEGIN = "from forge.lab.torch_beside import import_torch_beside\nimport sys\n{before}\nimport_torch_beside()\n{after}"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "import torch\nprint(float(torch.ones(2).sum()))", "2.0\n"),
        ("sys.modules['torch'] = None", "", ""),
    ],
    ids=["used at once", "no torch"],
)
def test_torch_is_whole_when_it_is_used(before: str, after: str, said: str) -> None:
    program = BEGIN.format(before=before, after=after)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == (said, "")
