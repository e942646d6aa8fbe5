"""Runs beside hostile code. Finds the tensors of a module's state dict, and puts other tensors in their places."""

from collections.abc import Mapping

import torch

States = tuple[tuple[tuple[str, ...], tuple[int, ...], bool], ...]
"""Tensors of a state dict: the names of each, its sizes, and whether it is a parameter."""


class OtherStateError(Exception):
    """The module's parameters have other names or sizes than the contract's, or a buffer has other sizes."""


class Places:
    """The places where a module keeps the tensors of its state dict; a tensor that it leaves out has none."""

    def __init__(self, module: torch.nn.Module, states: States) -> None:
        has = _required_state(module, states)
        parts = dict(module.named_modules(remove_duplicate=False))
        self._module = module
        self._places = [
            [
                (parts[name.rpartition(".")[0]], name.rpartition(".")[2])
                for wanted in names
                for name in has.get(wanted, ())
            ]
            for names, _, _ in states
        ]

    def put(self, tensors: tuple[torch.Tensor, ...]) -> None:
        """Give the module its tensors: parameters without a copy, buffers as copies, since modules write to those."""
        for places, tensor in zip(self._places, tensors, strict=True):
            if not places:
                continue
            owner, leaf = places[0]
            is_parameter = owner._parameters.get(leaf) is not None
            value = torch.nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor.clone()
            for one, name in places:
                setattr(one, name, value)

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the tensors that the module's state dict has now."""
        return tuple(getattr(*places[0]) for places in self._places if places)

    def move(self, device: torch.device) -> None:
        """Move the tensors that aren't in the state dict to the operands' device."""
        self._module.to(device)


def shared(module: torch.nn.Module) -> list[tuple[tuple[str, ...], torch.Tensor]]:
    """Return the state dict's tensors in order, each once, with all of its names."""
    names: dict[tuple[object, ...], list[str]] = {}
    tensors: dict[tuple[object, ...], torch.Tensor] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.dtype) if tensor.numel() else (name,)
        names.setdefault(key, []).append(name)
        tensors.setdefault(key, tensor)
    return [(tuple(names[key]), tensors[key].detach()) for key in names]


def _required_state(module: torch.nn.Module, states: States) -> dict[str, list[str]]:
    """Return the names of the state that the module has, each with the module's own names for that tensor.

    Raises OtherStateError. Parameters may have other names if their order and sizes tell which is which. A buffer
    may be left out, as a causal mask often is, and the module may have buffers of its own. They stay as the module
    makes them, so they help no answer that is wrong. A buffer that isn't persistent is in no state dict. With a name
    and sizes of the reference's it is given all the same.
    """
    wanted = {name: sizes for names, sizes, _ in states for name in names}
    state = module.state_dict(keep_vars=True)
    has = {name: [name] for name in state if name in wanted}
    has |= _renamed(states, state, has)
    first = {id(state[own]): name for name, (own, *_) in has.items()}
    unexpected: list[str] = []
    for name in sorted(state.keys() - {own for owned in has.values() for own in owned}):
        same = first.get(id(state[name]))
        (unexpected if same is None else has[same]).append(name)
    missing = sorted(wanted.keys() - has.keys())
    sizes = sorted(name for name, (own, *_) in has.items() if wanted[name] != tuple(state[own].shape))
    parameters = {name for names, _, parameter in states if parameter for name in names}
    parameters |= {name for name, tensor in state.items() if isinstance(tensor, torch.nn.Parameter)}
    if sizes or parameters.intersection((*missing, *unexpected)):
        raise OtherStateError(f"state dict: missing {missing}, unexpected {unexpected}, of other sizes {sizes}")
    for name, buffer in module.named_buffers(remove_duplicate=False):
        if wanted.get(name) == tuple(buffer.shape):
            has.setdefault(name, [name])
    return has


def _renamed(states: States, state: Mapping[str, torch.Tensor], has: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the module's names for parameters that it lacks and has under other names: as many, of the same sizes.

    They are taken in the order of both state dicts. If that is wrong, so are the answers.
    """
    alone = [(names[0], sizes) for names, sizes, parameter in states if parameter and len(names) == 1]
    missing = [(name, sizes) for name, sizes in alone if name not in has]
    own = {id(state[name]) for name in has}
    others: dict[int, list[str]] = {}
    for name, tensor in state.items():
        if isinstance(tensor, torch.nn.Parameter) and id(tensor) not in own:
            others.setdefault(id(tensor), []).append(name)
    if [sizes for _, sizes in missing] != [tuple(state[names[0]].shape) for names in others.values()]:
        return {}
    return {name: names for (name, _), names in zip(missing, others.values(), strict=True)}
