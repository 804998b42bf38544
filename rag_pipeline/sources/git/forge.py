"""Where a person sees a file: links to forges, and to files on this machine. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """How one forge spells a link to a file at a commit, and to lines in it."""

    blob: str
    anchor: str
    source: str = ""
    """Asks for the lines of a file that is shown as a page otherwise."""


_FORGES = {
    "gitlab": Forge(blob="{base}/-/blob/{commit}/{path}", anchor="#L{start}-{end}", source="?plain=1"),
    "bitbucket": Forge(blob="{base}/src/{commit}/{path}", anchor="#lines-{start}:{end}"),
    "codeberg": Forge(blob="{base}/src/commit/{commit}/{path}", anchor="#L{start}-L{end}", source="?display=source"),
    "gitea": Forge(blob="{base}/src/commit/{commit}/{path}", anchor="#L{start}-L{end}", source="?display=source"),
    "forgejo": Forge(blob="{base}/src/commit/{commit}/{path}", anchor="#L{start}-L{end}", source="?display=source"),
}
_GITHUB = Forge(blob="{base}/blob/{commit}/{path}", anchor="#L{start}-L{end}", source="?plain=1")
_RENDERED = (
    ".adoc", ".asc", ".asciidoc", ".creole", ".ipynb", ".livemd", ".markdown", ".md", ".mdown", ".mdwn", ".mdx",
    ".mediawiki", ".mkd", ".mkdn", ".org", ".pod", ".qmd", ".rdoc", ".rest", ".rmd", ".rst", ".textile", ".wiki",
)  # fmt: skip
"""Files that are shown as pages on which no line can be linked to."""


def web_base(source: str, *, web_url: str = "") -> str | None:
    """The repository's page for people, from its clone URL; None for a local path."""
    if web_url:
        return web_url.rstrip("/")
    scp = re.match(r"^[\w.-]+@([\w.-]+):(.+)$", source)
    if scp:
        return f"https://{scp[1]}/{scp[2].removesuffix('.git').strip('/')}"
    url = re.match(r"^(https?|ssh|git)://(?:[^@/]*@)?([^/:]+)(:\d+)?/(.+)$", source)
    if not url:
        return None
    scheme, host, port, path = url.groups()
    port = port or "" if scheme in ("http", "https") else ""
    return f"{'http' if scheme == 'http' else 'https'}://{host}{port}/{path.removesuffix('.git').strip('/')}"


def link(source: str, *, commit: str, path: str, web_url: str = "") -> tuple[str, str]:
    """URL of a file at a commit, and the fragment template for its lines (`{start}`, `{end}`)."""
    base = web_base(source, web_url=web_url)
    if base is None:
        # A local repository has no page: the file itself, as editors and browsers open it.
        folder = Path(unquote(source.removeprefix("file://"))) if source.startswith("file://") else Path(source)
        return (folder / path).as_uri(), "#L{start}-L{end}"
    host = base.split("://", 1)[1].partition("/")[0]
    forge = next((forge for name, forge in _FORGES.items() if name in host), _GITHUB)
    anchor = forge.source + forge.anchor if path.lower().endswith(_RENDERED) else forge.anchor
    return forge.blob.format(base=base, commit=commit, path=quote(path, errors="surrogateescape")), anchor
