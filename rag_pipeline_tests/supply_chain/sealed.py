"""`unshare --net … python sealed.py RECORD COMMAND…`: runs a command where every address leads back to this machine.

In a network namespace of its own the loopback device answers for all addresses (refusing what nobody listens on), and
every packet passes it: whatever a process asks for, compiled code and child processes included, is seen and put down.
Needs root in that namespace and `ip`. The record has a JSON object a line.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Final

_EVERY_PROTOCOL: Final = 3  # ETH_P_ALL
_OUTGOING: Final = 4
_TCP, _UDP = 6, 17
_ICMP: Final = {1, 58}  # answers of this machine to itself
_DNS: Final = 53
_SETUP: Final = (
    ("link", "set", "lo", "up"),
    ("route", "add", "local", "0.0.0.0/0", "dev", "lo"),
    ("-6", "route", "add", "local", "::/0", "dev", "lo"),
)
Attempt = dict[str, Any]


def attempt_of(packet: bytes) -> Attempt | None:
    """What an IP packet asks of whom, if it begins something that leads off this machine; a name lookup always does."""
    version = packet[0] >> 4
    if version == 4:
        length, protocol = (packet[0] & 15) * 4, packet[9]
        address: IPv4Address | IPv6Address = IPv4Address(packet[16:20])
    elif version == 6:
        length, protocol, address = 40, packet[6], IPv6Address(packet[24:40])
    else:
        return None
    if protocol in _ICMP or (address.is_multicast and version == 6):  # the kernel's own neighbour discovery
        return None
    port = int.from_bytes(packet[length + 2 : length + 4], "big") if protocol in (_TCP, _UDP) else 0
    if protocol == _TCP and packet[length + 13] & 0x12 != 0x02:  # only the first packet: SYN without ACK
        return None
    if address.is_loopback and port != _DNS:
        return None
    asked = _question(packet[length + 8 :]) if (protocol, port) == (_UDP, _DNS) else ""
    return {"by": "packet", "what": f"protocol {protocol}", "where": f"{address} port {port}", "name": asked}


def _question(message: bytes) -> str:
    """The name that a DNS query asks for (RFC 1035, 4.1.2)."""
    labels, at = [], 12
    while at < len(message) and (size := message[at]):
        labels.append(message[at + 1 : at + 1 + size].decode("ascii", "replace"))
        at += 1 + size
    return ".".join(labels)


def _listen(record: Path, ended: threading.Event, heard: socket.socket) -> None:
    heard.settimeout(0.1)
    while True:
        try:
            packet, (_, _, kind, *_) = heard.recvfrom(65_535)
        except TimeoutError:
            if ended.is_set():
                return
            continue
        # Each packet passes the device twice: on its way out, and on its way back in.
        if kind == _OUTGOING and packet and (found := attempt_of(packet)):
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")


def main() -> int:
    """Seal, run, and go on listening for a moment."""
    record, command = Path(sys.argv[1]), sys.argv[2:]
    for arguments in _SETUP:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        if done.returncode and arguments[0] != "-6":  # without IPv6 there is no other way out
            print(done.stderr, file=sys.stderr)
            return 3
    ended = threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERY_PROTOCOL)) as heard:
        heard.bind(("lo", 0))
        listener = threading.Thread(target=_listen, args=(record, ended, heard))
        listener.start()
        try:
            return subprocess.run(command).returncode
        finally:
            time.sleep(0.2)
            ended.set()
            listener.join()


if __name__ == "__main__":
    sys.exit(main())
