"""The host's own processor, which is always available."""

from forge.platforms.platform import Platform

CPU = Platform(name="cpu", summary="the host's processor", gpu=lambda: None, available=lambda: True)
