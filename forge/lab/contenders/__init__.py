"""Finds which contenders are here, asks whether they are right, and ranks them; the fastest are measured in full."""
