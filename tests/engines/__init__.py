"""Adapters inside their engines; each file is collected only where its engine is installed."""
