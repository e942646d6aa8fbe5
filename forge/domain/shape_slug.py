"""Writes a shape as an identifier. It imports nothing heavy, so that an audit stays quick."""

from collections.abc import Mapping

AXIS_ABBREVIATIONS = {"batch": "b", "hidden_size": "h", "seq_len": "s", "heads": "n"}


def shape_slug(shape: Mapping[str, int]) -> str:
    """Return a shape as an identifier, `b16_h4096`: axes in name order, common ones abbreviated."""
    return "_".join(f"{AXIS_ABBREVIATIONS.get(axis, axis.replace('_', ''))}{shape[axis]}" for axis in sorted(shape))
