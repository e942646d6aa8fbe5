"""Reference files with integer, index, mask, length and categorical operands, each with a right kernel, and with one
that is wrong only at an end of a range."""

from dataclasses import dataclass

TORCH = "import torch\n\n\n"


@dataclass(frozen=True)
class Example:
    """A reference, a right kernel, and wrong ones; all are functions of the same operands."""

    reference: str
    inputs: str
    right: str
    wrong: tuple[str, ...]

    @property
    def source(self) -> str:
        return TORCH + self.reference + "\n\n" + self.inputs

    @property
    def right_kernel(self) -> str:
        return TORCH + self.right

    @property
    def wrong_kernels(self) -> tuple[str, ...]:
        return tuple(TORCH + one for one in self.wrong)


POOL = """def pool(hidden, lengths):
    kept = torch.arange(hidden.shape[1]) < lengths[:, None]
    return (hidden * kept[..., None]).sum(1) / lengths[:, None]
"""
POOL_RIGHT = """def pool(hidden, lengths):
    return torch.stack([row[:length].sum(0) / length for row, length in zip(hidden, lengths.tolist())])
"""
GATHER = "def gather(table, index):\n    return table[index] * 2\n"
EMBED = """class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(1000, 16)

    def forward(self, tokens):
        return self.table(tokens).tanh()
"""
BY_KIND = """def scale(x, kind):
    factor = torch.where(kind == 2, 0.25, torch.where(kind == 1, 3.0, 1.0)).to(x.dtype)
    return x * factor[:, None]
"""
MASKED = """def masked_mean(x, mask):
    count = mask.sum(-1, keepdim=True)
    return (x * mask).sum(-1, keepdim=True) / count.clamp(min=1) + x[:, :1]
"""
PREFIX = """def last_kept(x, mask):
    return (x * mask).cumsum(-1) * mask + x.mean()
"""
SEGMENTS = """def segments(x, offsets):
    ends = torch.cat([x.new_zeros(1, x.shape[1]), x.cumsum(0)])
    return ends[offsets[1:]] - ends[offsets[:-1]]
"""
SPANS = """def spans(x, start, end):
    at = torch.arange(x.shape[1])
    kept = (at >= start[:, None]) & (at < end[:, None])
    return (x * kept).sum(-1) / (end - start)
"""
PERMUTED = "def permuted(x, order):\n    return x[order].cumsum(0)\n"
STEPS = """def steps(x, t):
    angle = t[:, None].to(x.dtype) * torch.exp(-torch.arange(8).to(x.dtype))
    return torch.cat([x, angle.sin(), angle.cos()], -1)
"""

