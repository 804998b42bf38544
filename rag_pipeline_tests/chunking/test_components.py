"""Single-file components are cut between their parts, and scripts by their syntax."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.chunking.code import code_blocks
from rag_pipeline_tests.bench.splitters import our_chunks
from rag_pipeline_tests.documents.extracts import MAX_SECONDS

TEMPLATE = (
    "<template>\n  <div>\n" + "    <p>A line of the template that says something.</p>\n" * 6 + "  </div>\n</template>\n"
)
SCRIPT = """\
<script setup lang="ts">
import { ref } from "vue"

/** Goes to a place. */
function go(place: string): void {
  const where = ref(place)
  console.log(where, "this is a function with a body that has some length")
}

export async function load(id: string): Promise<Item> {
  return await fetch(`/api/items/${id}`, { method: "GET", credentials: "include" })
}
</script>
"""
STYLE = "<style scoped>\n" + "h1 {\n  color: red;\n  margin: 0 auto;\n}\n" * 5 + "</style>\n"


def test_no_chunk_goes_over_the_end_of_a_part() -> None:
    chunks = our_chunks("App.vue", f"{TEMPLATE}\n{SCRIPT}\n{STYLE}".encode(), tokens=160)
    for chunk in chunks:
        assert sum(tag in chunk.text for tag in ("<template>", "<script", "<style")) <= 1, chunk.text
    cut = our_chunks("App.vue", f"{TEMPLATE}\n{SCRIPT}\n{STYLE}".encode(), tokens=60)
    assert {("go",), ("load",)} <= {chunk.heading_path for chunk in cut}


@pytest.mark.parametrize("language", ["vue", "svelte", "astro"])
@given(
    st.lists(
        st.sampled_from(
            ["<script>\n", "</script>\n", "<style lang=scss>\n", "</style>\n", "<template>\n", "</template>\n",
             "---\n", "let a = 1\n", "\n", "<p>{a}</p>\n", "  </script>\n", "const f = () => {\n", "}\n"]
        ),
        max_size=12,
    )
)  # fmt: skip
def test_blocks_tile_every_component(language: str, lines: list[str]) -> None:
    text = "".join(lines)
    blocks = code_blocks(text, language=language, max_tokens=8)
    assert "".join(text[block.start : block.end] for block in blocks) in (text, "")
    assert bool(blocks) or not text.strip()


@pytest.mark.parametrize(
    ("path", "text", "symbol"),
    [
        ("a.cu", "__global__ void add(int n, float *x) {\n  x[threadIdx.x] += n;\n}\n\n", "add"),
        (
            "rules.bzl",
            "def _library(ctx):\n    files = ctx.files.srcs\n    return [DefaultInfo(files = files)]\n\n",
            "_library",
        ),
    ],
)
def test_languages_of_another_grammar_know_their_symbols(path: str, text: str, symbol: str) -> None:
    filler = "".join(text.replace(symbol, f"{symbol}_{number}") for number in range(8))
    paths = {chunk.heading_path for chunk in our_chunks(path, (text + filler).encode(), tokens=60)}
    assert (f"{symbol}_3",) in paths


@pytest.mark.parametrize("piece", ["<script>\n", "<style>\n</script>\n", "<template", "---\n", "</style>\n"])
def test_parts_that_never_end_take_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    begun = time.process_time()
    assert code_blocks(text, language="vue", max_tokens=100)
    assert time.process_time() - begun < MAX_SECONDS
