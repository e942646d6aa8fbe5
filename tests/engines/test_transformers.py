"""LlamaForCausalLM of transformers, from a configuration with random weights: its norms run adopted kernels."""

import kernels
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from forge.adopt import adopt
from forge.adopt.engines import hub
from forge.adopt.engines.transformers import kernelize, restore
from forge.errors import UsageError

LAYERS = 2
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own import warns


@pytest.fixture
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 96, "max_position_embeddings": 128}
    heads = {"num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads)).to(torch.bfloat16).eval()


TOKENS = torch.arange(12).reshape(2, 6)


def took(ops) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in ops.report().lines:
        taken = str(line["reason"] or line["backend"])
        found[taken] = found.get(taken, 0) + int(line["hits"])
    return found


def test_a_llama_runs_the_promoted_norm_in_each_layer_and_gives_the_same_answers(registry, model):
    with adopt(registry, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        before = model(TOKENS).logits
        replaced = kernelize(model, ops)
        assert len(replaced) == 2 * LAYERS + 1
        torch.testing.assert_close(model(TOKENS).logits, before, rtol=5e-2, atol=5e-2)
        assert took(ops) == {"source": 2 * LAYERS + 1}
        torch.testing.assert_close(
            torch.compile(model, backend="aot_eager")(TOKENS).logits, before, rtol=5e-2, atol=5e-2
        )
        restore(model)
        assert torch.equal(model(TOKENS).logits, before)


def test_generation_with_a_cache_chooses_the_same_tokens(registry, model):
    asked = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    with adopt(registry, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        before = model.generate(TOKENS, **asked)
        kernelize(model, ops)
        found = model.generate(TOKENS, **asked)
        restore(model)
        assert torch.equal(found[:, : TOKENS.shape[1] + 1], before[:, : TOKENS.shape[1] + 1])
        assert found.shape == before.shape
        assert took(ops)["source"] == 8 * (2 * LAYERS + 1)


def test_the_hub_layout_answers_for_the_layers_that_transformers_asks_for(registry, model, tmp_path):
    with adopt(registry, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        before = model(TOKENS).logits
        repository = kernels.LocalLayerRepository(hub.write_layers(tmp_path / "layers", ops), layer_name=hub.LAYER)
        with kernels.use_kernel_mapping({hub.LAYER: {"cpu": repository}}, inherit_mapping=False):
            mode = kernels.Mode.INFERENCE | kernels.Mode.TORCH_COMPILE
            kernels.kernelize(model, mode=mode, device="cpu")
        torch.testing.assert_close(model(TOKENS).logits, before, rtol=5e-2, atol=5e-2)
        assert took(ops) == {"source": 2 * LAYERS + 1}


def test_a_folder_with_other_files_is_not_written_over(registry, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with adopt(registry, trust="promoted", refresh_s=0) as ops, pytest.raises(UsageError, match="new folder"):
        hub.write_layers(tmp_path, ops)
