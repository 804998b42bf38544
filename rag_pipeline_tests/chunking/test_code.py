"""Code is cut by its syntax: definitions, members and statements, whatever the language."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_pipeline.chunking import chunk_document, count_words
from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code import code_blocks, syntax_blocks
from rag_pipeline.chunking.code.languages import LANGUAGES
from rag_pipeline.model import Chunk, Document
from rag_pipeline.settings import Chunking
from rag_pipeline_tests.chunking.conftest import layout

MakeDocument = Callable[..., Document]

SAMPLES = {
    path.name: path for path in sorted((Path(__file__).parent / "test_code_samples").iterdir()) if path.is_file()
}
DATA = {"deploy.yaml", "store.toml", "store.json", "store.tf", "store.sql"}
LIMITS = Chunking(max_tokens=100, min_tokens=12)
SMALL = Chunking(max_tokens=50, min_tokens=6)
EXPRESSION_LEVELS = range(100, 200)

SYMBOLS = {
    "store.py": "logged.wrapper Store.__init__ Store.weight Store.Shelf.take Store.restock inventory",
    "store.ts": "Item Urgency Shelves Store.constructor Store.onMove Store.weight Store.restock reports.inventory"
    " heaviest routes.load routes.save",
    "store.tsx": "Props Shelf Summary StorePage Boundary.getDerivedStateFromError Boundary.render",
    "store.js": "Store.constructor Store.handleMove Store.weight Store.restock inventory load Store.prototype.close"
    " module.exports.open module.exports.report",
    "store.go": "Item Supplier Shelves Store Store.Weight Store.Restock Inventory",
    "store.rs": "Item Refusal Supplier.order Store.new Store.weight Store.restock reports.inventory"
    " tests.a_new_store_weighs_nothing_at_all",
    "Store.java": "Store.Urgency.isHigh Store.Store Store.weight Store.restock Store.close Supplier.offers Item.Item",
    "store.kt": "Item Urgency Supplier.offers Store.init Store.companion.of Store.weight Store.restock Store.close"
    " Registry.register Store.report",
    "store.c": "MAX urgency item shelf_t store store_weight store_dump store_restock",
    "store.cpp": "store.Item store.Urgency store.Store.Store store.Store.~Store store.Store.weight"
    " store.Store.operator== store.Store.restock store.reports.inventory",
    "store.rb": "Warehouse.Store.open Warehouse.Store.initialize Warehouse.Store.weight Warehouse.Store.restock",
    "store.swift": "Item Urgency Supplier.order Store.init Store.weight Store.restock Store.deinit Store.description"
    " Store.inventory",
    "Store.scala": "Item Supplier.offers Store.weight Store.restock Store.close Store.inventory",
    "store.sh": "usage weight restock",
    "store.sql": "store.shelves store.items items_by_shelf store.inventory store.weight",
    "deploy.yaml": "on env jobs.test jobs.test.steps jobs.publish spec.template.spec.containers",
    "store.toml": "project project.scripts tool.ruff tool.ruff.lint shelves alarms",
    "store.json": "scripts scripts.test config.limits config.limits.alarms config.region shelves devDependencies",
    "store.tf": "variable.name locals aws_s3_bucket.items aws_s3_bucket.items.lifecycle aws_iam_policy.read_items"
    " module.alarms output.bucket",
}
NAMESPACED = {
    "Store.cs": ("Example.Stores", "Item Urgency ISupplier Store.Store Store.IsOpen Store.Weight Store.RestockAsync"),
    "Store.php": ("Example\\Warehouse", "Supplier Urgency Store.__construct Store.weight Store.restock inventory"),
}
TOGETHER = {
    "store.py": ["# What is heavier", "@property", "@logged", "def weight"],
    "store.ts": ["// What is heavier", "@Input()", "weight(): number"],
    "store.js": ["// What is heavier", "get weight()"],
    "store.go": ["// Weight of all", "//go:noinline", "func (s *Store[T]) Weight"],
    "store.rs": ["/// A thing that is kept", "/// and the name", "#[derive(Debug, Clone", "pub struct Item"],
    "Store.java": ["// What is heavier", "@Deprecated", "@SuppressWarnings", "public double weight"],
    "store.kt": ["// What is heavier", "@JvmName", "fun weight"],
    "store.c": ["/* Of all items", "static double", "store_weight(const"],
    "store.cpp": ["template <typename Supplier>", "int Store<Supplier>::restock"],
    "Store.cs": ["// What is heavier", "/// <summary>", "[Obsolete", "public double Weight"],
    "store.rb": ["# What is heavier", "# so that", "def weight"],
    "Store.php": ["// What is heavier", "#[Pure]", "public function weight"],
    "store.swift": ["// MARK: - Reports", "extension Store"],
    "Store.scala": ["// What is heavier", "@deprecated", "def weight"],
    "store.sh": ["# What is heavier", "# so that", "weight() {"],
    "store.sql": ["-- A numbered place", "-- and never", "CREATE TABLE store.shelves"],
    "store.tf": ["# The list is kept", "# can be brought", 'resource "aws_s3_bucket"'],
    "deploy.yaml": ["# Everything is tested", "  test:"],
    "store.toml": ["# Rules that find", "[tool.ruff.lint]"],
}  # fmt: skip


def blocks_of(name: str, limits: Chunking = LIMITS) -> tuple[str, list[Block]]:
    text = SAMPLES[name].read_text(encoding="utf-8")
    blocks = syntax_blocks(text, language=layout(name, "code")[1], min_chars=limits.max_tokens)
    assert blocks is not None, "the grammar makes no sense of it"
    return text, blocks


def chunks_of(make_document: MakeDocument, name: str, limits: Chunking = LIMITS) -> list[Chunk]:
    document = make_document(SAMPLES[name].read_text(encoding="utf-8"), path=name, source_type="code")
    return chunk_document(document, settings=limits, count_tokens=count_words)


def test_every_language_has_a_sample() -> None:
    assert {layout(name, "code")[1] for name in SAMPLES} | {"hcl", "cuda", "starlark"} == set(LANGUAGES)
    assert set(SYMBOLS) | set(NAMESPACED) == set(SAMPLES)


@pytest.mark.parametrize("name", SYMBOLS)
def test_chunks_know_the_symbols_they_stand_in(name: str) -> None:
    _, blocks = blocks_of(name, SMALL)
    assert set(SYMBOLS[name].split()) <= {".".join(block.path) for block in blocks}


@pytest.mark.parametrize("name", NAMESPACED)
def test_a_namespace_holds_what_follows_it(name: str) -> None:
    _, blocks = blocks_of(name, SMALL)
    namespace, symbols = NAMESPACED[name]
    assert {(namespace, *symbol.split(".")) for symbol in symbols.split()} <= {block.path for block in blocks}


@pytest.mark.parametrize("name", SAMPLES)
def test_blocks_tile_the_text_and_begin_lines(name: str) -> None:
    text, blocks = blocks_of(name)
    assert "".join(text[block.start : block.end] for block in blocks) == text
    assert all(block.start == 0 or text[block.start - 1] == "\n" for block in blocks)


@pytest.mark.parametrize("name", TOGETHER)
def test_comments_and_decorators_stay_with_their_definition(make_document: MakeDocument, name: str) -> None:
    whole = [chunk for chunk in chunks_of(make_document, name) if TOGETHER[name][0] in chunk.text]
    assert any(all(part in chunk.text for part in TOGETHER[name]) for chunk in whole)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("limits", [SMALL, LIMITS, Chunking()], ids=["50", "100", "200"])
def test_a_definition_that_fits_is_not_torn(make_document: MakeDocument, name: str, limits: Chunking) -> None:
    text, blocks = blocks_of(name, limits)
    chunks = chunks_of(make_document, name, limits)
    for i, block in enumerate(blocks):
        if not block.opens_section or block.path == blocks[i - 1].path[: len(block.path)]:
            continue  # not a definition, but what follows one
        after = (
            other
            for other in blocks[i + 1 :]
            if other.path[: len(block.path)] != block.path or (other.path == block.path and other.level <= block.level)
        )
        end = next((other.start for other in after), len(text))
        if count_words([text[block.start : end]])[0] <= limits.max_tokens:
            first = text[block.start : end].split("\n")[0]
            assert len([c for c in chunks if c.end_char > block.start and c.start_char < end]) == 1, first


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in DATA | {"store.tsx", "Store.scala"}])
def test_a_function_that_is_too_long_is_cut_between_statements(make_document: MakeDocument, name: str) -> None:
    text, blocks = blocks_of(name, SMALL)
    levels = {block.start: block.level for block in blocks}
    chunks = [c for c in chunks_of(make_document, name, SMALL) if c.heading_path and "estock" in c.heading_path[-1]]
    assert len(chunks) > 1
    for chunk in chunks:
        assert levels.get(chunk.start_char, 0) not in EXPRESSION_LEVELS
        assert not text[chunk.start_char : chunk.end_char].lstrip().startswith(("}", ")", "]", "end"))


def test_a_long_function_of_python_is_cut_where_its_statements_begin(make_document: MakeDocument) -> None:
    chunks = chunks_of(make_document, "store.py", SMALL)
    tree = ast.parse(SAMPLES["store.py"].read_text(encoding="utf-8"))
    begins = {line for node in ast.walk(tree) if isinstance(node, ast.stmt) for line in [node.lineno]}
    assert {chunk.start_line for chunk in chunks if chunk.heading_path == ("Store", "restock")} <= begins


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("store.py", ("Store",)),
        ("store.ts", ("Store",)),
        ("Store.java", ("Store",)),
        ("store.kt", ("Store",)),
        ("Store.cs", ("Example.Stores", "Store")),
        ("Store.php", ("Example\\Warehouse", "Store")),
        ("store.rb", ("Warehouse", "Store")),
    ],
)
def test_a_big_class_becomes_its_outline_and_its_members(
    make_document: MakeDocument, name: str, path: tuple[str, ...]
) -> None:
    chunks = chunks_of(make_document, name, Chunking(max_tokens=72, min_tokens=8))
    outline = next(chunk for chunk in chunks if tuple(chunk.heading_path) == path)
    assert "class Store" in outline.text
    assert "estock(" not in outline.text
    members = {chunk.heading_path[-1] for chunk in chunks if len(chunk.heading_path) > len(path)}
    assert {member for member in members if member.lower().startswith("restock")}


def test_small_neighbours_are_merged(make_document: MakeDocument) -> None:
    text = "\n\n".join(f"def f{n}():\n    return {n}" for n in range(60))
    chunks = chunk_document(
        make_document(text, path="a.py", source_type="code"), settings=Chunking(), count_tokens=count_words
    )
    assert len(chunks) < 12


def test_what_comes_first_stays_with_its_header(make_document: MakeDocument) -> None:
    docstring = "\n\n".join(f"    Paragraph {n} says something about it, in some words." for n in range(30))
    text = f'def long() -> None:\n    """What it does.\n\n{docstring}\n    """\n    return None\n'
    chunks = chunk_document(
        make_document(text, path="a.py", source_type="code"), settings=LIMITS, count_tokens=count_words
    )
    assert chunks[0].text.startswith('def long() -> None:\n    """What it does.')


@pytest.mark.parametrize("language", [None, "vue", "css", "dockerfile", "no such language"])
def test_without_a_grammar_code_is_cut_by_its_lines(language: str | None) -> None:
    text = "thing one {\n  a b\n}\n\nclass Two {\n  c d\n}\n"
    assert syntax_blocks(text, language=language, min_chars=100) is None
    assert [block.path for block in code_blocks(text, language=language, max_tokens=100)][-1] == ("Two",)


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_what_is_not_of_the_language_is_cut_by_its_lines(language: str) -> None:
    text = "≈ ∞ ¬ ∮ ⊗ ` ' ) } ] ⊕\n" * 40
    blocks = code_blocks(text, language=language, max_tokens=100)
    assert "".join(text[block.start : block.end] for block in blocks) == text


def test_characters_are_counted_not_bytes(make_document: MakeDocument) -> None:
    text = SAMPLES["store.py"].read_text(encoding="utf-8")
    plain = code_blocks(text, language="python", max_tokens=100)
    accented = code_blocks(text.replace("shelf", "étagè"), language="python", max_tokens=100)
    assert [block.start for block in plain] == [block.start for block in accented]
