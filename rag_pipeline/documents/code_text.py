"""Source code as it is, less its licence header; nothing of what a tool wrote."""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.documents.edits import edited
from rag_pipeline.documents.extract import Extract
from rag_pipeline.documents.licence import licence_edits
from rag_pipeline.generated_marks import GENERATED, GENERATED_WORD, MARK_CHARS
from rag_pipeline.model import Json

_TOOLS = re.compile(
    r"^[ \t]*(?:#|//|/?\*|--|;|<!--|\"\"\"|'''|%|/\*)[^\n]{0,60}?\b(?:auto[- ]?|automatically )?"
    r"generated (?:by|from|with|using)[^\n]{0,40}?\b(?:protocol buffer|protoc|openapi|swagger|antlr|thrift|swig|cython"
    r"|flatbuffers|flatc|grpc|mockgen|stringer|sqlc|bindgen|cbindgen|autorest|wire|kubebuilder|controller-gen|deepcopy-gen|client-gen"
    r"|ent\b|gqlgen|graphql-codegen|bison|flex|yacc|ragel|re2c|jooq|xjc|pyside|pyuic|qt|rcc|moc|typeshed-stubgen)"
    r"|^[^\w\n]{0,20}generated (?:by|from) [^\n]{1,80}do not edit",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_LINE_CHARS: Final = 10_000
"""Far beyond what sources let through by their own limit (`git.max_line_chars`), which has the first word."""
_SMALL_CHARS: Final = 5000  # so little is worth keeping, however it is laid out


def extract_code(text: str, *, path: str | None, judged: bool = False) -> Extract:
    """The code, titled by its path; with empty text and `metadata["skipped"]` where a tool wrote it.

    `skipped` is `generated` (it says so in its first lines), `minified` (no person writes such lines) or `licence only`
    (nothing is left). `judged`: the source looked for the common marks itself, so where there is one, somebody has said
    that it means nothing (`linguist-generated=false` in `.gitattributes`).
    """
    if reason := _skipped(text, judged=judged):
        return Extract(text="", markup="code", title=path, metadata={"skipped": reason})
    cleaned, source_lines = edited(text, licence_edits(text))
    metadata: dict[str, Json] = {"skipped": "licence only"} if text.strip() and not cleaned.strip() else {}
    return Extract(text=cleaned, markup="code", title=path, source_lines=source_lines, metadata=metadata)


def _skipped(text: str, *, judged: bool) -> str | None:
    top = text[:MARK_CHARS]
    if GENERATED_WORD in top.lower():
        marked = GENERATED.search(top) is not None
        if (marked and not judged) or (not marked and _TOOLS.search(top)):
            return "generated"
    if len(text) > _SMALL_CHARS and len(text) > _MAX_LINE_CHARS * (text.count("\n") + 1):
        return "minified"
    return None
