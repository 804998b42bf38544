"""A segment holds of each term in which chunks it stands, how often, and how long they are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.lexical import postings
from rag_pipeline.lexical.analyzer import count_terms
from rag_pipeline.lexical.postings import ENTRY, Vocabulary, make_segment, read_entries

WORDS = st.sampled_from(
    ["a", "os.path.join", "getUserName", "v1.2.3", "don't", "\u65e5\u672c\u8a9e", "___", "", "x" * 90]
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=40)
CHUNKS = st.dictionaries(st.integers(0, 2**32 - 1), TEXTS, max_size=8)


@given(added=CHUNKS, removed=CHUNKS)
def test_it_holds_what_counting_each_chunk_gives(added, removed):
    segment = make_segment(list(added.items()), list(removed.items()))
    expected = {}
    for number in sorted(added):
        counts = count_terms(added[number])
        for term, occurrences in counts.items():
            expected.setdefault(term, []).append((number, occurrences, counts.total()))
    gone = Counter(term for text in removed.values() for term in count_terms(text))
    assert list(segment.postings) == sorted(expected.keys() | gone.keys())
    for term, posting in segment.postings.items():
        entries = np.frombuffer(posting.entries, dtype=ENTRY).tolist()
        assert (entries, posting.removed) == (expected.get(term, []), gone[term])
    for members, chunks in ((segment.added, added), (segment.removed, removed)):
        assert members.tolist() == [(number, count_terms(chunks[number]).total()) for number in sorted(chunks)]


@given(batches=st.lists(CHUNKS, max_size=4), most=st.sampled_from([1, 1000]))
def test_segments_made_with_one_vocabulary_are_those_made_each_on_its_own(batches, most):
    vocabulary = Vocabulary()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_MOST_REMEMBERED", most)  # with 1 it begins anew for most batches
        for batch in batches:
            added = list(batch.items())
            together, alone = make_segment(added, vocabulary=vocabulary), make_segment(added)
            assert together.postings == alone.postings
            assert together.added.tolist() == alone.added.tolist()


def test_more_occurrences_than_two_bytes_hold_are_not_told_apart():
    segment = make_segment([(7, "word " * 70_000)])
    assert np.frombuffer(segment.postings["word"].entries, dtype=ENTRY).tolist() == [(7, 65_535, 65_535)]


PARTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=12).map(sorted), max_size=4)


@given(parts=PARTS, removed=st.lists(st.integers(0, 30), max_size=12).map(sorted))
def test_what_several_segments_hold_is_read_in_order_without_the_chunks_that_are_gone(parts, removed):
    entries = [[(number, at + 1, 10 * at + number) for number in part] for at, part in enumerate(parts)]
    read = read_entries(
        [np.array(part, dtype=ENTRY).tobytes() for part in entries], removed=np.array(removed, dtype=np.uint32)
    )
    left = [entry for part in entries for entry in part if entry[0] not in removed]
    assert read.dtype == ENTRY
    assert read.tolist() == sorted(left, key=lambda entry: entry[0])
