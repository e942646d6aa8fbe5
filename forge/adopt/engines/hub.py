"""Writes adopted operations as a folder of layers in the layout of the Hugging Face `kernels` package.

`transformers` asks that package for replacements of its layers by name; the folder answers for `RMSNorm`. A layer
only calls `torch.ops.forge.rmsnorm`, so that the guards, the fallback and the report are those of every adopted call.
The process adopts the registry itself; without that, a layer raises an error of torch.
"""

import json
from pathlib import Path

from forge.adopt.adopting import Adopted
from forge.errors import UsageError

LAYER, OP = "RMSNorm", "rmsnorm"
VARIANT = Path("build", "torch-universal")
"""Folder of a kernel in Python alone, which fits every version of torch and every device."""
METADATA = {
    "name": "forge-layers",
    "version": 1,
    "license": "Apache-2.0",
    "python-depends": [],
    "backend": {"type": "cpu"},
}
LAYERS = '''"""Layers that call adopted operations. Adopt the registry in this process first."""

import torch


class RMSNorm(torch.nn.Module):
    """The norm of a Llama: rows over their root mean square, times a weight."""

    can_torch_compile = True

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Return the norm of the last dimension."""
        rows = hidden_states.reshape(-1, hidden_states.shape[-1])
        return torch.ops.forge.rmsnorm(rows, self.weight, self.variance_epsilon).view(hidden_states.shape)
'''


def write_layers(folder: Path, ops: Adopted) -> Path:
    """Write the folder and return it; raise UsageError if `rmsnorm` isn't adopted or the folder has other files."""
    if OP not in ops.operations:
        raise UsageError(
            f"{OP!r} isn't adopted: expected it among the ops of adopt(), which has {sorted(ops.operations)}"
        )
    files = {
        "__init__.py": '"""Layers of Forge."""\n\nfrom . import layers\n\n__all__ = ["layers"]\n',
        "layers.py": LAYERS,
        "metadata.json": json.dumps({**METADATA, "id": f"forge_layers_{ops.generation[:12]}"}, indent=1) + "\n",
    }
    target = folder / VARIANT
    if folder.exists() and {path.name for path in folder.iterdir()} - {"build"}:
        raise UsageError(
            f"{str(folder)!r} has files of its own: expected a folder that doesn't exist; give another name"
        )
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (target / name).write_text(content, encoding="utf-8")
    return folder
