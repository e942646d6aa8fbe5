"""Executors run lab jobs: here, on this machine. Another place would be another module with the same functions."""
