"""The GPU as a tool: whether it is healthy, and which programs for it this machine has."""
