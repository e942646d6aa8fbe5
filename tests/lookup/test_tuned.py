"""An autotuned kernel that is loaded runs as it was judged, and tunes where that configuration is not offered."""

from types import ModuleType, SimpleNamespace

from forge.lookup.tuned import keep_to


class Tuner:
    """What the reader uses of Triton's tuner; `fastest` is what its clock says."""

    def __init__(self, blocks, *, most=10**9):
        self.configs = [
            SimpleNamespace(kwargs={"BLOCK": n}, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None) for n in blocks
        ]
        self.base_fn = lambda: None
        self.base_fn.__name__ = "_kernel"
        self.most, self.timed = most, []

    def prune_configs(self, named):
        return [one for one in self.configs if one.kwargs["BLOCK"] <= named.get("most", self.most)]

    def _bench(self, *_, config, **__):
        self.timed.append(config.kwargs["BLOCK"])
        return [config.kwargs["BLOCK"]] * 3

    def chosen(self, **named):
        took = {id(one): self._bench(config=one, **named) for one in self.prune_configs(named)}
        return min(self.prune_configs(named), key=lambda one: took[id(one)]).kwargs["BLOCK"]


def recorded(block, **options):
    values = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, **options}
    return [{"kernel": "_kernel", "values": {"BLOCK": block}, **values}]


def module_with(value):
    module = ModuleType("kernel")
    module.kernel = value
    return module


def test_the_recorded_configuration_is_used_without_timing():
    tuner = Tuner([64, 128, 256])
    keep_to(recorded(256), module_with(tuner))
    assert (tuner.chosen(), tuner.timed) == (256, [])


def test_a_tuner_within_heuristics_is_found():
    tuner = Tuner([64, 128])
    keep_to(recorded(128), module_with(SimpleNamespace(fn=tuner)))
    assert tuner.chosen() == 128


def test_where_its_pruning_leaves_it_out_the_tuner_tunes():
    tuner = Tuner([64, 128, 256])
    keep_to(recorded(256), module_with(tuner))
    assert (tuner.chosen(most=128), tuner.timed) == (64, [64, 128])


def test_a_configuration_that_the_kernel_doesnt_offer_changes_nothing():
    for unknown in (recorded(512), recorded(64, num_warps=8), []):
        tuner = Tuner([64, 128])
        keep_to(unknown, module_with(tuner))
        assert tuner.chosen() == 64
