"""The ways to cut a text that benchmarks compare: ours, and LlamaIndex's as people use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import PurePosixPath

from rag_pipeline.chunking import chunk_document
from rag_pipeline.documents import clean
from rag_pipeline.embedding.tokens import count_word_pieces
from rag_pipeline.embedding.wordpiece import wordpiece
from rag_pipeline.model import Chunk, SourceItem
from rag_pipeline.settings import Chunking, Context, Embedding
from rag_pipeline.sources.git.file_kinds import kind_of

Splitter = Callable[[str, str], list[str]]
"""A path, which says what the text is, and the text, to the texts of its chunks."""

_MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def item_of(path: str, content: bytes, *, title: str = "") -> SourceItem:
    """A file, as the source of git repositories gives it."""
    kind = kind_of(path)
    return SourceItem(
        tenant="bench", source_type=kind.source_type if kind else "docs", source_id=f"bench:{path}", repository="bench",
        day=date(2024, 1, 1), source_updated_at=_MOMENT, observed_at=_MOMENT, content=content, path=path,
        language=kind.language if kind else None, title=title or None,
    )  # fmt: skip


def our_chunks(path: str, content: bytes, *, tokens: int = 0, context: Context | None = None) -> list[Chunk]:
    """Cleaned, redacted and cut by structure, in tokens of the local model; by default as the settings' defaults."""
    return chunk_document(
        clean(item_of(path, content)),
        settings=Chunking(max_tokens=tokens) if tokens else Chunking(),
        count_tokens=count_word_pieces,
        context=Embedding().context if context is None else context,
    )


def ours(path: str, text: str, *, tokens: int = 0, context: Context | None = None) -> list[str]:
    """What we embed of a text."""
    chunks = our_chunks(path, text.encode(), tokens=tokens, context=context)
    return [chunk.context + chunk.text for chunk in chunks]


def sentence_splitter() -> Splitter:
    """LlamaIndex's SentenceSplitter, 512 tokens with 50 of overlap."""
    from llama_index.core.node_parser import SentenceSplitter

    splitter = SentenceSplitter(chunk_size=512, chunk_overlap=50)
    return lambda _path, text: _spoken(splitter.split_text(text))


def structure_splitter() -> Splitter:
    """LlamaIndex's MarkdownNodeParser, then its SentenceSplitter; its CodeSplitter for Python; both as they come."""
    import tree_sitter
    import tree_sitter_python
    from llama_index.core import Document as TextDocument
    from llama_index.core.node_parser import CodeSplitter, MarkdownNodeParser, SentenceSplitter

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    code = CodeSplitter(language="python", parser=parser)
    headings, sentences = MarkdownNodeParser(), SentenceSplitter(chunk_size=512, chunk_overlap=50)

    def split(path: str, text: str) -> list[str]:
        if PurePosixPath(path).suffix == ".py":
            return _spoken(code.split_text(text))
        nodes = headings.get_nodes_from_documents([TextDocument(text=text)])
        return _spoken([part for node in nodes for part in sentences.split_text(node.get_content())])

    return split


def code_token_splitter() -> Splitter:
    """LlamaIndex's CodeSplitter for Python, bounded as ours is: by our default, in tokens of the local model."""
    import tree_sitter
    import tree_sitter_python
    from llama_index.core.node_parser import CodeSplitter

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    code = CodeSplitter(
        language="python",
        parser=parser,
        count_mode="token",
        max_tokens=Chunking().max_tokens,
        tokenizer=lambda text: wordpiece().encode(text, add_special_tokens=False).tokens,
    )
    return lambda _path, text: _spoken(code.split_text(text))


def _spoken(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if text.strip()]
