"""A plain client for the tests of the server itself: what was sent is what the test says, nothing is retried."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from rag_pipeline_tests.github_server.server import GitHubServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """An answer, as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed; raises ValueError when it is not JSON."""
        return json.loads(self.body)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the listed issues or pull requests."""
        return [each["number"] for each in self.json]

    @property
    def links(self) -> dict[str, str]:
        """The addresses in the `Link` header, by relation."""
        found = re.findall(r'<([^>]*)>; rel="(\w+)"', self.headers.get("link", ""))
        return {relation: address for address, relation in found}


class Client:
    """One keep-alive connection to the server."""

    def __init__(self, server: GitHubServer, *, token: str | None = None) -> None:
        self._server = server
        self._token = token
        self._connection = HTTPConnection(urlsplit(server.url).netloc, timeout=10)

    def get(self, address: str, **headers: str) -> Got:
        """Get a path below the API's root, or an absolute address."""
        return self.request("GET", address, **headers)

    def request(self, method: str, address: str, *, body: object = None, **headers: str) -> Got:
        """Send one request; `if_none_match="…"` becomes the header of that name."""
        target = address if address.startswith("http") else self._server.url + address
        given = {"User-Agent": "test", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self._token is not None:
            given.setdefault("Authorization", f"Bearer {self._token}")
        parts = urlsplit(target)
        content = None if body is None else json.dumps(body)
        self._connection.request(method, target.removeprefix(f"http://{parts.netloc}"), content, given)
        response = self._connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Got(status=response.status, headers=names, body=response.read())

    def all(self, address: str) -> list[Any]:
        """All items of a listing, by following `rel="next"`."""
        items: list[Any] = []
        following: str | None = address
        while following:
            got = self.get(following)
            assert got.status == 200, got.json
            items += got.json
            following = got.links.get("next")
        return items

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
