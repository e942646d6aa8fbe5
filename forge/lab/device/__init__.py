"""Handles the GPU as a tool: whether it works, and which programs for it this machine has."""
