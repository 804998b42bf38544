"""What the libraries of OpenAI and Anthropic raise, in our errors; both name theirs alike."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rag_pipeline.errors import PermanentError, RagPipelineError, TransientError
from rag_pipeline.remote.refusals import Service, refusal, without_key

CONNECT_S = 10.0
"""An address that does not even take a connection is not waited for any longer; it may be asked again."""
_TRANSIENT_CODES = ("rate_limit", "overloaded", "server_error", "api_error", "timeout", "unavailable")


def meaning(error: Exception, *, sdk: Any, service: Service, key: str, now: datetime) -> RagPipelineError:
    """Our error for one of the library; raise it `from None` where the service may have repeated the key."""
    if isinstance(error, sdk.APIStatusError):
        status: int = error.status_code
        response: Any = error.response
        said, code = what_it_said(error.body, key)
        return refusal(status, said, service=service, headers=response.headers, now=now, code=code)
    if isinstance(error, sdk.APITimeoutError):
        return TransientError(f"cannot reach {service.url}: no connection within {CONNECT_S:g} s")
    if isinstance(error, sdk.APIConnectionError):
        return TransientError(f"cannot reach {service.url}: {without_key(error.__cause__ or error, key)}")
    return PermanentError(f"{service.url} cannot be asked: {without_key(error, key)}")


def failed_event(body: object, *, service: Service, key: str) -> RagPipelineError:
    """The error that a service reports inside its answer, after a status of success."""
    said, code = what_it_said(body, key)
    where = f"{service.url} reports a failure: {said}"
    is_transient = any(word in code for word in _TRANSIENT_CODES) or code[:1] == "5" or code == "429"
    return TransientError(where) if is_transient else PermanentError(where)


def what_it_said(body: object, key: str) -> tuple[str, str]:
    """Message and code of an error's body, which may be anything, even a web page."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return without_key(error or "nothing", key), ""
    codes = [str(error[name]) for name in ("code", "type") if error.get(name)]
    message = error.get("message") or error.get("detail") or error
    return without_key(message, key), " ".join(codes)
