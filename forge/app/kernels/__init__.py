"""Kernels after their promotion: looked up, doubted, withdrawn, and what led to them."""
