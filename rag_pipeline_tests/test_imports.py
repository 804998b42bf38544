"""What a command loads before it does its work: nothing that it does not use, for that is what makes a start slow."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from rag_pipeline.embedding import make_embedder
from rag_pipeline.embedding.local import DIMENSIONS
from rag_pipeline.index.database import connected
from rag_pipeline.index.spaces import activate, create_space
from rag_pipeline.settings import Embedding
from rag_pipeline_tests.knowledge import entry, store_vectors, write

CHECKOUT = Path(__file__).resolve().parent.parent
TEXTS = ("how to deploy it", "how to roll back")
OF_DAGSTER = {"dagster", "dagster_postgres", "sqlalchemy", "alembic", "grpc"}
OF_CHECKS = {"great_expectations", "pandas", "scipy", "matplotlib"}
OF_MODELS = {"openai", "anthropic", "llama_index", "tiktoken", "torch", "transformers", "huggingface_hub"}
OF_SERVING = {"fastapi", "starlette", "uvicorn", "mcp"}
OF_SOURCES = {"githubkit", "httpx", "requests", "bs4", "resiliparse", "charset_normalizer"}
RUNS_MODEL = {"onnxruntime", "openvino"}
OF_LOCAL_MODEL = RUNS_MODEL | {"tokenizers"}
OF_MEASURES = {"ir_measures", "pytrec_eval"}
HEAVY = OF_DAGSTER | OF_CHECKS | OF_MODELS | OF_SERVING | OF_SOURCES | OF_LOCAL_MODEL | OF_MEASURES
LOADED = """
import json, sys
try:
    {code}
finally:
    sys.__stdout__.write("\\n" + json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
CLI = "from rag_pipeline.cli import main; sys.argv = ['rag-pipeline', *{arguments!r}]; main()"


def loaded(code: str, folder: Path, **more: str) -> Collection[str]:
    """The packages that a new process has loaded by the end of it."""
    env = {"PYTHONPATH": str(CHECKOUT), "RAG_HOME": str(folder), "PATH": "/usr/bin:/bin", **more}
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(code=code)], cwd=folder, env=env, capture_output=True, text=True
    )
    found: list[str] = json.loads(done.stdout.rpartition("\n")[2])
    assert "rag_pipeline" in found, done.stderr
    return found


@pytest.mark.parametrize(
    ("code", "unused"),
    [
        (CLI.format(arguments=["--help"]), HEAVY | {"pydantic", "numpy", "psycopg", "pyarrow"}),
        (CLI.format(arguments=["status"]), HEAVY),
        (CLI.format(arguments=["config", "check"]), HEAVY),
        # What these load for their work comes later; here they end early, as there is no index.
        (CLI.format(arguments=["ask", "why?"]), HEAVY),
        ("import rag_pipeline.definitions", HEAVY - OF_DAGSTER - {"requests", "starlette"}),
    ],
    ids=["--help", "status", "config check", "ask", "the code location"],
)
def test_a_command_loads_only_what_it_uses(code, unused, tmp_path) -> None:
    assert sorted(unused & set(loaded(code, tmp_path))) == []


JUDGED = """
import pandas as pd
from rag_pipeline.quality import Rule, validate
rule = Rule(
    name="unique", check="ids", expects="once", remedy="again", expectation="ExpectColumnValuesToBeBetween",
    arguments={"column": "duplicates", "max_value": 0},
)
assert [f.observed for f in validate(pd.DataFrame({"duplicates": [0, 3]}), [rule]).failed] == ["3 (1 of 2)"]
"""


def test_a_check_loads_great_expectations_without_what_it_does_not_ask_for(tmp_path) -> None:
    found = loaded(f"exec({JUDGED!r})", tmp_path)
    assert "great_expectations" in found
    assert sorted({"scipy", "altair"} & set(found)) == []


def test_to_judge_what_a_run_reused_loads_nothing_when_it_embedded_nothing(tmp_path) -> None:
    code = (
        "from rag_pipeline.quality.embeddings import check_reuse; "
        "from rag_pipeline.embedding.stage import EmbeddingsReport; "
        "assert check_reuse(EmbeddingsReport(), ()).findings == ()"
    )
    assert sorted(OF_CHECKS & set(loaded(code, tmp_path))) == []


@pytest.fixture
def indexed(database: str) -> str:
    """A database with a document, and its vectors of the local model."""
    with connected(database) as connection, contextlib.closing(make_embedder(Embedding(), environ={})) as model:
        write(connection, entry("guide.md", *TEXTS, tenant="default"))
        space = create_space(
            connection, provider=model.provider, model=model.model, recipe=model.recipe, dimensions=DIMENSIONS
        )
        store_vectors(connection, space, {t: model.embed_query(t) for t in TEXTS}, tenant="default")
        activate(connection, space)
    return database


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (["search", "how to deploy"], HEAVY - OF_LOCAL_MODEL | {"pyarrow"}),
        (["search", "how to deploy", "--leg", "lexical"], HEAVY | {"pyarrow"}),
        (["ask", "how to deploy"], HEAVY - OF_LOCAL_MODEL - {"tiktoken", "requests"} | {"pyarrow"}),
    ],
    ids=["both legs", "words alone", "ask"],
)
def test_a_question_loads_only_what_answers_it(arguments, unused, indexed, tmp_path) -> None:
    found = loaded(CLI.format(arguments=arguments), tmp_path, DATABASE_URL=indexed)
    assert "psycopg" in found and len(RUNS_MODEL & set(found)) == ("lexical" not in arguments)
    assert sorted((unused | {"openvino_telemetry"}) & set(found)) == []
