"""Reads what tools show of a candidate's kernels: counters while they run, and their machine code.

Nothing here takes part in a verdict: times under a profiler aren't valid, and device code can print into its output.
"""
