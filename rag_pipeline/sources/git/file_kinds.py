"""What kind of knowledge a file is, from its path and its bytes: docs, code in a language, or not for the index.

Pure: no repository, no file system. The rules follow GitHub Linguist's (https://github.com/github-linguist/linguist),
narrowed to what people search for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType

from rag_pipeline.generated_marks import GENERATED_BYTES, GENERATED_PAGE, MARK_CHARS
from rag_pipeline.inline_markup import PAYLOAD
from rag_pipeline.nul_bytes import is_binary
from rag_pipeline.settings import FileType, GitLimits

FILE_KINDS_VERSION = "4"

_DOCS = {
    ".md": "markdown", ".markdown": "markdown", ".mdown": "markdown", ".mkd": "markdown", ".mkdn": "markdown",
    ".mdwn": "markdown", ".livemd": "markdown", ".qmd": "markdown", ".rmd": "markdown", ".mdx": "mdx",
    ".rst": "restructuredtext", ".rest": "restructuredtext", ".adoc": "asciidoc", ".asciidoc": "asciidoc",
    ".asc": "asciidoc", ".org": "org", ".txt": "text", ".text": "text", ".ipynb": "notebook", ".html": "html",
    ".htm": "html", ".xhtml": "html", ".textile": "textile", ".rdoc": "rdoc", ".pod": "pod", ".creole": "creole",
    ".wiki": "mediawiki", ".mediawiki": "mediawiki", ".tex": "latex", ".ltx": "latex", ".texi": "texinfo",
    ".texinfo": "texinfo",
}  # fmt: skip
_CODE = {
    ".py": "python", ".pyi": "python", ".pyw": "python", ".pyx": "cython", ".pxd": "cython", ".ts": "typescript",
    ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx", ".js": "javascript", ".mjs": "javascript",
    ".cjs": "javascript", ".jsx": "javascript", ".go": "go", ".rs": "rust", ".java": "java",
    ".kt": "kotlin", ".kts": "kotlin", ".c": "c", ".h": "c", ".cc": "cpp",
    ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".hxx": "cpp", ".ipp": "cpp", ".ino": "cpp",
    ".cu": "cuda", ".cuh": "cuda", ".cs": "csharp", ".csx": "csharp", ".rb": "ruby", ".rake": "ruby",
    ".gemspec": "ruby", ".php": "php", ".phtml": "php", ".swift": "swift", ".scala": "scala", ".sbt": "scala",
    ".sh": "bash", ".bash": "bash", ".zsh": "bash", ".ksh": "bash", ".bats": "bash", ".fish": "fish",
    ".ps1": "powershell", ".psm1": "powershell", ".psd1": "powershell", ".bat": "batch", ".cmd": "batch",
    ".vb": "visual-basic", ".vbs": "visual-basic", ".bas": "visual-basic", ".fs": "fsharp", ".fsi": "fsharp",
    ".fsx": "fsharp", ".f": "fortran", ".for": "fortran", ".f77": "fortran", ".f90": "fortran", ".f95": "fortran",
    ".f03": "fortran", ".f08": "fortran", ".v": "verilog", ".vh": "verilog", ".sv": "systemverilog",
    ".svh": "systemverilog", ".vhd": "vhdl", ".vhdl": "vhdl", ".sol": "solidity", ".sql": "sql", ".tf": "terraform",
    ".tfvars": "terraform", ".hcl": "hcl", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json",
    ".jsonc": "json", ".json5": "json", ".jsonnet": "jsonnet", ".lua": "lua", ".r": "r", ".jl": "julia",
    ".ex": "elixir", ".exs": "elixir", ".erl": "erlang", ".hrl": "erlang", ".hs": "haskell", ".lhs": "haskell",
    ".elm": "elm", ".ml": "ocaml", ".mli": "ocaml", ".clj": "clojure", ".cljs": "clojure", ".cljc": "clojure",
    ".edn": "clojure", ".el": "lisp", ".lisp": "lisp", ".scm": "scheme", ".rkt": "racket", ".dart": "dart",
    ".pl": "perl", ".pm": "perl", ".tcl": "tcl", ".vue": "vue", ".svelte": "svelte", ".astro": "astro", ".css": "css",
    ".scss": "scss", ".sass": "sass", ".less": "less", ".proto": "protobuf", ".thrift": "thrift",
    ".graphql": "graphql", ".gql": "graphql", ".prisma": "prisma", ".cfg": "ini", ".conf": "ini", ".ini": "ini",
    ".properties": "properties", ".zig": "zig", ".nim": "nim", ".cr": "crystal",
    ".pas": "pascal", ".adb": "ada", ".ads": "ada", ".groovy": "groovy", ".gradle": "groovy", ".m": "objective-c",
    ".mm": "objective-c", ".cmake": "cmake", ".mk": "make", ".bzl": "starlark", ".bazel": "starlark",
    ".nix": "nix", ".rego": "rego", ".bicep": "bicep", ".vim": "vim", ".awk": "awk", ".xml": "xml", ".j2": "jinja",
    ".jinja": "jinja", ".erb": "erb", ".hbs": "handlebars", ".jsp": "jsp", ".glsl": "glsl", ".hlsl": "hlsl",
    ".wgsl": "wgsl", ".lean": "lean", ".dockerfile": "dockerfile", ".just": "just", ".feature": "gherkin",
}  # fmt: skip
_NAMED = {
    "dockerfile": "dockerfile", "containerfile": "dockerfile", "makefile": "make", "gnumakefile": "make",
    "bsdmakefile": "make", "cmakelists.txt": "cmake", "meson.build": "meson", "meson_options.txt": "meson",
    "meson.options": "meson", "jenkinsfile": "groovy", "rakefile": "ruby", "gemfile": "ruby", "podfile": "ruby",
    "fastfile": "ruby", "brewfile": "ruby", "vagrantfile": "ruby", "justfile": "just", "procfile": "text",
    "tiltfile": "starlark", "build": "starlark", "build.bazel": "starlark", "workspace": "starlark",
    "workspace.bazel": "starlark", "module.bazel": "starlark", "sconstruct": "python", "sconscript": "python",
    "wscript": "python", "snakefile": "python", "earthfile": "dockerfile", "go.mod": "go-module",
    "go.work": "go-module", "codeowners": "codeowners", "pipfile": "toml", "caddyfile": "caddyfile",
    "kconfig": "kconfig", ".editorconfig": "ini", ".env": "ini",
}  # fmt: skip
_PREFIXED = {"dockerfile": "dockerfile", "containerfile": "dockerfile", "makefile": "make", "jenkinsfile": "groovy"}
"""Names whose ending says for what they are: `Dockerfile.dev`, `Makefile.am`."""
_NAMED_DOCS = {
    "readme", "contributing", "contributors", "changelog", "changes", "history", "authors", "maintainers", "credits",
    "thanks", "architecture", "install", "news", "todo", "notice", "hacking", "bugs", "faq", "roadmap", "security",
    "support", "governance", "upgrading", "usage", "design", "releasing", "code_of_conduct", "releases",
}  # fmt: skip
_PATTERN_OF = re.compile(r"\.(?:in|dist|sample|example|template|tmpl|tpl)\Z")
"""Endings of files from which others are made: the name before says what they are."""
_LANGUAGE_OR_SYSTEM = re.compile(
    r"[._-](?:[a-z]{2}(?:[_-][a-z]{2,4})?|first|unix|linux|bsd|dos|win(?:dows|32|64)?|mac(?:os|osx)?|git|dev(?:el)?)\Z"
)
"""`README.ja`, `INSTALL.windows`."""
_BY_CONTENT = {
    # A line that begins so, or ends so, in the first characters.
    ".v": (
        ("coq", rb"^(?:From\s+\S+\s+)?Require\s|^\s*(?:Theorem|Lemma|Inductive|Fixpoint|Definition|Proof)\b|^\(\*"),
        ("v", rb"^(?:pub )?fn \w+\(|^module \w+\s*$"),
    ),
    ".m": (("matlab", rb"^\s*(?:function\b[^{;]*$|classdef\b|%)"),),
    ".fs": (("glsl", rb"^\s*(?:#version\b|precision \w+ float|void main\s*\()"),),
    ".pl": (("prolog", rb"^\s*:-|^[a-z]\w*\([^)]*\)\s*:-"),),
}
_BY_CONTENT_PATTERNS = {
    suffix: [(language, re.compile(pattern, re.MULTILINE)) for language, pattern in choices]
    for suffix, choices in _BY_CONTENT.items()
}
_LOOKED_AT = 4000

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
_NO_TYPES: Mapping[str, FileType] = MappingProxyType({})
_LFS = b"version https://git-lfs.github.com/spec/"
_NOT_ASCII = bytes(range(0x80, 0x100))
_ARMOUR = re.compile(rb"\s*-----BEGIN PGP ")
_TEXT_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_NOTEBOOK_TIMES = 10
"""So much larger than other files a notebook may be: most of it is pictures, which cleaning takes out."""
_MIN_BLANKS, _MAX_ASCII = 0.02, 0.9
"""Share of white space below which docs hold no words, unless less than this share of them is ASCII: Chinese, Japanese
and Thai have no spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """`docs` or `code`, and in which language."""

    source_type: str
    language: str


