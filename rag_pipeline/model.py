"""The nouns that pass between the stages, and how they are identified.

Frozen dataclasses and pure functions of them; nothing here reads a clock, a file or a database.
What a stage needs only for itself does not belong here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Final, Literal
from uuid import UUID, SafeUUID

_UNKNOWN = SafeUUID.unknown  # to look it up takes as long as to set it
_SEPARATOR = "\x1f"  # ASCII unit separator: cannot occur in a path, a repository or a tenant name

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""What typed metadata may hold."""


Markup = Literal["markdown", "rst", "asciidoc", "text", "code"]
"""How a document's text is laid out, which decides where it may be cut."""


def stable_digest(*parts: str) -> bytes:
    """The 16 bytes of `stable_id`, for who compares many of them: to make a UUID takes longer than to hash a chunk."""
    return hashlib.blake2b(_SEPARATOR.join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def stable_id(*parts: str) -> UUID:
    """A 128-bit BLAKE2b of the parts, as a UUID: the same parts give the same id on every machine, for ever."""
    # What UUID(bytes=…) does once it has checked its arguments, which takes longer than everything else here.
    made = object.__new__(UUID)
    object.__setattr__(made, "int", int.from_bytes(stable_digest(*parts), "big"))
    object.__setattr__(made, "is_safe", _UNKNOWN)
    return made


def document_id(*, tenant: str, source_type: str, source_id: str) -> UUID:
    """Identity of a document: what it is, never where it was stored or when it was read."""
    return stable_id("document", tenant, source_type, source_id)


def text_hash(text: str) -> UUID:
    """Identity of a text, and with an embedding space the identity of its vector."""
    return stable_id(*text_parts(text))


def text_parts(text: str) -> tuple[str, ...]:
    """What the identity of a text is made of."""
    return "text", text


def chunk_id(document: UUID, text: str, occurrence: int) -> UUID:
    """Identity of a chunk: its document and text, and which of the equal texts in that document it is (from 0)."""
    return stable_id(*chunk_parts(_spelt(document), text, occurrence))


def chunk_parts(document: str, text: str, occurrence: int) -> tuple[str, ...]:
    """What the identity of a chunk is made of; the document's id as it is spelt."""
    return "chunk", document, text, str(occurrence)


@lru_cache(maxsize=64)
def _spelt(identity: UUID) -> str:
    """A document is asked for once per chunk, and spelling it takes longer than hashing a chunk."""
    return str(identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """One thing as its source gave it, or a tombstone (`deleted`, with empty content)."""

    tenant: str
    source_type: str
    """`docs`, `code`, later `github_issue`, …: open, lower case."""
    source_id: str
    """Identity inside the source; `repository:path` for files."""
    repository: str
    day: date
    """The partition (UTC) that holds the item: the day of its last change in the window that was read."""
    source_updated_at: datetime
    """When the source last changed it, as the source shows it, UTC."""
    observed_at: datetime
    """When the source was read, UTC."""
    as_of: datetime | None = None
    """The moment whose state this is, where that is not `source_updated_at`: see `age_of`."""
    scope: str | None = None
    """Visible only to queries that name this scope (`user:…`, `visitor:…`); None: to all of the tenant."""
    deleted: bool = False
    content: bytes = b""
    title: str | None = None
    path: str | None = None
    language: str | None = None
    url: str | None = None
    """Where a person can see it, without a fragment."""
    anchor: str | None = None
    """Fragment template for lines, with `{start}` and `{end}` (1-based, inclusive), appended to `url`."""
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a document that is a thing of its own, such as a comment of a thread: no chunk reaches over its end.

    Where the document knows the lines of its source, as a notebook does, sections only name the places in it.
    """

    start_char: int
    """Where it begins in the document's text; it ends where the next one begins."""
    anchor: str
    """What is appended to the document's URL to point at it (`#issuecomment-1`); may be empty.

    Without `#`, `/` or `?` before it, it is a name that is shown with the lines of the source (`cell 12`).
    """
    name: str
    """What its chunks stand under, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A source item's cleaned text with what is known of it; a tombstone has empty text."""

    tenant: str
    document_id: UUID
    source_type: str
    source_id: str
    repository: str
    day: date
    source_updated_at: datetime
    observed_at: datetime
    as_of: datetime | None = None
    scope: str | None = None
    deleted: bool = False
    text: str = ""
    markup: Markup = "text"
    """Of `text` as cleaning made it: what was HTML or a notebook is markdown by then."""
    title: str | None = None
    path: str | None = None
    language: str | None = None
    url: str | None = None
    anchor: str | None = None
    source_lines: Sequence[int] | None = None
    """For each line of `text`, the 1-based line of the source it came from; None when the lines are the same."""
    sections: Sequence[Section] | None = None
    """In order, the first at 0; None when the document is one thing."""
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A span of one document that can stand alone: `text == document.text[start_char:end_char]`."""

    tenant: str
    document_id: UUID
    chunk_id: UUID
    position: int
    """Order inside the document, from 0; not part of the identity."""
    text: str
    text_hash: UUID
    """Of what is embedded: key of its vector in every space."""
    heading_path: Sequence[str]
    """Headings of prose, or enclosing symbols of code, outermost first."""
    start_char: int
    end_char: int
    start_line: int
    """First line in the source, 1-based."""
    end_line: int
    """Last line in the source, inclusive."""
    tokens: int
    """Length in tokens of the embedding model that the chunks are cut for."""
    anchor: str | None = None
    """Of the section it came from, in place of the document's anchor for lines; None: not from a section."""
    context: str = ""
    """What is put before `text` when it is embedded, its separator included; `text_hash` is of both together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRange:
    """Days `first` to `last`, both included (UTC): what one run covers."""

    first: date
    last: date

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was asked of models that cost something."""

    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One item that a stage could not process; it is quarantined and retried by the next run."""

    tenant: str
    source_type: str
    source_id: str
    stage: str
    repository: str
    day: date
    source_updated_at: datetime
    """Of the state that failed: a newer one in the index settles it."""
    reason: str


def age_of(noun: SourceItem | Document) -> tuple[datetime, datetime]:
    """Of two states of one item, the greater is the newer one.

    A source with a history (git) shows the state of any moment, so the moment of the change decides. One that shows
    only the present (GitHub) may show an earlier last change than before, as when the last comment was deleted: what
    counts is when the state was seen (`as_of`).
    """
    return noun.as_of or noun.source_updated_at, noun.observed_at


def failure_of(item: SourceItem | Document, *, stage: str, reason: str) -> Failure:
    """The failure of a stage on an item or document."""
    return Failure(
        tenant=item.tenant,
        source_type=item.source_type,
        source_id=item.source_id,
        stage=stage,
        repository=item.repository,
        day=item.day,
        source_updated_at=age_of(item)[0],
        reason=reason[:500],
    )


Graph = Literal["vectors", "codes"]
"""What a space's graph is built over: its vectors, or short codes of them, which take half of the time and room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpace:
    """All vectors that may be compared with each other: one model, one length, one input recipe."""

    space_id: int
    provider: str
    model: str
    dimensions: int
    recipe: str
    """Fingerprint of how a text is made into the model's input."""
    status: str
    """`building`, `active` or `retired`."""
    config: Mapping[str, Json] | None = None
    """The `[embedding]` settings that make its vectors; None: it was made before they were kept."""
    partitions: int = 1
    """Tables that its vectors lie in, each with a graph of its own."""
    graph: Graph = "vectors"
    coded: bool = False
    """Whether its vectors have the codes that its graph is built over; they get them when there are enough of them."""


Scores = Mapping[str, Mapping[str, float]]
"""Question id → measure (`nDCG@10`, …) → value, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """How well labelled questions were answered, leg by leg."""

    dataset: str
    """Names the labels."""
    labels_hash: str
    """Of questions and labels: figures for other labels cannot be compared."""
    per_query: Mapping[str, Scores]
    """Leg (`lexical`, `vector`, `fused`, `reranked`) → its scores; all legs answered the same questions."""

    @property
    def queries(self) -> int:
        """How many questions were asked."""
        return max((len(scores) for scores in self.per_query.values()), default=0)

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """Leg → measure → mean over the questions."""
        return {leg: _means(scores) for leg, scores in self.per_query.items()}


def _means(scores: Scores) -> dict[str, float]:
    measures = list(next(iter(scores.values()), {}))
    return {name: sum(values[name] for values in scores.values()) / len(scores) for name in measures}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegResult:
    """Where one leg of a search saw a chunk."""

    leg: str
    """`lexical`, `vector` or `rerank`."""
    rank: int | None
    """From 1; None: not among those that the leg gave to the fusion."""
    score: float
    """BM25 for the lexical leg, from 0; cosine similarity for the vector leg, -1 to 1; the reranker's own for its."""


PLACE: Final = " · "
"""What parts the lines of a hit's location from the name of the place, such as a notebook's cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A chunk that answers a query, best first."""

    rank: int
    score: float
    """What it was ranked by: of the leg alone, when only one was searched."""
    title: str
    text: str
    url: str
    location: str
    """`path:start-end`, for people and terminals; a notebook's with the cell behind it (` · cell 12`)."""
    repository: str
    source_type: str
    source_id: str
    language: str | None
    heading_path: Sequence[str]
    start_line: int
    end_line: int
    document_id: UUID
    chunk_id: UUID
    source_updated_at: datetime
    tokens: int
    """Of `text`, as the embedding model counts them."""
    legs: Sequence[LegResult] = ()
    """Why it is here."""
    matched_terms: Sequence[str] = ()
    """Terms of the question that it holds, the rarest first."""
    corrected: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Words of the question that no document holds, with the words of this hit that were looked for instead."""
    linked_from: UUID | None = None
    """The document whose link brought it within reach; None: it was found itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSource:
    """A hit that an answer cites."""

    number: int
    """N of its `[Source N]` marks, from 1."""
    hit: SearchHit
    quote: str
    """The words of the hit that bear the answer out best."""
    support: float
    """0 to 1: how well the hit bears out the sentences that cite it."""


AnswerStatus = Literal["answered", "unsupported", "unknown", "small_talk"]
"""`unsupported`: something was found, but the answer is not borne out by it, and says so. `unknown`: nothing relevant
was found. `small_talk`: nothing was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found for a question, each claim with the hit it stands on."""

    question: str
    text: str
    """Sentences with `[Source N]` marks."""
    sources: Sequence[CitedSource] = ()
    """Those that are cited, by their numbers, which count from 1 without gaps."""
    status: AnswerStatus
    confidence: float
    """0 to 1."""
    asked: str = ""
    """What was looked up: the question, made to stand alone where it went on with a conversation."""
    follow_ups: Sequence[str] = ()
    """Questions that the sources could answer next."""
    removed_citations: int = 0
    """Marks that pointed to nothing."""
    model: str = ""
    """What wrote it; empty: nothing did, it is made of quotes."""
    input_tokens: int = 0
    output_tokens: int = 0
    """As charged, all calls of the model together."""
    cost_usd: float | None = 0.0
    """None: the model has no price."""
    degraded: str = ""
    """What could not be done, and was done without; empty: nothing."""