EXAMPLES = {
    "lengths of rows": Example(
        POOL,
        "def get_inputs():\n    return [torch.randn(16, 128, 24), torch.randint(1, 129, (16,))]\n",
        POOL_RIGHT,
        tuple(POOL_RIGHT.replace("row[:length]", f"row[:{k}]") for k in ("max(8, length)", "min(127, length)")),
    ),
    "an index into a large table": Example(
        GATHER,
        "def get_inputs():\n    return [torch.randn(50000, 8), torch.randint(0, 50000, (16,))]\n",
        "def gather(table, index):\n    return 2 * table.index_select(0, index)\n",
        ("def gather(table, index):\n    return 2 * table.index_select(0, index.clamp(max=49998))\n",),
    ),
    "tokens of a vocabulary": Example(
        EMBED,
        "def get_inputs():\n    return [torch.randint(0, 1000, (4, 32))]\n",
        "def kernel(tokens, table):\n    return torch.tanh(table[tokens])\n",
        ("def kernel(tokens, table):\n    return torch.tanh(table[tokens]) * (tokens != 0)[..., None]\n",),
    ),
    "a category that is rare": Example(
        BY_KIND,
        "def get_inputs():\n    rare = torch.tensor([0.98, 0.019, 0.001])\n"
        "    return [torch.randn(24, 16), torch.multinomial(rare, 24, replacement=True)]\n",
        "def scale(x, kind):\n    return x * torch.tensor([1.0, 3.0, 0.25])[kind][:, None]\n",
        ("def scale(x, kind):\n    return x * torch.tensor([1.0, 3.0, 3.0])[kind][:, None]\n",),
    ),
    "a mask that leaves nothing": Example(
        MASKED,
        "def get_inputs():\n    return [torch.randn(8, 64), torch.rand(8, 64) < 0.5]\n",
        "def masked_mean(x, mask):\n    n = mask.sum(-1, keepdim=True).clamp(min=1)\n"
        "    return torch.where(mask, x, 0.0).sum(-1, keepdim=True) / n + x[:, :1]\n",
        (
            "def masked_mean(x, mask):\n    mask = mask | ~mask.any(-1, keepdim=True)\n"
            "    n = mask.sum(-1, keepdim=True)\n"
            "    return torch.where(mask, x, 0.0).sum(-1, keepdim=True) / n + x[:, :1]\n",
            "def masked_mean(x, mask):\n    n = mask.sum(-1, keepdim=True)\n"
            "    mean = torch.where(mask, x, 0.0).sum(-1, keepdim=True) / n.clamp(min=1)\n"
            "    return torch.where(n == 1, x[:, :1], mean) + x[:, :1]\n",
        ),
    ),
    "a mask of prefixes": Example(
        PREFIX,
        "def get_inputs():\n    return [torch.randn(6, 200), torch.arange(200) < torch.randint(1, 201, (6, 1))]\n",
        "def last_kept(x, mask):\n    return torch.where(mask, (x * mask).cumsum(-1), 0.0) + x.mean()\n",
        (
            "def last_kept(x, mask):\n    mask = mask & (torch.arange(200) < 199)\n"
            "    return torch.where(mask, (x * mask).cumsum(-1), 0.0) + x.mean()\n",
        ),
    ),
    "offsets that are in order": Example(
        SEGMENTS,
        "def get_inputs():\n    lengths = torch.randint(0, 33, (8,))\n"
        "    return [torch.randn(256, 4), torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])]\n",
        "def segments(x, offsets):\n    at = offsets.tolist()\n"
        "    return torch.stack([x[one:other].sum(0) for one, other in zip(at, at[1:])])\n",
        (
            "def segments(x, offsets):\n    at = offsets.tolist()\n"
            "    return torch.stack([x[one:max(other, one + 1)].sum(0) for one, other in zip(at, at[1:])])\n",
        ),
    ),
    "an end behind its start": Example(
        SPANS,
        "def get_inputs():\n    start = torch.randint(0, 256, (16,))\n"
        "    return [torch.randn(16, 512), start, start + torch.randint(1, 257, (16,))]\n",
        "def spans(x, start, end):\n    sums = torch.nn.functional.pad(x.double().cumsum(-1), (1, 0))\n"
        "    total = sums.gather(1, end[:, None]) - sums.gather(1, start[:, None])\n"
        "    return (total[:, 0] / (end - start)).float()\n",
        (
            "def spans(x, start, end):\n    sums = torch.nn.functional.pad(x.double().cumsum(-1), (1, 0))\n"
            "    total = sums.gather(1, end[:, None].clamp(max=510)) - sums.gather(1, start[:, None])\n"
            "    return (total[:, 0] / (end - start)).float()\n",
        ),
    ),
    "a permutation": Example(
        PERMUTED,
        "def get_inputs():\n    return [torch.randn(64, 8), torch.randperm(64)]\n",
        "def permuted(x, order):\n    return torch.cumsum(x.index_select(0, order), 0)\n",
        ("def permuted(x, order):\n    return torch.cumsum(x.index_select(0, order.clamp(max=62)), 0)\n",),
    ),
    "steps from zero": Example(
        STEPS,
        "def get_inputs():\n    return [torch.randn(4, 8), torch.randint(0, 1000, (4,))]\n",
        "def steps(x, t):\n    angle = t[:, None].float() * torch.exp(-torch.arange(8.0))\n"
        "    return torch.cat([x, torch.sin(angle), torch.cos(angle)], -1)\n",
        (
            "def steps(x, t):\n    angle = t[:, None].clamp(min=1).float() * torch.exp(-torch.arange(8.0))\n"
            "    return torch.cat([x, torch.sin(angle), torch.cos(angle)], -1)\n",
        ),
    ),
}
