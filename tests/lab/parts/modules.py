"""Ten modules in KernelBench's form, with the number of parts and of different parts that each has."""

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"


def module(init: str, forward: str, inputs: str) -> str:
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "".join(f"        {line}\n" for line in init.splitlines() or ["pass"])
        + "".join(f"    {line}\n" for line in forward.splitlines())
        + f"\n\ndef get_inputs():\n    return [{inputs}]\n"
    )


X = "torch.randn(4, 16)"
MODULES: dict[str, tuple[str, int | None, int | None]] = {
    "mlp": (
        module(
            "self.a, self.b, self.c = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 32)\n"
            "self.d = nn.Linear(32, 8)",
            "def forward(self, x):\n    x = F.gelu(self.a(x))\n    x = F.gelu(self.b(x))\n    x = F.gelu(self.c(x))\n"
            "    return self.d(x)",
            X,
        ),
        4,
        3,
    ),
    "transformer_block": (
        module(
            "self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)\n"
            "self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)\n"
            "self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)",
            "def forward(self, x):\n    q = self.qkv(self.n1(x))\n"
            "    q, k, v = q.view(2, 8, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)\n"
            "    a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 8, 16)\n"
            "    x = x + self.out(a)\n    return x + self.down(F.gelu(self.up(self.n2(x))))",
            "torch.randn(2, 8, 16)",
        ),
        7,
        6,
    ),
    "convolution_with_residual": (
        module(
            "self.a, self.b = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)\n"
            "self.p = nn.AdaptiveAvgPool2d(1)\n"
            "self.f = nn.Linear(8, 4)",
            "def forward(self, x):\n    x = F.relu(self.b(F.relu(self.a(x))) + x)\n"
            "    return self.f(self.p(x).flatten(1))",
            "torch.randn(2, 8, 6, 6)",
        ),
        4,
        4,
    ),
    "moe_gate": (
        module(
            "self.g = nn.Linear(16, 8)\nself.o = nn.Linear(2, 4)",
            "def forward(self, x):\n    p = torch.softmax(self.g(x), -1)\n    w, i = torch.topk(p, 2)\n"
            "    return self.o(w / w.sum(-1, keepdim=True)), i",
            X,
        ),
        5,
        5,
    ),
    "attention": (
        module(
            "",
            "def forward(self, q, k, v):\n    s = q @ k.transpose(-1, -2) * 0.25\n"
            "    return torch.softmax(s, -1) @ v",
            "*(torch.randn(2, 8, 16) for _ in range(3))",
        ),
        3,
        3,
    ),
    "shared_weights": (
        module(
            "self.a = nn.Linear(16, 16)",
            "def forward(self, x):\n    for _ in range(5):\n        x = torch.tanh(self.a(x))\n    return x",
            X,
        ),
        5,
        1,
    ),
    "two_outputs": (
        module(
            "self.a, self.b, self.c = nn.Linear(16, 8), nn.Linear(16, 8), nn.Linear(16, 16)\n"
            "self.n = nn.LayerNorm(16)",
            "def forward(self, x):\n    h = torch.relu(self.c(self.n(x)))\n"
            "    return self.a(h), torch.sigmoid(self.b(h))",
            X,
        ),
        4,
        4,
    ),
    "in_place": (
        module(
            "self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)",
            "def forward(self, x):\n    h = self.a(x)\n    h.mul_(2)\n    h += x\n    h[:, 0] = 1\n"
            "    h = torch.softmax(self.b(h), -1)\n    h.add_(1)\n    return h.sum(-1)",
            X,
        ),
        4,
        4,
    ),
    "view_heavy": (
        module(
            "",
            "def forward(self, x):\n    y = x.view(4, 2, 8).permute(1, 0, 2).reshape(2, 32)\n"
            "    y = y.t().contiguous().view(8, 8)\n"
            "    return torch.cat([y, y.flip(0)], 1).unsqueeze(0).expand(3, 8, 16) * 2",
            X,
        ),
        1,
        1,
    ),
    "data_dependent": (
        module(
            "self.a = nn.Linear(16, 16)",
            "def forward(self, x):\n    if x.sum() > 0:\n        return self.a(x)\n    return x[x > 0]",
            X,
        ),
        None,
        None,
    ),
}
"""Name -> source, parts, different parts. None: it can't be exported."""
