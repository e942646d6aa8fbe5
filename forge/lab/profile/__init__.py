"""What tools see of a candidate's kernels: counters while they run, and their machine code.

Nothing here takes part in a verdict: times under a profiler aren't times, and device code can print into its output.
"""
