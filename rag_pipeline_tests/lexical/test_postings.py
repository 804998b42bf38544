"""A segment holds of each term in which chunks it stands, how often, and how long they are."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.lexical.analyzer import count_terms
from rag_pipeline.lexical.postings import ENTRY, make_segment

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


def test_more_occurrences_than_two_bytes_hold_are_not_told_apart():
    segment = make_segment([(7, "word " * 70_000)])
    assert np.frombuffer(segment.postings["word"].entries, dtype=ENTRY).tolist() == [(7, 65_535, 65_535)]
