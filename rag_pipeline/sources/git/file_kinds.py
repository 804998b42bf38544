"""What kind of knowledge a file is, from its path and its bytes: docs, code in a language, or not for the index.

Pure: no repository, no file system. The rules follow GitHub Linguist's (https://github.com/github-linguist/linguist),
narrowed to what people search for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from rag_pipeline.generated_marks import GENERATED_BYTES, GENERATED_PAGE, MARK_CHARS
from rag_pipeline.inline_markup import PAYLOAD
from rag_pipeline.settings import GitLimits

FILE_KINDS_VERSION = "3"

_DOCS = {
    ".md": "markdown", ".markdown": "markdown", ".mdx": "mdx", ".rst": "restructuredtext", ".adoc": "asciidoc",
    ".asciidoc": "asciidoc", ".txt": "text", ".ipynb": "notebook", ".html": "html", ".htm": "html",
}  # fmt: skip
_CODE = {
    ".py": "python", ".pyi": "python", ".pyx": "cython", ".ts": "typescript", ".mts": "typescript",
    ".cts": "typescript", ".tsx": "tsx", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascript", ".go": "go", ".rs": "rust", ".java": "java",
    ".kt": "kotlin", ".kts": "kotlin", ".c": "c", ".h": "c", ".cc": "cpp",
    ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".hxx": "cpp", ".cs": "csharp", ".rb": "ruby",
    ".php": "php", ".swift": "swift",
    ".scala": "scala", ".sh": "bash", ".bash": "bash", ".zsh": "bash", ".ps1": "powershell",
    ".sql": "sql", ".tf": "terraform", ".tfvars": "terraform", ".hcl": "hcl", ".yaml": "yaml", ".yml": "yaml",
    ".toml": "toml", ".json": "json", ".jsonc": "json", ".lua": "lua", ".r": "r", ".jl": "julia", ".ex": "elixir",
    ".exs": "elixir", ".erl": "erlang", ".hs": "haskell", ".ml": "ocaml", ".mli": "ocaml", ".clj": "clojure",
    ".dart": "dart", ".pl": "perl", ".pm": "perl", ".vue": "vue", ".svelte": "svelte", ".css": "css", ".scss": "scss",
    ".less": "less", ".proto": "protobuf", ".graphql": "graphql", ".gql": "graphql", ".cfg": "ini", ".ini": "ini",
    ".zig": "zig", ".nim": "nim", ".groovy": "groovy", ".gradle": "groovy", ".m": "objective-c", ".mm": "objective-c",
    ".cmake": "cmake", ".bzl": "starlark", ".nix": "nix", ".xml": "xml", ".j2": "jinja", ".jinja": "jinja",
}  # fmt: skip
_NAMED = {
    "dockerfile": "dockerfile", "containerfile": "dockerfile", "makefile": "make", "gnumakefile": "make",
    "cmakelists.txt": "cmake", "jenkinsfile": "groovy", "rakefile": "ruby", "gemfile": "ruby", "justfile": "just",
    "procfile": "text", "tiltfile": "starlark", "build.bazel": "starlark", "vagrantfile": "ruby",
}  # fmt: skip
_NAMED_DOCS = {"readme", "contributing", "changelog", "changes", "authors", "architecture", "install", "news", "todo"}

_GENERATED_NAMES = re.compile(
    r"(^|/)(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|pdm\.lock|uv\.lock"
    r"|pipfile\.lock|cargo\.lock|composer\.lock|gemfile\.lock|go\.sum|flake\.lock|bun\.lock"
    r"|[^/]*_pb2(_grpc)?\.pyi?|[^/]*\.pb\.(go|cc|h)|[^/]*\.g\.dart|[^/]*\.designer\.cs|[^/]*\.(js|css)\.map)$",
    re.IGNORECASE,
)
_VENDORED = re.compile(
    r"(^|/)(node_modules|bower_components|vendor|vendors|third[_-]party|3rdparty|_vendor|site-packages|\.venv|dist-packages"
    r"|\.yarn|jquery[^/]*\.js$|bootstrap[^/]*\.(js|css)$)(/|$)",
    re.IGNORECASE,
)
_MINIFIED_NAME = re.compile(r"[.-]min\.(js|css|html|json)$", re.IGNORECASE)
_PAYLOAD = re.compile(PAYLOAD.encode())
_LFS = b"version https://git-lfs.github.com/spec/"
_TEXT_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """`docs` or `code`, and in which language."""

    source_type: str
    language: str


def kind_of(path: str) -> FileKind | None:
    """The kind a path's name promises, or None when such files are not indexed."""
    name = path.rpartition("/")[2]
    return _kind_of_name((PurePosixPath(path).name if name in ("", ".") else name).lower())


@lru_cache(maxsize=65_536)
def _kind_of_name(name: str) -> FileKind | None:
    """A file is asked for several times in a run, and a path takes longer to make than all of this."""
    suffix = PurePosixPath(name).suffix
    if name in _NAMED:
        return FileKind(source_type="code", language=_NAMED[name])
    if suffix in _DOCS:
        return FileKind(source_type="docs", language=_DOCS[suffix])
    if suffix in _CODE:
        return FileKind(source_type="code", language=_CODE[suffix])
    if not suffix and name in _NAMED_DOCS:
        return FileKind(source_type="docs", language="text")
    return None


def skip_by_path(path: str, *, generated: bool | None, vendored: bool | None) -> str | None:
    """Why a path is skipped whatever it holds, or None.

    `generated` and `vendored` are what `.gitattributes` says (None: nothing); it has the last word over our patterns.
    """
    if generated or (generated is None and _GENERATED_NAMES.search(path)):
        return "generated"
    if vendored or (vendored is None and _VENDORED.search(path)):
        return "vendored"
    if generated is None and _MINIFIED_NAME.search(path):
        return "minified"
    return None


def skip_by_size(size: int, *, limits: GitLimits) -> str | None:
    """`too large`, or None; `size` in bytes."""
    return "too large" if size > limits.max_file_bytes else None


def skip_by_content(content: bytes, *, kind: FileKind, generated: bool | None, limits: GitLimits) -> str | None:
    """Why these bytes are skipped, or None."""
    if content.startswith(_LFS):
        return "git-lfs pointer"
    if not content.startswith(_TEXT_BOMS) and b"\0" in content[:8000]:
        return "binary"
    if not content.strip():
        return "empty"
    if generated is None and (GENERATED_PAGE if kind.source_type == "docs" else GENERATED_BYTES).search(
        content[:MARK_CHARS]
    ):
        return "generated"
    # A notebook's lines are JSON's: written on one line, or with pictures in them, it is still a notebook.
    if kind.language != "notebook" and _mean_line(content) > limits.max_line_chars:
        # A page may hold pictures written out, which cleaning takes away.
        if kind.source_type == "docs" and _mean_line(_PAYLOAD.sub(b"", content)) <= limits.max_line_chars:
            return None
        return "minified"
    return None


def _mean_line(content: bytes) -> float:
    return len(content) / (content.count(b"\n") + 1)
