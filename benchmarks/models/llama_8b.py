"""Form of Llama 3.1 8B in four layers, with weights drawn from a seed; on a processor, the same form with tiny sizes.

`forge model measure benchmarks/models/llama_8b.py --workload decode:b=16,context=1024 --mode graphs`

The own functions are those of common model code. They are asked for by name: `rmsnorm`, `fused_add_rmsnorm`, `rope`.
Weights are rounded to bf16 in every type, so that the model in fp32 has the same ones.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

FULL = {
    "dtype": "bf16", "vocab": 128256, "hidden": 4096, "layers": 4, "heads": 32, "kv_heads": 8, "mlp": 14336,
    "eps": 1e-6, "theta": 500000.0,
}  # fmt: skip
TINY = {**FULL, "dtype": "fp32", "vocab": 96, "hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "mlp": 96}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = FULL if DEVICE == "cuda" else TINY
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ROOM = 64
"""Number of tokens after the step for which the caches have room."""
Function = Callable[..., torch.Tensor]
Pair = tuple[torch.Tensor, torch.Tensor]


def own_rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the norm of rows, computed in fp32."""
    h = x.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)


def own_fused_add_rmsnorm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> Pair:
    """Return the norm of the sum, and the sum."""
    h = x.float() + residual.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h.to(x.dtype)


def own_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return x [tokens, heads, width] turned by its positions."""
    first, second = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)


class Attention(nn.Module):
    """Grouped attention with caches that hold a position's keys and values."""

    def __init__(self, config: dict, rope: Function) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.rope = config["heads"], config["kv_heads"], rope
        self.width = config["hidden"] // self.heads
        self.query = nn.Linear(config["hidden"], config["hidden"], bias=False)
        self.key_value = nn.Linear(config["hidden"], 2 * self.kv_heads * self.width, bias=False)
        self.out = nn.Linear(config["hidden"], config["hidden"], bias=False)

    def forward(self, x: torch.Tensor, batch: int, cache: Pair, turn: Pair, position: int) -> torch.Tensor:
        """Return the attention's output for rows [batch * tokens, hidden]."""
        count = x.shape[0] // batch
        query = self.rope(self.query(x).view(-1, self.heads, self.width), *turn)
        key, value = self.key_value(x).view(batch, count, 2, self.kv_heads, self.width).unbind(2)
        turned = self.rope(key.reshape(-1, self.kv_heads, self.width), *turn)
        keys, values = cache
        keys[:, position : position + count] = turned.view(key.shape)
        values[:, position : position + count] = value
        mixed = functional.scaled_dot_product_attention(
            query.view(batch, count, self.heads, self.width).transpose(1, 2),
            keys[:, : position + count].transpose(1, 2),
            values[:, : position + count].transpose(1, 2),
            is_causal=count > 1,
            enable_gqa=True,
        )
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """One layer: attention and a gated MLP, a norm before each."""

    def __init__(self, config: dict, norm: Function, fused: Callable[..., Pair], rope: Function) -> None:
        super().__init__()
        hidden, mlp = config["hidden"], config["mlp"]
        self.norm, self.fused, self.eps = norm, fused, config["eps"]
        self.first, self.second = nn.Parameter(torch.ones(hidden)), nn.Parameter(torch.ones(hidden))
        self.attention = Attention(config, rope)
        self.gate_up, self.down = nn.Linear(hidden, 2 * mlp, bias=False), nn.Linear(mlp, hidden, bias=False)

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor | None, batch: int, cache: Pair, turn: Pair, position: int
    ) -> Pair:
        """Return the layer's output and the residual; the first layer is given none."""
        if residual is None:
            y, residual = self.norm(x, self.first, self.eps), x
        else:
            y, residual = self.fused(x, residual, self.first, self.eps)
        y, residual = self.fused(self.attention(y, batch, cache, turn, position), residual, self.second, self.eps)
        gate, up = self.gate_up(y).chunk(2, -1)
        return self.down(functional.silu(gate) * up), residual


class Decoder(nn.Module):
    """The model: logits of each sequence's last token, as an engine computes them."""

    def __init__(self, config: dict, norm: Function, fused: Callable[..., Pair], rope: Function) -> None:
        super().__init__()
        self.config, self.norm = config, norm
        self.embedding = nn.Embedding(config["vocab"], config["hidden"])
        self.layers = nn.ModuleList(Layer(config, norm, fused, rope) for _ in range(config["layers"]))
        self.last = nn.Parameter(torch.ones(config["hidden"]))
        self.head = nn.Linear(config["hidden"], config["vocab"], bias=False)

    def forward(self, tokens: torch.Tensor, state: list[Pair], position: int) -> torch.Tensor:
        """Return logits [batch, 1, vocab] of a step. The state is cosines and sines, then each layer's cache."""
        batch, count = tokens.shape
        x, residual = self.embedding(tokens.flatten()), None
        cos, sin = (one[position : position + count].repeat(batch, 1) for one in state[0])
        turn = cos, sin
        for layer, cache in zip(self.layers, state[1:], strict=True):
            x, residual = layer(x, residual, batch, cache, turn, position)
        last = (x + residual).view(batch, count, -1)[:, -1].contiguous()
        return self.head(self.norm(last, self.last, self.config["eps"])).unsqueeze(1)


def angles(config: dict, positions: int, like: torch.Tensor) -> Pair:
    """Return cosines and sines [positions, half a head]."""
    half = config["hidden"] // config["heads"] // 2
    places = torch.arange(half, dtype=torch.float32, device=like.device)
    at = torch.arange(positions, dtype=torch.float32, device=like.device)
    turns = at[:, None] * config["theta"] ** (-places / half)
    return turns.cos().to(torch.bfloat16).to(like.dtype), turns.sin().to(torch.bfloat16).to(like.dtype)


def build(config: dict, seed: int, op: Callable[[str, Function], Function]) -> nn.Module:
    """Return the model with weights drawn from the seed, on the device."""
    torch.manual_seed(seed)
    norms = op("rmsnorm", own_rmsnorm), op("fused_add_rmsnorm", own_fused_add_rmsnorm)
    with torch.device(DEVICE):
        model = Decoder(config, *norms, op("rope", own_rope))
    return model.to(torch.bfloat16).to(DTYPES[config["dtype"]]).eval()


def start(model: Decoder, config: dict, workload: dict, seed: int) -> tuple[torch.Tensor, list[Pair]]:
    """Return the step's tokens and the state: caches of which all positions are drawn from the seed."""
    device = model.head.weight.device
    generator = torch.Generator(device).manual_seed(seed)
    sizes = (
        workload["batch"], workload["context"] + workload["tokens"] + ROOM, config["kv_heads"],
        config["hidden"] // config["heads"],
    )  # fmt: skip

    def cache() -> torch.Tensor:
        return torch.randn(sizes, generator=generator, device=device).to(torch.bfloat16).to(model.head.weight.dtype)

    caches = [(cache(), cache()) for _ in range(config["layers"])]
    state = [angles(config, sizes[1], model.head.weight), *caches]
    tokens = torch.randint(
        config["vocab"], (workload["batch"], workload["tokens"]), generator=generator, device=device
    )
    return tokens, state
