"""When requests really start: packets on the loopback device, with the kernel's time of each.

A request starts with the SYN of its connection, or with a GET if that was used before.

    with SynLog() as log: ...
    log.seen    # Syn(time_s, address, source_port, path), in order

Needs Linux and the right to open packet sockets: ``needs("packet sockets")``.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from contextlib import suppress
from threading import Thread
from typing import NamedTuple

_ETH_P_IP = 0x0800
_SO_ATTACH_FILTER, _SO_TIMESTAMPNS = 26, 35
_STARTS = (
    (0x30, 0, 0, 9),  # the protocol ...
    (0x15, 0, 10, 6),  # ... is TCP
    (0x30, 0, 0, 33),  # its flags, behind an IP header without options ...
    (0x54, 0, 0, 0x12),
    (0x15, 6, 0, 0x02),  # ... are SYN without ACK
    (0x30, 0, 0, 32),  # or behind its own header, of so many words ...
    (0x54, 0, 0, 0xF0),
    (0x74, 0, 0, 2),
    (0x07, 0, 0, 0),
    (0x40, 0, 0, 20),  # ... begins ...
    (0x15, 0, 1, int.from_bytes(b"GET ")),  # ... a request
    (0x06, 0, 0, 128),  # 128 bytes of it
    (0x06, 0, 0, 0),
)
"""A BPF program (code, jump if true, jump if false, value)."""


class Syn(NamedTuple):
    time_s: float  # since 1970, by the kernel
    address: str
    source_port: int
    path: str = ""  # what is asked for, if the connection was used before


class SynLog:
    """Context manager; ``seen`` is complete when it is left."""

    def __init__(self) -> None:
        self.seen: list[Syn] = []
        self._opened: set[tuple[str, int]] = set()  # connections whose first request has not been sent

    def __enter__(self) -> SynLog:
        self._socket = _sniffing()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()
        self._socket.close()

    _is_over = False

    def _listen(self) -> None:
        while True:
            with suppress(TimeoutError):
                packet, told, _, _ = self._socket.recvmsg(128, 256)
                stamp = next(data for _, kind, data in told if kind == _SO_TIMESTAMPNS)
                seconds, nanoseconds = struct.unpack("qq", stamp)
                port = struct.unpack_from("!H", packet, 20)[0]
                start = Syn(seconds + nanoseconds / 1e9, socket.inet_ntoa(packet[16:20]), port)
                connection = start[1:3]
                if packet[33] & 0x02:
                    self._opened.add(connection)
                    self.seen.append(start)
                elif connection in self._opened:
                    self._opened.remove(connection)
                else:
                    asked = packet[20 + 4 * (packet[32] >> 4) :]
                    self.seen.append(start._replace(path=asked.split()[1].decode()))
                continue
            if self._is_over:
                return


def _sniffing() -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _STARTS))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_STARTS), ctypes.addressof(program)))
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    sock.bind(("lo", _ETH_P_IP))
    sock.settimeout(0.2)
    return sock