def kind_of(path: str, types: Mapping[str, FileType] = _NO_TYPES) -> FileKind | None:
    """The kind a path's name promises, or None when such files are not indexed; `types` (`git.file_types`) go first."""
    name = path.rpartition("/")[2]
    name = (PurePosixPath(path).name if name in ("", ".") else name).lower()
    chosen = _chosen(name, types) if types else None
    if chosen is None:
        return _kind_of_name(name)
    return None if chosen.kind == "none" else FileKind(source_type=chosen.kind, language=chosen.language)


def is_excluded_type(path: str, types: Mapping[str, FileType]) -> bool:
    """Whether the settings say that files of this name are not for the index."""
    chosen = _chosen(path.rpartition("/")[2].lower(), types)
    return chosen is not None and chosen.kind == "none"


def kind_by_content(kind: FileKind, path: str, content: bytes) -> FileKind:
    """The kind with the language that the content is in, where several share an ending (`.v`: Verilog and Coq)."""
    suffix = PurePosixPath(path).suffix.lower()
    choices = _BY_CONTENT_PATTERNS.get(suffix)
    if choices is None or kind.language != _CODE[suffix]:
        return kind
    top = content[:_LOOKED_AT]
    found = next((language for language, pattern in choices if pattern.search(top)), kind.language)
    return replace(kind, language=found)


