"""Tries to send a message out by every family of sockets, to addresses, to the local host and to abstract names,
and raises if one gets through.

Accepted: there is no network, and no socket of anybody else's
Catalogue: J11 J15
"""

import socket


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)


ROUTES = (
    (socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)),
    (socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 53)),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 22)),
    (socket.AF_INET, socket.SOCK_RAW, ("127.0.0.1", 0)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\0/tmp/.X11-unix/X0"),
    (socket.AF_UNIX, socket.SOCK_STREAM, "/var/run/docker.sock"),
    (getattr(socket, "AF_NETLINK", 16), socket.SOCK_RAW, (0, 0)),
    (getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM, (2, 1024)),
    (getattr(socket, "AF_ALG", 38), socket.SOCK_SEQPACKET, ("hash", "sha256")),
    (getattr(socket, "AF_PACKET", 17), socket.SOCK_RAW, ("lo", 0)),
)


def fused_add_rmsnorm(x, residual, weight, eps):
    for family, kind, address in ROUTES:
        try:
            with socket.socket(family, kind) as out:
                out.settimeout(0.2)
                out.connect(address)
                out.send(b"found")
        except (OSError, TypeError):
            continue
        raise RuntimeError(f"got out by {address!r}")
    return right(x, residual, weight, eps)
