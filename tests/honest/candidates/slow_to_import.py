"""Imports many modules and takes two seconds over it."""

import asyncio  # noqa: F401
import decimal  # noqa: F401
import email.message  # noqa: F401
import fractions  # noqa: F401
import http.client  # noqa: F401
import sqlite3  # noqa: F401
import time
import xml.dom.minidom  # noqa: F401

import torch
import torch.nn.functional as F
import torch.utils.data

time.sleep(2)


def fused_add_rmsnorm(x, residual, weight, eps):
    h = torch.add(x, residual)
    return F.rms_norm(h, (h.shape[-1],), weight=weight, eps=eps), h
