"""Domains that real kernels of each operation have, for authors and for those who write tasks.

They are examples, not rules: a candidate declares its own domain, and a task may demand one. Each is written as
`parse_domain` reads it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TypicalDomain:
    """A domain that kernels of the field have."""

    conditions: str
    why: str


_ONE_BLOCK = TypicalDomain(
    "hidden_size <= 65536", "a row is one Triton block; Liger-Kernel raises beyond 65,536 columns"
)
_VECTORS = TypicalDomain(
    "hidden_size % 8 == 0, alignment == 16", "16-byte loads of eight 16-bit elements, without code for a tail"
)
_TILES = TypicalDomain("m % 128 == 0, n % 128 == 0, k % 64 == 0", "whole tiles of tensor cores, without masks")
_TMA = TypicalDomain(
    "k % 8 == 0, n % 8 == 0, alignment == 16", "TMA and CUTLASS need rows of whole 16 bytes: eight 16-bit elements"
)
_HEADS = TypicalDomain("head_dim <= 256, head_dim % 8 == 0", "FlashAttention's limit on the size of a head")
_LISTED_HEADS = TypicalDomain(
    "head_dim in 64|128|256", "one compiled kernel for each size of a head, as in FlashInfer"
)
_NORM = (_ONE_BLOCK, _VECTORS)
_VOCABULARY = TypicalDomain("batch * vocab_size <= 2147483647", "offsets in 32 bits")
TYPICAL_DOMAINS: dict[str, tuple[TypicalDomain, ...]] = {
    "rmsnorm": _NORM,
    "rmsnorm_strided": _NORM,
    "fused_add_rmsnorm": _NORM,
    "layernorm": _NORM,
    "softmax": _NORM,
    "silu_mul": _NORM,
    "gelu_mul": _NORM,
    "geglu_tanh": _NORM,
    "rope": (TypicalDomain("half_dim in 32|64|128|256", "one compiled kernel for each size of a head"),),
    "quantize_fp8": (_VECTORS,),
    "gated_rmsnorm_quant": _NORM,
    "dequant_int8": (_VECTORS,),
    "dequant_int4": (
        TypicalDomain("pairs % 4 == 0", "eight weights in a 32-bit word, as GPTQ and AWQ pack them"),
        TypicalDomain("pairs % 64 == 0", "whole groups of 128 weights that share a scale"),
    ),
    "topk_softmax": (
        TypicalDomain("experts in 1|2|4|8|16|32|64|128|256", "a power of two of experts for each warp, as in vLLM"),
    ),
    "cross_entropy": (TypicalDomain("tokens * vocab_size <= 2147483647", "offsets in 32 bits"),),
    "quantize_fp8_per_tensor": (
        TypicalDomain("batch * hidden_size <= 2147483647, alignment == 16", "16-byte loads, and offsets in 32 bits"),
    ),
    "matmul": (_TILES, _TMA),
    "matmul_bias_act": (_TILES, _TMA),
    "matmul_fp8": (
        TypicalDomain("k % 16 == 0, n % 16 == 0, alignment == 16", "rows of whole 16 bytes, as in torch._scaled_mm"),
        TypicalDomain("m % 128 == 0, n % 128 == 0, k % 128 == 0", "whole tiles of tensor cores, without masks"),
    ),
    "grouped_matmul": (_TMA, TypicalDomain("n % 128 == 0, k % 64 == 0", "whole tiles but for the rows of a group")),
    "topk_per_row": (_VOCABULARY,),
    "moe_fused_gate": (
        TypicalDomain("experts in 32|64|128|256|512", "a power of two of experts, in groups of at most one warp"),
    ),
    "sampling": (_VOCABULARY,),
    "attention_decode": (_HEADS, _LISTED_HEADS),
    "attention_prefill": (_HEADS, _LISTED_HEADS, TypicalDomain("tokens <= kv_len", "no more queries than keys")),
    "merge_attention": (
        TypicalDomain("head_dim % 8 == 0, alignment == 16", "16-byte loads of eight 16-bit elements, as in vLLM"),
    ),
    "kv_cache_append": (
        TypicalDomain("slots % 16 == 0, head_dim % 8 == 0", "pages of 16 slots, and 16-byte stores"),
    ),
}
