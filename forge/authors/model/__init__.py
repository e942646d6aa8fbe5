"""The author that asks a language model: what it asks, how its answers are read, and which step follows."""
