"""What a language model's published configuration says of its size."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Value

Count = Annotated[int, Field(gt=0)]
Activation = Literal["silu", "gelu"]


class Experts(Value):
    """A mixture of experts in place of the feed-forward block, in all layers but the first few."""

    experts: Count
    chosen: Count
    """Number of experts that each token is sent to."""
    intermediate: Count
    shared: Annotated[int, Field(ge=0)] = 0
    """Number of further experts that every token passes through."""
    dense_layers: Annotated[int, Field(ge=0)] = 0
    """Number of layers at the beginning that have a feed-forward block of `ModelShape.intermediate` instead."""
    sigmoid_gate: bool = False
    """Whether experts are chosen by sigmoid scores within groups (DeepSeek-V3), not by a softmax."""


class Latent(Value):
    """Multi-head latent attention: keys and values are kept as one compressed vector per token.

    Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
    """

    query_rank: Count
    key_value_rank: Count
    plain_dim: Count
    """Size of the part of one head's queries and keys that isn't rotated by the position."""
    rotary_dim: Count
    value_dim: Count


class ModelShape(Value):
    """One model's sizes, named as in its configuration; all of its numbers are published."""

    name: str
    title: str
    repository: str
    """Name on the Hugging Face hub; its config.json is the source of every size here."""
    purpose: Literal["generate", "embed"] = "generate"
    published_parameters: Annotated[float, Field(gt=0)]
    """Number of parameters that its authors state. A test compares it with `parameters`, computed from the sizes."""
    layers: Count
    hidden: Count
    heads: Count
    kv_heads: Count
    head_dim: Count
    intermediate: Count
    vocabulary: Count
    context_tokens: Count
    """Length in tokens of the longest context that the model was made for."""
    tied: bool = False
    """Whether one matrix is both the embedding and the output layer."""
    activation: Activation = "silu"
    gated: bool = True
    """Whether the feed-forward block has a gate: three matrices, not two."""
    norm: Literal["rms", "layer"] = "rms"
    rotary: bool = True
    window: Count | None = None
    """Number of tokens that a layer with local attention looks back on. None: no layer has local attention."""
    local_layers: Annotated[int, Field(ge=0)] = 0
    experts: Experts | None = None
    latent: Latent | None = None
    native_bits: Literal[8, 16] = 16
    """Number of bits in which each published weight is stored."""

    @cached_property
    def dense_layers(self) -> int:
        """Number of layers with a feed-forward block instead of experts."""
        return self.layers if self.experts is None else self.experts.dense_layers

    @cached_property
    def attention_parameters(self) -> int:
        """Number of weights in one layer's attention."""
        if self.latent is None:
            return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        one, per_head = self.latent, self.latent.plain_dim + self.latent.rotary_dim
        queries = self.hidden * one.query_rank + one.query_rank * self.heads * per_head
        compressed = self.hidden * (one.key_value_rank + one.rotary_dim)
        expanded = one.key_value_rank * self.heads * (one.plain_dim + one.value_dim)
        return queries + compressed + expanded + self.heads * one.value_dim * self.hidden

    @cached_property
    def dense_parameters(self) -> int:
        """Number of weights in one layer's feed-forward block."""
        return (3 if self.gated else 2) * self.hidden * self.intermediate

    @cached_property
    def expert_parameters(self) -> int:
        """Number of weights in one expert; 0 for a model without experts."""
        return 0 if self.experts is None else 3 * self.hidden * self.experts.intermediate

    @cached_property
    def embedding_parameters(self) -> int:
        """Number of weights in the embedding, which is as large as the output layer."""
        return self.vocabulary * self.hidden

    @cached_property
    def has_output_layer(self) -> bool:
        """Whether logits over the vocabulary are computed."""
        return self.purpose == "generate"

    def block_parameters(self, experts_read: float) -> float:
        """Return the number of weights in all layers, with `experts_read` and all shared experts of each."""
        if self.experts is None:
            return self._always_read
        return self._always_read + (self.layers - self.dense_layers) * experts_read * self.expert_parameters

    @cached_property
    def _always_read(self) -> float:
        """Number of weights that every token passes through: routers and shared experts, but no chosen experts."""
        total = float(self.layers * self.attention_parameters + self.dense_layers * self.dense_parameters)
        if self.experts is None:
            return total
        each = self.experts.shared * self.expert_parameters + self.hidden * self.experts.experts
        return total + (self.layers - self.dense_layers) * each

    @cached_property
    def parameters(self) -> float:
        """Number of all weights. Norms and biases aren't counted: they are less than a thousandth."""
        copies = 1 if self.tied or not self.has_output_layer else 2
        return self.block_parameters(self.experts.experts if self.experts else 0) + copies * self.embedding_parameters

    @cached_property
    def kv_values_per_token(self) -> int:
        """Number of values that one layer caches for each token of context: keys and values, or the latent vector."""
        if self.latent is not None:
            return self.latent.key_value_rank + self.latent.rotary_dim
        return 2 * self.kv_heads * self.head_dim

    def attended(self, context_tokens: float) -> float:
        """Return the number of tokens that all layers together attend to, or cache, for a context of this length."""
        if self.window is None:
            return self.layers * context_tokens
        near = min(context_tokens, self.window)
        return self.local_layers * near + (self.layers - self.local_layers) * context_tokens
