"""A small decoder of the Llama form: RMSNorm, rotary positions, grouped attention with caches, a gated MLP.

`build` draws the weights from a seed; nothing is downloaded. Its norms ask for `fused_add_rmsnorm` by name.
"""

import torch
from torch import nn

CONFIG = {"dtype": "fp32", "vocab": 96, "hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "mlp": 96, "eps": 1e-6}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ROOM = 64
"""Number of tokens after the context that the caches have room for."""


def own_norm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


def rotated(x, position):
    half = x.shape[-1] // 2
    angles = torch.arange(position, position + x.shape[1], dtype=torch.float32, device=x.device)[:, None]
    angles = angles * 10_000.0 ** (-torch.arange(half, dtype=torch.float32, device=x.device) / half)
    sine, cosine = angles.sin()[:, None].to(x.dtype), angles.cos()[:, None].to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, self.heads, self.kv_heads = config["hidden"], config["heads"], config["kv_heads"]
        self.width = hidden // self.heads
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key_value = nn.Linear(hidden, 2 * self.kv_heads * self.width, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, cache, position):
        batch, count, _ = x.shape
        query = rotated(self.query(x).view(batch, count, self.heads, self.width), position)
        key, value = self.key_value(x).view(batch, count, 2 * self.kv_heads, self.width).chunk(2, 2)
        keys, values = cache
        keys[:, position : position + count] = rotated(key, position)
        values[:, position : position + count] = value
        shared = self.heads // self.kv_heads
        seen = position + count
        k = keys[:, :seen].repeat_interleave(shared, 2).transpose(1, 2)
        v = values[:, :seen].repeat_interleave(shared, 2).transpose(1, 2)
        scores = query.transpose(1, 2) @ k.transpose(2, 3) / self.width**0.5
        later = torch.ones(count, seen, dtype=torch.bool, device=x.device).triu(position + 1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, count, -1))


class Layer(nn.Module):
    def __init__(self, config, norm):
        super().__init__()
        hidden = config["hidden"]
        self.norm, self.eps = norm, config["eps"]
        self.first, self.second = (nn.Parameter(torch.ones(hidden)) for _ in range(2))
        self.attention = Attention(config)
        self.gate = nn.Linear(hidden, config["mlp"], bias=False)
        self.up = nn.Linear(hidden, config["mlp"], bias=False)
        self.down = nn.Linear(config["mlp"], hidden, bias=False)

    def normed(self, x, residual, weight):
        y, h = self.norm(x.reshape(-1, x.shape[-1]), residual.reshape(-1, x.shape[-1]), weight, self.eps)
        return y.view(x.shape), h.view(x.shape)

    def forward(self, x, residual, cache, position):
        y, residual = self.normed(x, residual, self.first)
        y, residual = self.normed(self.attention(y, cache, position), residual, self.second)
        return self.down(nn.functional.silu(self.gate(y)) * self.up(y)), residual


class Decoder(nn.Module):
    def __init__(self, config, norm):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config["vocab"], config["hidden"])
        self.layers = nn.ModuleList(Layer(config, norm) for _ in range(config["layers"]))
        self.head = nn.Linear(config["hidden"], config["vocab"], bias=False)

    def forward(self, tokens, state, position):
        x = self.embedding(tokens)
        residual = torch.zeros_like(x)
        for layer, cache in zip(self.layers, state, strict=True):
            x, residual = layer(x, residual, cache, position)
        return self.head(x + residual)


def build(config, seed, op):
    torch.manual_seed(seed)
    return Decoder(config, op("fused_add_rmsnorm", own_norm)).to(DTYPES[config["dtype"]]).eval()


def start(model, config, workload, seed):
    generator = torch.Generator().manual_seed(seed)
    batch, context, tokens = workload["batch"], workload["context"], workload["tokens"]
    sizes = (batch, context + tokens + ROOM, config["kv_heads"], config["hidden"] // config["heads"])
    state = [
        tuple(torch.randn(sizes, generator=generator).to(model.head.weight) for _ in range(2))
        for _ in range(config["layers"])
    ]
    return torch.randint(config["vocab"], (batch, tokens), generator=generator), state
