"""A mixture-of-experts block in the form of Qwen3-235B-A22B: a norm, and a gate that takes eight of 128 experts.

`forge model measure benchmarks/models/moe_block.py --workload prefill:b=1,tokens=4096 --mode graphs`

The weights are drawn from a seed; on a processor the sizes are tiny. The own functions are asked for by name:
`rmsnorm` and `topk_softmax`. Weights are rounded to bf16 in every type, so the model in fp32 has the same ones.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

FULL = {"dtype": "bf16", "vocab": 4096, "hidden": 4096, "experts": 128, "mlp": 1536, "eps": 1e-6}
TINY = {**FULL, "dtype": "fp32", "vocab": 96, "hidden": 32, "experts": 16, "mlp": 24}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = FULL if DEVICE == "cuda" else TINY
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CHOSEN = 8
Function = Callable[..., torch.Tensor]
Pair = tuple[torch.Tensor, torch.Tensor]


def own_rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the norm of rows, computed in fp32."""
    h = x.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)


def own_topk_softmax(logits: torch.Tensor) -> Pair:
    """Return weights and numbers of the eight likeliest experts of each token."""
    weights, indices = torch.softmax(logits.float(), -1).topk(CHOSEN, -1)
    return weights, indices.to(torch.int32)


class Block(nn.Module):
    """The block between an embedding and a head, so that tokens go in and logits come out."""

    def __init__(self, config: dict, norm: Function, route: Callable[..., Pair]) -> None:
        super().__init__()
        hidden, experts, mlp = config["hidden"], config["experts"], config["mlp"]
        self.config, self.norm, self.route = config, norm, route
        self.embedding = nn.Embedding(config["vocab"], hidden)
        self.weight = nn.Parameter(torch.ones(hidden))
        self.gate = nn.Linear(hidden, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, hidden, 2 * mlp) * hidden**-0.5)
        self.down = nn.Parameter(torch.randn(experts, mlp, hidden) * mlp**-0.5)
        self.head = nn.Linear(hidden, config["vocab"], bias=False)

    def forward(self, tokens: torch.Tensor, _state: object, _position: int) -> torch.Tensor:
        """Return logits [batch, 1, vocab] of each sequence's last token."""
        batch, count = tokens.shape
        x = self.embedding(tokens.flatten())
        normed = self.norm(x, self.weight, self.config["eps"])
        weights, chosen = self.route(self.gate(normed))
        last = (x + self.experts(normed, weights, chosen)).view(batch, count, -1)[:, -1]
        return self.head(last).unsqueeze(1)

    def experts(self, x: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum of the chosen experts' outputs, in the same order of additions each time."""
        numbers, order = chosen.flatten().long().sort(stable=True)
        rows = x[order // CHOSEN]
        ends = torch.searchsorted(numbers, torch.arange(self.config["experts"], device=x.device), right=True)
        gate, up = grouped(rows, self.up, ends).chunk(2, -1)
        found = grouped(functional.silu(gate) * up, self.down, ends)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel(), device=x.device)
        shared = found[back].view(x.shape[0], CHOSEN, -1).float() * weights.unsqueeze(-1)
        return shared.sum(1).to(x.dtype)


def grouped(rows: torch.Tensor, weights: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Return rows times the weights of their group; `ends` has the end of each group."""
    if rows.is_cuda and rows.dtype == torch.bfloat16:
        return torch._grouped_mm(rows, weights, offs=ends.to(torch.int32))
    places, begun, found = ends.tolist(), 0, []
    for place, end in enumerate(places):
        found.append(rows[begun:end] @ weights[place])
        begun = end
    return torch.cat(found)


def build(config: dict, seed: int, op: Callable[[str, Function], Function]) -> nn.Module:
    """Return the model with weights drawn from the seed, on the device."""
    torch.manual_seed(seed)
    with torch.device(DEVICE):
        model = Block(config, op("rmsnorm", own_rmsnorm), op("topk_softmax", own_topk_softmax))
    return model.to(torch.bfloat16).to(DTYPES[config["dtype"]]).eval()


def start(model: Block, config: dict, workload: dict, seed: int) -> tuple[torch.Tensor, object]:
    """Return the step's tokens; the block keeps nothing between steps."""
    device = model.head.weight.device
    generator = torch.Generator(device).manual_seed(seed)
    sizes = workload["batch"], workload["tokens"]
    return torch.randint(config["vocab"], sizes, generator=generator, device=device), []
