"""The table of models: sizes that give the published number of parameters, and exact names."""

import pytest

from forge.errors import UnknownName
from forge.recommend import MODELS, find_model

ACTIVE = {"mixtral-8x7b": 12.9e9, "mixtral-8x22b": 39e9, "qwen3-30b-a3b": 3.3e9, "qwen3-235b-a22b": 22e9}
"""Parameters a token passes through, as the authors state them, both embeddings included."""


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda one: one.name)
def test_the_sizes_give_the_published_number_of_parameters(model) -> None:
    assert model.parameters == pytest.approx(model.published_parameters, rel=0.01)


@pytest.mark.parametrize(("name", "active"), ACTIVE.items())
def test_a_mixture_of_experts_passes_each_token_through_the_published_number(name, active) -> None:
    model = MODELS[name]
    assert model.experts is not None
    passed = model.block_parameters(model.experts.chosen) + 2 * model.embedding_parameters
    assert passed == pytest.approx(active, rel=0.02)


def test_deepseek_passes_each_token_through_37_billion_parameters() -> None:
    """Its authors count the output layer and not the embedding: arXiv:2412.19437, section 4.2."""
    model = MODELS["deepseek-v3"]
    assert model.block_parameters(8) + model.embedding_parameters == pytest.approx(37e9, rel=0.02)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda one: one.name)
def test_heads_group_evenly_and_local_layers_have_a_window(model) -> None:
    assert model.heads % model.kv_heads == 0
    assert (model.local_layers > 0) == (model.window is not None)
    assert model.local_layers < model.layers


def test_about_twenty_models_of_several_authors_are_there() -> None:
    wanted = "llama3.2-1b llama3.1-405b qwen2.5-7b qwen3-30b-a3b mistral-7b mixtral-8x7b deepseek-v3 gemma3-27b phi-4"
    assert set(wanted.split()) <= set(MODELS)
    assert len(MODELS) >= 20
    assert any(model.purpose == "embed" for model in MODELS.values())


def test_a_model_is_found_by_its_name_or_its_repository_and_by_no_beginning_of_them() -> None:
    assert find_model("LLAMA3.1-8B") is MODELS["llama3.1-8b"]
    assert find_model("Qwen/Qwen2.5-7B-Instruct") is MODELS["qwen2.5-7b"]
    for name in ("", "llama", "llama3.1", "llama3.1-8b-instruct2", "../llama3.1-8b"):
        with pytest.raises(UnknownName, match="unknown model"):
            find_model(name)
    with pytest.raises(UnknownName, match=r"nearest: llama3\.1-8b"):
        find_model("llama3.1-8")
