"""Python loads this first in every process of a sealed run: it puts down, and refuses, what would leave the machine.

Names are looked up and sockets connected through audit events, whichever library asks (PEP 578).
"""

import ipaddress
import json
import os
import sys
import traceback

_RECORD = os.environ.get("RAG_TEST_RECORD", "")
_LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
_SENDING = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_HERE = {"", "localhost", "ip6-localhost", "0.0.0.0", "::"}


def _is_here(host: str) -> bool:
    if host in _HERE:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _note(what: str, where: str) -> None:
    frames = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack()[:-3]]
    attempt = {"by": "python", "what": what, "where": where, "command": sys.orig_argv[:6], "stack": frames[-12:]}
    with open(_RECORD, "a", encoding="utf-8") as record:  # noqa: PTH123 # before anything else is loaded
        record.write(json.dumps(attempt) + "\n")


def _watch(event: str, args: tuple[object, ...]) -> None:
    if event in _LOOKUPS:
        first = args[0]
        host = first[0] if isinstance(first, tuple) else first
        if isinstance(host, bytes):
            host = host.decode(errors="replace")
        if isinstance(host, str) and not _is_here(host) and not _is_address(host):
            _note(event, host)
            raise ConnectionRefusedError(f"{event} {host}: this process may not leave the machine")
    elif event in _SENDING:
        address = args[_SENDING[event]]
        if isinstance(address, tuple) and len(address) > 1 and isinstance(address[0], str) and not _is_here(address[0]):
            _note(event, f"{address[0]} port {address[1]}")
            raise ConnectionRefusedError(f"{event} {address[0]}: this process may not leave the machine")


if _RECORD:
    sys.addaudithook(_watch)