def _chosen(name: str, types: Mapping[str, FileType]) -> FileType | None:
    """What the settings say of a name: of the whole name, else of its longest ending."""
    if name in types:
        return types[name]
    at = name.find(".")
    while at >= 0:
        if name[at:] in types:
            return types[name[at:]]
        at = name.find(".", at + 1)
    return None


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
    if name in _NAMED_DOCS:
        return FileKind(source_type="docs", language="text")
    if (language := _PREFIXED.get(name.partition(".")[0])) is not None:
        return FileKind(source_type="code", language=language)
    if _PATTERN_OF.search(name):
        return _kind_of_name(_PATTERN_OF.sub("", name))
    if _LANGUAGE_OR_SYSTEM.sub("", name) in _NAMED_DOCS:
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


def skip_by_size(size: int, *, kind: FileKind, limits: GitLimits) -> str | None:
    """`too large`, or None; `size` in bytes."""
    times = _NOTEBOOK_TIMES if kind.language == "notebook" else 1
    return "too large" if size > times * limits.max_file_bytes else None


def skip_by_content(content: bytes, *, kind: FileKind, generated: bool | None, limits: GitLimits) -> str | None:
    """Why these bytes are skipped, or None."""
    if content.startswith(_LFS):
        return "git-lfs pointer"
    if not content.startswith(_TEXT_BOMS) and is_binary(content):
        return "binary"
    if _ARMOUR.match(content):
        return "signature or key"
    if not content.strip():
        return "empty"
    if generated is None and (GENERATED_PAGE if kind.source_type == "docs" else GENERATED_BYTES).search(
        content[:MARK_CHARS]
    ):
        return "generated"
    # A notebook's lines are JSON's: written on one line, or with pictures in them, it is still a notebook.
    if kind.language == "notebook" or _mean_line(content) <= limits.max_line_chars:
        return None
    return "minified" if _has_no_words(content, limits, is_code=kind.source_type == "code") else None


def _has_no_words(content: bytes, limits: GitLimits, *, is_code: bool) -> bool:
    """Whether a file with long lines is no prose, whose paragraphs may each be a line, but data or minified code.

    A page may hold pictures written out, which cleaning takes away. Code has blanks, too, where it is minified.
    """
    content = content if is_code else _PAYLOAD.sub(b"", content)
    if _mean_line(content) <= limits.max_line_chars:
        return False
    size = len(content)
    blanks, ascii_ = size - len(content.translate(None, b" \t\r\n\0")), len(content.translate(None, _NOT_ASCII))
    return (is_code or blanks < _MIN_BLANKS * size) and ascii_ > _MAX_ASCII * size


def _mean_line(content: bytes) -> float:
    return len(content) / (content.count(b"\n") + 1)
