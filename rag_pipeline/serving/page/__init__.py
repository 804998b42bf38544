"""The search page at `/`: static files of this folder, which ask the service as any other client does.

The browser is told to run and load nothing that is not one of these files, and to refuse text where it would become
markup, so that what an indexed document holds stays text.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:",
        "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'",
    ]
)  # fmt: skip
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # Where somebody searched is nobody's business among the pages that hits link to.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Asked again each time, and answered with 304: a new version is never mixed with an old one.
    "Cache-Control": "no-cache",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    content: bytes
    packed: bytes
    """The same with gzip."""
    content_type: str
    etag: str
    """Weak: packed or not, it is the same."""


def _files() -> Mapping[str, _File]:
    """The files of the page by name; only these are ever served, whatever a request names."""
    found = {}
    for path in sorted(Path(__file__).parent.iterdir()):
        if (content_type := _TYPES.get(path.suffix)) is not None:
            content = path.read_bytes()
            etag = f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'
            packed = gzip.compress(content, mtime=0)
            found[path.name] = _File(content=content, packed=packed, content_type=content_type, etag=etag)
    return found


_FILES = _files()


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """The search page."""
    return _answer(request, _FILES["index.html"])


@router.api_route("/static/{name}", methods=["GET", "HEAD"])
async def static(request: Request, name: str) -> Response:
    """A style sheet, script or picture of the search page."""
    file = _FILES.get(name)
    if file is None:
        raise HTTPException(404, "the search page has no such file")
    return _answer(request, file)


def _answer(request: Request, file: _File) -> Response:
    headers = {**_HEADERS, "ETag": file.etag, "Vary": "Accept-Encoding"}
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if file.etag.removeprefix("W/") in known or "*" in known:
        return Response(status_code=304, headers=headers)
    content = file.content
    if _takes_gzip(request.headers.get("accept-encoding", "")):
        content, headers["Content-Encoding"] = file.packed, "gzip"
    return Response(content, media_type=file.content_type, headers=headers)


def _takes_gzip(accepted: str) -> bool:
    for choice in accepted.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
