"""What `workspace` is built on: the policy, runs as documents, what is published, and how lists are read.

Nothing here imports `workspace`.
"""
