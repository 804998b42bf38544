"""One shape for everything that is refused: `{"error": {"code", "message", "details"?}}`, never with a trace."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import psycopg
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rag_pipeline.errors import (
    ConfigError,
    DatabaseUnavailable,
    NothingIndexed,
    RagPipelineError,
    TransientError,
    UnknownSource,
)

_log = logging.getLogger(__name__)
_CODES: Final = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "request_timeout", 409: "conflict", 413: "too_large", 415: "unsupported_media_type", 422: "invalid",
    429: "too_many_requests", 500: "internal", 503: "unavailable", 504: "timeout",
}  # fmt: skip
_ALWAYS: Final = (400, 401, 403, 408, 413, 422, 429, 500, 503, 504)
_SAID_BY_FRAMEWORK: Final = {
    "Not Found": "there is nothing at this path: /openapi.json lists what there is",
    "Method Not Allowed": "this path does not take this method: the header Allow and /openapi.json say which it takes",
    "There was an error parsing the body": "the body cannot be read as JSON: send JSON in UTF-8",
}
_DATABASE_BACK_S: Final = 5.0
_MOST_DETAILS: Final = 20
_SAID: Final = 2_000  # characters of a message


class Detail(BaseModel):
    """What is wrong with one field."""

    field: str
    """Where it is, such as `query.k` or `body.history.0.role`."""
    message: str


class ErrorOf(BaseModel):
    """Why a request was refused."""

    code: str
    """For programs; it does not change."""
    message: str
    """For people: what, which, and what to do."""
    details: list[Detail] | None = None


class ErrorBody(BaseModel):
    """The body of every answer that is not a success."""

    error: ErrorOf


def documented(*statuses: int, only: Sequence[int] = _ALWAYS) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a router: these statuses, and those that every route with a caller may answer with."""
    return {
        status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in sorted({*only, *statuses})
    }


def refusal(
    status: int, message: str, *, code: str = "", retry_after_s: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> HTTPException:  # fmt: skip
    """What to raise in a route; `code` by default goes by the status."""
    sent = dict(headers or {})
    if retry_after_s is not None:
        sent["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    detail: Any = {"code": code or code_of(status), "message": message}
    return HTTPException(status, detail, headers=sent or None)


def code_of(status: int) -> str:
    """What programs read for a status."""
    return _CODES.get(status, "error")


def error_body(code: str, message: str, details: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """The body of a refusal; what no text can hold is spelt out."""
    error: dict[str, Any] = {"code": code, "message": _sayable(message)}
    if details:
        error["details"] = [{name: _sayable(text) for name, text in detail.items()} for detail in details]
    return {"error": error}


def error_response(error: Exception) -> Response | None:
    """The answer for an error that was foreseen; None: nobody foresaw it."""
    refused = error if isinstance(error, HTTPException) else as_refusal(error)
    if refused is None:
        return None
    said: object = refused.detail
    known = said if isinstance(said, Mapping) else _plain(refused.status_code, str(said))
    body = error_body(str(known["code"]), str(known["message"]))
    return JSONResponse(body, status_code=refused.status_code, headers=refused.headers)


def _plain(status: int, said: str) -> dict[str, str]:
    """What the framework refuses, in words that say what to do."""
    return {"code": code_of(status), "message": _SAID_BY_FRAMEWORK.get(said, said)}


def as_refusal(error: Exception) -> HTTPException | None:
    """The refusal for what rooms below raise; None: nobody foresaw it."""
    match error:
        case NothingIndexed():
            return refusal(503, str(error), retry_after_s=_DATABASE_BACK_S)
        case UnknownSource():
            return refusal(422, str(error), code="unknown_source")
        case ConfigError():
            return refusal(400, str(error))
        case DatabaseUnavailable() | psycopg.OperationalError() | psycopg.InterfaceError():
            return refusal(503, "the database does not answer: try again in a moment", retry_after_s=_DATABASE_BACK_S)
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn() | psycopg.errors.InvalidSchemaName():
            return refusal(503, "the database's schema is not up to date", retry_after_s=_DATABASE_BACK_S)
        case TransientError():
            return refusal(503, str(error), retry_after_s=error.retry_after_s or 1.0)
        case _:
            return None


def unexpected(request_id: str) -> JSONResponse:
    """The answer to what nobody foresaw; the log has the rest under this id."""
    return JSONResponse(error_body("internal", f"something went wrong; the log knows it as {request_id}"), 500)


def handle_errors(app: FastAPI) -> None:
    """Answer every error in the one shape; what nobody foresaw goes on to whoever logs it."""
    for kind in (HTTPException, RagPipelineError, psycopg.Error):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _refused(request: Request, error: Exception) -> Response:
    answer = error_response(error)
    if answer is None:
        raise error
    if answer.status_code == 503 and not isinstance(error, HTTPException):
        route = getattr(request.scope.get("route"), "path", "")
        _log.warning("%s %s is unavailable: %s", request.method, route, error)
    return answer


async def _invalid(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, RequestValidationError)
    # What was sent is not repeated: it may be long, secret, or no text.
    details = [
        {"field": ".".join(str(part) for part in problem["loc"]), "message": str(problem["msg"])}
        for problem in error.errors()[:_MOST_DETAILS]
    ]
    message = "the request is not as it must be: " + "; ".join(f"{d['field']}: {d['message']}" for d in details[:3])
    return JSONResponse(error_body(code_of(422), message, details), status_code=422)


def _sayable(text: str) -> str:
    return text[:_SAID].encode("utf-8", "backslashreplace").decode()
