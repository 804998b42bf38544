"""Texts as people, templates and bots write them on GitHub, drawn from a given random source.

They hold what a reader of GitHub has to cope with: quotes of earlier comments, issue templates with HTML comments,
CRLF line ends, code, task lists, tables, collapsed parts, suggestions, mentions, references, and letters of all kinds.
"""

from __future__ import annotations

from random import Random

_WORDS = (
    "index", "chunk", "vector", "query", "latency", "retry", "timeout", "partition", "schema", "migration", "tenant",
    "token", "cursor", "batch", "cache", "lock", "worker", "queue", "parser", "socket", "header", "payload", "offset",
    "digest", "shard", "replica", "rollback", "checkpoint", "embedding", "ranking",
)  # fmt: skip
_VERBS = (
    "fails", "hangs", "leaks", "drops", "repeats", "forgets", "truncates", "doubles", "ignores", "corrupts",
    "reorders", "swallows",
)  # fmt: skip
_MANY_LETTERS = (
    "Größe und Straße stimmen nicht überein.",
    "検索結果が空になります。",
    "Поиск не находит документ.",
    "البحث لا يعمل",
    "naïve café — “quoted” … ½ ± ∞",
    "👩\u200d👩\u200d👧 family, 🇫🇷 flag, e\u0301 combining",
    "zero\u200bwidth and a\u00a0fixed space",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﷽",
)
_BUG_TEMPLATE = (
    "<!-- Thanks for your report! Please search the open issues first. -->\r\n### What happened\r\n\r\n{0}\r\n\r\n"
    "### How to reproduce\r\n\r\n<!-- Minimal steps,\r\nplease. -->\r\n1. {1}\r\n2. {2}\r\n\r\n"
    "### Version\r\n\r\n_No response_\r\n"
)
_PULL_TEMPLATE = (
    "<!-- Describe the change. Delete what does not apply. -->\r\n## Why\r\n\r\n{0}\r\n\r\n## What\r\n\r\n{1}\r\n\r\n"
    "- [x] tests\r\n- [ ] changelog <!-- only for users -->\r\n\r\nFixes #{2}\r\n"
)


def title(rng: Random) -> str:
    """A title."""
    words = [rng.choice(_WORDS), rng.choice(_VERBS), "when the", rng.choice(_WORDS), "is", rng.choice(_WORDS)]
    text = " ".join(words)
    return rng.choice((text.capitalize(), f"[RFC] {text}", f"`{words[0]}()` {words[1]}", f"{text} 🚀", f"fix: {text}"))


def issue_body(rng: Random) -> str | None:
    """The text of an issue: from a template, free, empty or null."""
    kind = rng.random()
    if kind < 0.1:
        return rng.choice((None, ""))
    if kind < 0.5:
        return _BUG_TEMPLATE.format(*(paragraph(rng) for _ in range(3)))
    return "\n\n".join(part(rng) for _ in range(rng.randint(1, 5)))


def pull_body(rng: Random, number: int) -> str | None:
    """The text of a pull request, which may name an issue that it fixes."""
    if rng.random() < 0.15:
        return rng.choice((None, ""))
    if rng.random() < 0.5:
        return _PULL_TEMPLATE.format(paragraph(rng), paragraph(rng), max(1, number))
    return "\n\n".join(part(rng) for _ in range(rng.randint(1, 3)))


def remark(rng: Random, earlier: str | None = None) -> str:
    """A comment, which may quote an earlier text."""
    said = "\n\n".join(part(rng) for _ in range(rng.randint(1, 3)))
    if not earlier or rng.random() < 0.5:
        return said
    return "\n".join(f"> {line}" for line in earlier.splitlines()[:6]) + f"\n\n{said}"


def bot_remark(rng: Random) -> str:
    """What a bot says after each push."""
    share = rng.randint(70, 99)
    return (
        f"## Coverage report\n\n| file | before | after |\n|---|---|---|\n| {rng.choice(_WORDS)}.py | {share}% | "
        f"{share - 1}% |\n\n<!-- coverage-bot:{rng.randint(1000, 9999)} -->\n<sub>Updated with each push.</sub>"
    )


def suggestion(rng: Random) -> str:
    """A remark on a line, which may suggest another."""
    if rng.random() < 0.7:
        return paragraph(rng)
    return f"Perhaps:\n```suggestion\n    {rng.choice(_WORDS)} = {rng.choice(_WORDS)}({rng.randint(0, 9)})\n```"


def edited(rng: Random, text: str | None) -> str:
    """The text with a small change, as an author makes it."""
    words = (text or "").split(" ")
    if len(words) < 3 or rng.random() < 0.3:
        return f"{text or ''}\n\n**Edit**: {sentence(rng)}"
    words[rng.randrange(len(words))] = rng.choice(_WORDS)
    return " ".join(words)


def part(rng: Random) -> str:
    """One block of Markdown."""
    return rng.choice((paragraph, paragraph, paragraph, _code, _list, _details, _letters, _references))(rng)


def paragraph(rng: Random) -> str:
    """A few sentences."""
    return " ".join(sentence(rng) for _ in range(rng.randint(1, 4)))


def sentence(rng: Random) -> str:
    """One sentence."""
    middle = " ".join(rng.choice(_WORDS) for _ in range(rng.randint(2, 9)))
    return f"The {rng.choice(_WORDS)} {rng.choice(_VERBS)} {middle}."


def path(rng: Random) -> str:
    """The path of a file."""
    return f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.{rng.choice(('py', 'rs', 'md', 'sql'))}"


def word(rng: Random) -> str:
    """One word."""
    return rng.choice(_WORDS)


def _code(rng: Random) -> str:
    body = f"    # {rng.choice(_VERBS)}\n    return {rng.choice(_WORDS)}.{rng.choice(_WORDS)}(x) > {rng.random():.3f}"
    return f"```python\ndef {rng.choice(_WORDS)}(x):\n{body}\n```"


def _list(rng: Random) -> str:
    return "\n".join(f"- [{rng.choice(' x')}] {sentence(rng)}" for _ in range(rng.randint(2, 4)))


def _details(rng: Random) -> str:
    log = f"```\n{sentence(rng)}\nTraceback (most recent call last):\n```"
    return f"<details><summary>Log</summary>\n\n{log}\n</details>"


def _letters(rng: Random) -> str:
    return rng.choice(_MANY_LETTERS)


def _references(rng: Random) -> str:
    return f"See #{rng.randint(1, 40)}, acme/engine#{rng.randint(1, 9)} and @grace's note. {sentence(rng)}"
