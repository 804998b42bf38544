"""Who alerts are told to: a real HTTP server and a real SMTP server on this machine."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Posts:
    """An HTTP server that keeps what is POSTed to it."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.status = 200
        self.answer: bytes = b"ok"
        self.url = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.taken]


@contextmanager
def http_receiver() -> Iterator[Posts]:
    posts = Posts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if posts.status == 200:
                posts.taken.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(posts.status)
            self.send_header("content-length", str(len(posts.answer)))
            self.end_headers()
            self.wfile.write(posts.answer)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    posts.url = f"http://127.0.0.1:{server.server_port}"
    with _served(server):
        yield posts


class Mails:
    """An SMTP server that keeps what it takes."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[str], Message]] = []
        self.refuse = False
        self.port = 0


@contextmanager
def smtp_receiver() -> Iterator[Mails]:
    mails = Mails()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            sender, recipients = "", []
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                match line.upper().split(":")[0].split()[0]:
                    case "EHLO" | "HELO":
                        self.say("250 here")
                    case "MAIL":
                        sender = line.partition(":")[2].split()[0].strip("<>")
                        self.say("451 try later" if mails.refuse else "250 ok")
                    case "RCPT":
                        recipients.append(line.partition(":")[2].strip(" <>"))
                        self.say("250 ok")
                    case "DATA":
                        self.say("354 go on")
                        content = b""
                        while (part := self.rfile.readline()) != b".\r\n":
                            content += part.removeprefix(b".") if part.startswith(b"..") else part
                        mails.taken.append((sender, recipients, message_from_bytes(content)))
                        self.say("250 taken")
                    case "QUIT":
                        self.say("221 bye")
                        return
                    case _:
                        self.say("250 ok")

        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    mails.port = server.server_address[1]
    with _served(server):
        yield mails


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
