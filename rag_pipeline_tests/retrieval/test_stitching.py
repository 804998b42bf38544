"""Stitching: neighbours become one hit that spans them, and no text is ever lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.retrieval.stitching import Place, stitched
from rag_pipeline_tests.retrieval.hits import hit


def test_neighbours_become_one_hit_at_the_place_of_the_best():
    hits = [
        hit("elsewhere", rank=1, document="other.md"),
        hit("second", rank=2, lines=(4, 6), headings=("Guide", "Deploy", "Helm"), terms=["helm"]),
        hit("far away", rank=3, lines=(40, 41)),
        hit("first", rank=4, lines=(1, 3), headings=("Guide", "Deploy"), terms=["deploy", "helm"]),
    ]
    other, joined, far = stitched(hits)
    assert (other.text, far.text) == ("elsewhere", "far away")
    assert joined.text == "first\nsecond"
    assert (joined.rank, joined.score, joined.chunk_id, joined.legs) == (
        2,
        hits[1].score,
        hits[1].chunk_id,
        hits[1].legs,
    )
    assert (joined.start_line, joined.end_line, joined.location) == (1, 6, "guide.md:1-6")
    assert joined.url == "https://example.org/guide.md#L1-L6"
    assert joined.heading_path == ("Guide", "Deploy")
    assert joined.matched_terms == ("helm", "deploy")
    assert joined.tokens == 2
    assert far.rank == 3


def test_what_does_not_touch_stays_apart():
    hits = [hit("a", rank=1, lines=(1, 3)), hit("b", rank=2, lines=(5, 6)), hit("c", rank=3, document="other.md")]
    assert stitched(hits) == hits


@pytest.mark.parametrize(
    ("anchor", "joined"),
    [
        ("#L{start}-L{end}", "#L9-L12"),
        ("#L{start}-{end}", "#L9-12"),
        ("#lines-{start}:{end}", "#lines-9:12"),
        ("?line={start}&lineEnd={end}&v=11", "?line=9&lineEnd=12&v=11"),
        ("#L{start}", "#L9"),
        ("", ""),
        ("#11", "#11"),
    ],
)
def test_links_of_every_forge_span_all_lines(anchor, joined):
    hits = [hit("b", rank=1, lines=(11, 12), anchor=anchor), hit("a", rank=2, lines=(9, 10), anchor=anchor)]
    (found,) = stitched(hits)
    assert found.url == f"https://example.org/guide.md{joined}"
    assert found.location == "guide.md:9-12"


def test_two_comments_of_a_thread_stay_apart_and_the_parts_of_one_are_joined():
    def comment(number: int, text: str, rank: int, lines: tuple[int, int]):
        url = f"https://github.com/acme/x/issues/1#issuecomment-{number}"
        return hit(text, rank=rank, lines=lines, url=url, location="acme/x#1")

    one, two, three = comment(7, "a", 1, (1, 2)), comment(7, "b", 2, (3, 4)), comment(8, "c", 3, (5, 5))
    assert [h.text for h in stitched([one, two, three])] == ["a\nb", "c"]
    assert stitched([one, two, three])[0].url == one.url


def test_an_overlap_stands_in_the_text_once():
    hits = [hit("One.\nTwo. Three.", rank=1, lines=(1, 2)), hit("Three.\nFour.", rank=2, lines=(2, 3))]
    assert stitched(hits)[0].text == "One.\nTwo. Three.\nFour."


def test_the_end_of_a_word_is_no_overlap():
    hits = [hit("the word is", rank=1, lines=(1, 1)), hit("s is short", rank=2, lines=(1, 2))]
    assert stitched(hits)[0].text == "the word is\ns is short"


def test_a_repetition_on_another_line_is_no_overlap():
    hits = [hit("{\n}", rank=1, lines=(1, 2)), hit("}\n{", rank=2, lines=(3, 4))]
    assert stitched(hits)[0].text == "{\n}\n}\n{"


def test_a_hit_inside_another_adds_nothing():
    hits = [hit("b", rank=1, lines=(2, 2)), hit("a\nb\nc", rank=2, lines=(1, 3)), hit("d", rank=3, lines=(4, 4))]
    (found,) = stitched(hits)
    assert (found.text, found.location, found.chunk_id) == ("a\nb\nc\nd", "guide.md:1-4", hits[0].chunk_id)


def test_places_tell_neighbours_over_blank_lines_and_the_exact_overlap():
    hits = [hit("go go", rank=1, lines=(1, 1)), hit("go on", rank=2, lines=(1, 4)), hit("end", rank=3, lines=(9, 9))]
    places = {
        hits[0].chunk_id: Place(position=4, start_char=0, end_char=5),
        hits[1].chunk_id: Place(position=5, start_char=6, end_char=11),
        hits[2].chunk_id: Place(position=6, start_char=20, end_char=23),
    }
    assert [h.text for h in stitched(hits, places)] == ["go go\ngo on\n\nend"]
    overlapping = places | {hits[1].chunk_id: Place(position=5, start_char=3, end_char=8)}
    assert stitched(hits, overlapping)[0].text.startswith("go go on\n")
    apart = places | {hits[2].chunk_id: Place(position=7, start_char=20, end_char=23)}
    assert [h.text for h in stitched(hits, apart)] == ["go go\ngo on", "end"]


def test_lines_that_touch_are_no_neighbours_when_the_places_say_that_something_stands_between():
    hits = [hit("a", rank=1, lines=(1, 1)), hit("c", rank=2, lines=(1, 2))]
    places = {h.chunk_id: Place(position=2 * n, start_char=5 * n, end_char=5 * n + 1) for n, h in enumerate(hits)}
    assert stitched(hits, places) == hits


LINES = st.lists(st.text("ab {}.\n`é", min_size=1, max_size=12), min_size=1, max_size=15)


@given(st.data())
def test_no_text_is_ever_lost(data):
    """Spans of one text, overlapping or not, in any order: each stands in a hit, and no two hits share a neighbour."""
    text = "".join(data.draw(LINES))
    bounds = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda b: b[0] < b[1])
    spans = data.draw(st.lists(bounds, min_size=1, max_size=8, unique=True))
    hits, places = [], {}
    for rank, (start, end) in enumerate(spans, start=1):
        lines = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
        found = hit(text[start:end], rank=rank, lines=lines, chunk=f"{start}:{end}")
        hits.append(found)
        places[found.chunk_id] = Place(position=sorted(spans).index((start, end)), start_char=start, end_char=end)
    for known in (None, places):
        joined = stitched(hits, known)
        for found in hits:
            holder = [h for h in joined if found.text in h.text]
            assert any(h.start_line <= found.start_line and h.end_line >= found.end_line for h in holder)
        assert [h.rank for h in joined] == list(range(1, len(joined) + 1))
        assert joined[0].chunk_id == hits[0].chunk_id
        assert len(joined) <= len(hits)


@given(st.data())
def test_consecutive_pieces_with_places_give_back_the_words(data):
    text = "".join(data.draw(LINES))
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    pieces = list(pairwise(cuts))
    hits, places = [], {}
    for position, (start, end) in enumerate(pieces):
        lines = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
        hits.append(hit(text[start:end], rank=position + 1, lines=lines, chunk=f"{start}:{end}"))
        places[hits[-1].chunk_id] = Place(position=position, start_char=start, end_char=end)
    order = data.draw(st.permutations(hits)) if hits else []
    joined = stitched(order, places)
    if hits:
        assert len(joined) == 1
        assert "".join(joined[0].text.split()) == "".join(text.split())
