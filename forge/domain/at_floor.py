"""Says from where on a time is at its floor."""

AT_FLOOR = 0.85
"""Share of the shortest possible time above which hardly anything is left to gain. Chosen: at 0.85 a kernel can get
1.18 times faster at most, which is 1 / 0.85."""
