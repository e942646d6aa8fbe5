"""Pictures of what was measured: plain values in, SVG, PNG or a terminal's characters out. Nothing is computed here.

The same values give the same SVG and PNG, byte for byte, with the same version of matplotlib.
"""
