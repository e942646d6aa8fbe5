"""Runs: their states, what comes next, why they were refused, how two of them compare."""
