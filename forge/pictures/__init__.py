"""Pictures of measurements, as SVG, PNG or terminal characters. Nothing is computed here.

The same values give the same SVG and PNG, byte for byte, with the same version of matplotlib.
"""
