"""The OpenAPI document is kept: schemathesis asks every route what it may be asked, and what it may not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rag_pipeline.index.api_keys import create_key
from rag_pipeline_tests.serving.apps import NOW, on_a_port, service

EXAMPLES = 25
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,ignored_auth,unsupported_method"
)
RUN = "import sys; from schemathesis.cli import schemathesis; schemathesis()"


@pytest.mark.slow
@pytest.mark.parametrize("role", ["write", "read", "nobody"])
def test_no_route_fails_or_answers_what_is_not_documented(indexed: str, tmp_path: Path, role: str) -> None:
    limits = {"requests_per_minute": 1_000_000, "anonymous": "never"}
    with (
        service(indexed, tmp_path, environ={"GITHUB_WEBHOOK_SECRET": "x"}, serving=limits) as running,
        on_a_port(running.app) as address,
    ):
        headers: list[str] = []
        if role != "nobody":
            with running.services.pool.connection() as connection:
                _, text = create_key(connection, tenant="acme", name=role, role=role, now=NOW, scopes=["user:*"])  # type: ignore[arg-type]
            headers = ["--header", f"Authorization: Bearer {text}"]
        done = subprocess.run(
            [sys.executable, "-c", RUN, "run", f"{address}/openapi.json", "--max-examples", str(EXAMPLES),
             "--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color", "--suppress-health-check", "all",
             "--checks", CHECKS, *headers],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        operations = sum(len(path) for path in running.client.get("/openapi.json").json()["paths"].values())
    assert f"Tested: {operations}\n" in done.stdout, "not every route was asked"
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
