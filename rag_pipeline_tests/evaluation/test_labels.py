"""Labels: read, written, refused with their place; and rankings that do not depend on how documents were cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_pipeline.errors import ConfigError
from rag_pipeline.evaluation.labelled import LabelledQuery, read_labelled_set
from rag_pipeline.evaluation.labels import (
    Label,
    LabelSet,
    Question,
    question_of,
    read_label_sets,
    read_labels,
    write_labels,
)
from rag_pipeline.evaluation.measures import measure
from rag_pipeline.evaluation.ranking import grades_of, judged
from rag_pipeline_tests.evaluation.answers import hit

LINE = {
    "id": "q1", "question": "How is a vector restored?",
    "relevant": [{"source_type": "docs", "source_id": "handbook:vectors.md", "lines": [10, 24], "grade": 2}],
}  # fmt: skip
GUIDE = Label(source_type="docs", source_id="guide.md")


def asking(*relevant, left_out=(), text="how?", id_="q"):
    return Question(id=id_, text=text, relevant=relevant, left_out=left_out)


def test_a_file_is_read_and_written_back(tmp_path):
    path = tmp_path / "labels.jsonl"
    whole = {
        "id": "q2",
        "question": "Wer hat’s gemacht?",
        "relevant": [{"source_id": "b"}],
        "left_out": [{"source_id": "c"}],
    }
    path.write_text("\ufeff" + json.dumps(LINE) + "\n\n" + json.dumps(whole) + "\n", encoding="utf-8")
    labels = read_labels(path, name="ours")
    first, second = labels.questions
    assert first.relevant == (Label(source_type="docs", source_id="handbook:vectors.md", lines=(10, 24), grade=2),)
    assert (second.relevant, second.left_out) == ((Label(source_id="b"),), (Label(source_id="c"),))
    assert labels.documents == [("docs", "handbook:vectors.md"), (None, "b")]
    write_labels(tmp_path / "again.jsonl", labels.questions)
    assert read_labels(tmp_path / "again.jsonl", name="ours") == labels


def test_the_hash_is_of_what_is_asked_and_not_of_its_order_or_name():
    one, other = asking(GUIDE, id_="a"), asking(GUIDE, id_="b")
    labels = LabelSet(name="x", questions=[one, other])
    assert labels.labels_hash == LabelSet(name="y", questions=[other, one]).labels_hash
    assert labels.labels_hash != LabelSet(name="x", questions=[one]).labels_hash


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": ""}, "`id` is missing or is no text"),
        ({"question": None}, "`question` is missing or is no text"),
        ({"relevant": []}, "`relevant` is empty"),
        ({"relevant": {"a": 1}}, "`relevant` is not a list of objects"),
        ({"relevant": ["guide.md"]}, "`relevant` is not a list of objects"),
        ({"relevent": []}, "unknown key 'relevent'"),
        ({"relevant": [{"source_id": "a", "line": 3}]}, "unknown key 'line' of a label"),
        ({"relevant": [{"source_type": "docs"}]}, "`source_id` is missing"),
        ({"relevant": [{"source_id": "a", "source_type": 3}]}, "`source_type` is missing or is no text"),
        ({"relevant": [{"source_id": "a", "lines": [3]}]}, r"lines \[3\] are not \[first, last\]"),
        ({"relevant": [{"source_id": "a", "lines": [5, 3]}]}, r"lines \[5, 3\] are not"),
        ({"relevant": [{"source_id": "a", "lines": [0, 3]}]}, r"lines \[0, 3\] are not"),
        ({"relevant": [{"source_id": "a", "lines": [True, 3]}]}, r"lines \[True, 3\] are not"),
        ({"relevant": [{"source_id": "a", "grade": 0}]}, "the grade 0 is not a whole number from 1"),
        ({"relevant": [{"source_id": "a", "grade": "x"}]}, "the grade 'x' is not"),
        ({"relevant": [{"source_id": "a"}, {"source_id": "a"}]}, "'a' is labelled twice"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_named_with_its_place_and_the_right_shape(tmp_path, change, said):
    path = tmp_path / "labels.jsonl"
    path.write_text("\n" + json.dumps({**LINE, **change}) + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"labels\.jsonl:2: {said}.*; a label is a line of \{{\"id\": "):
        read_labels(path, name="x")


@pytest.mark.parametrize(
    ("text", "said"), [("{", ":1: not JSON"), ("[]", ":1: not a JSON object"), ("\n", "holds no question")]
)
def test_what_is_no_label_at_all_is_named(tmp_path, text, said):
    path = tmp_path / "labels.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_labels(path, name="x")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_labels(path, name="x")


def test_an_id_that_comes_twice_is_refused(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text((json.dumps(LINE) + "\n") * 2, encoding="utf-8")
    with pytest.raises(ConfigError, match=r":2: the id 'q1' stands above already"):
        read_labels(path, name="x")


def test_settings_name_files_by_pattern_and_folders_and_each_is_a_set(tmp_path):
    for name in ("b", "a"):
        (tmp_path / "labels").mkdir(exist_ok=True)
        (tmp_path / "labels" / f"{name}.jsonl").write_text(json.dumps(LINE), encoding="utf-8")
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "how?"}\n', encoding="utf-8")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\thandbook:a.md\t2\n", encoding="utf-8")
    patterns = ["labels/*.jsonl", str(tmp_path / "labels" / "a.jsonl")]
    found = read_label_sets(labels=patterns, datasets=["judged"], base=tmp_path)
    assert [labels.name for labels in found] == ["labels/a.jsonl", "labels/b.jsonl", "judged"]
    assert found[-1].questions == [
        Question(id="1", text="how?", relevant=[Label(source_id="handbook:a.md", grade=2)])
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"evaluation\.labels: 'nothing/\*' matches no file in "):
        read_label_sets(labels=["nothing/*"], datasets=[], base=tmp_path)
    with pytest.raises(ConfigError, match=r"missing/qrels\.tsv: cannot be read"):
        read_label_sets(labels=[], datasets=["missing"], base=tmp_path)


def test_a_document_stands_where_its_best_hit_stands():
    hits = [hit("other.md"), hit("guide.md", 5, 9), hit("other.md", 3), hit("guide.md", 1, 4), hit("third.md")]
    ranking = judged(asking(GUIDE), hits)
    assert len(ranking) == 3
    assert [name in grades_of(asking(GUIDE)) for name in ranking] == [False, True, False]


def test_a_span_is_found_by_a_hit_that_shares_a_line_with_it_and_counts_once():
    question = asking(Label(source_id="guide.md", lines=(10, 20)), Label(source_id="guide.md", lines=(40, 50), grade=2))
    hits = [
        hit("guide.md", 1, 9),
        hit("guide.md", 20, 25),
        hit("guide.md", 21, 39),
        hit("guide.md", 12, 13),
        hit("guide.md", 5, 60),
    ]
    ranking = judged(question, hits)
    assert [grades_of(question).get(name, 0) for name in ranking] == [0, 1, 2]


def test_the_type_of_a_source_counts_when_it_is_given():
    assert judged(asking(GUIDE), [hit("guide.md", source_type="code")])[0] not in grades_of(asking(GUIDE))
    anywhere = asking(Label(source_id="guide.md"))
    assert judged(anywhere, [hit("guide.md", source_type="code")])[0] in grades_of(anywhere)


def test_what_is_left_out_is_not_in_the_ranking():
    question = asking(GUIDE, left_out=[Label(source_id="issue#1", source_type="github_issue")])
    ranking = judged(question, [hit("issue#1", source_type="github_issue"), hit("guide.md")])
    assert [name in grades_of(question) for name in ranking] == [True]


@st.composite
def cuts(draw, lines=40):
    """Spans of lines that cover a document of 40 lines, in order, as a chunker would cut it."""
    ends = sorted({*draw(st.sets(st.integers(1, lines - 1))), lines})
    return [(start + 1, end) for start, end in zip([0, *ends], ends, strict=False)]


spans = st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (min(pair), max(pair)))


@settings(deadline=None)  # the first example imports trec_eval
@given(cuts(), cuts(), st.lists(spans, min_size=1, max_size=4, unique=True))
def test_labels_survive_another_way_of_cutting(one, other, labelled):
    question = asking(*(Label(source_id="guide.md", lines=lines) for lines in labelled))
    grades = grades_of(question)
    for chunks in (one, other):
        ranking = judged(question, [hit("guide.md", *span) for span in chunks])
        assert set(grades) <= set(ranking), "every span lies in some chunk"
        assert len(ranking) <= len(grades) + 1, "all hits elsewhere in the document count as one"
        assert measure({"q": ranking}, {"q": grades})["q"]["R@20"] == 1.0


@settings(deadline=None)
@given(cuts(), cuts())
def test_labels_of_whole_documents_give_the_same_figures_however_they_are_cut(one, other):
    question = asking(GUIDE)
    figures = [
        measure(
            {"q": judged(question, [hit(name, *span) for name in ("a.md", "guide.md") for span in chunks])},
            {"q": grades_of(question)},
        )
        for chunks in (one, other)
    ]
    assert figures[0] == figures[1]


def test_a_labelled_set_keeps_grades_and_leaves_unanswerable_questions_out(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "A"}\n{"_id": "b", "title": "B", "text": "B"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": 1, "text": "one"}\n{"_id": "2", "text": "two"}\n{"_id": "3", "text": ""}'
    )
    (tmp_path / "qrels.tsv").write_text("1\ta\t2\r\n1\tb\t0\r\n2\tgone\t1\n3\ta\t1\n\n")
    labelled = read_labelled_set(tmp_path)
    assert labelled.queries == [LabelledQuery(id="1", text="one", relevant={"a": 2})]
    assert question_of(labelled.queries[0]).relevant == [Label(source_id="a", grade=2)]


def test_the_layout_of_beirs_archives_is_read_too(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "A"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "one"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    assert len(read_labelled_set(tmp_path).queries) == 1


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("corpus.jsonl", '{"_id": "a"}', r"corpus\.jsonl:1: not a document or a question .* no `text`"),
        ("corpus.jsonl", '{"_id": "a", "text": ""}\n{"_id": "a", "text": ""}', "two documents have the same `_id`"),
        ("queries.jsonl", "nonsense", r"queries\.jsonl:1: not a document or a question"),
        ("queries.jsonl", '{"_id": 1, "text": "x"}\n{"_id": "1", "text": "y"}', "two questions have the `_id` '1'"),
        ("qrels.tsv", "h\th\th\n1 a 1", r"qrels\.tsv:2: expected a query id, a document id and a grade"),
        ("qrels.tsv", "1\ta\t1\n1\ta\tgood", r"qrels\.tsv:2: expected"),
        ("qrels.tsv", "1\tz\t1", "no question of queries.jsonl has a document"),
    ],
)
def test_a_malformed_set_is_named_with_its_place(tmp_path, file, text, said):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "A"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "one"}\n')
    (tmp_path / "qrels.tsv").write_text("1\ta\t1\n")
    (tmp_path / file).write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_labelled_set(tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere is not a folder: a labelled set is a folder with corpus\.jsonl"):
        read_labelled_set(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"corpus\.jsonl: cannot be read"):
        read_labelled_set(tmp_path)
