"""Which terms a text is found by."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_pipeline.lexical import analyzer
from rag_pipeline.lexical.analyzer import MAX_TERM_CHARS, count_terms, placed_terms, terms_of
from rag_pipeline.lexical.questions import (
    FUNCTION_WORD_WEIGHT,
    closest,
    known_share,
    other_spellings,
    unknown_words,
    weighted_terms,
)

TEXTS = st.text() | st.text(alphabet="abAB01_.-/:'’@+# C東京éß\n", max_size=60)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Retrieving retrieved retrieval", ["retriev", "retriev", "retriev"]),
        ("getHTTPResponse", ["gethttprespons", "get", "http", "respons"]),
        ("max_chunk_tokens", ["max_chunk_token", "max", "chunk", "token"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("json.JSONDecoder", ["json.jsondecod", "json", "jsondecod", "json", "decod"]),
        ("std::vec::Vec", ["std::vec::vec", "std", "vec", "vec"]),
        ("src/app.py:12", ["src/app.py:12", "src", "app", "py", "12"]),
        ("--dry-run", ["dry-run", "dri", "run"]),
        ("__init__ _private", ["__init__", "init", "_privat", "privat"]),
        ("E1101 sha256sum", ["e1101", "e", "1101", "sha256sum", "sha", "256", "sum"]),
        ("APIs of userIDs", ["api", "of", "userid", "user", "id"]),
        ("user@example.org", ["user@example.org", "user", "exampl", "org"]),
        ("____ --- ::", []),
    ],
)
def test_identifiers_whole_and_in_parts(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


@pytest.mark.parametrize("version", ["1.2.3", "v1.2.3", "V1.2.3"])
def test_versions_are_kept_whole_with_or_without_their_v(version: str) -> None:
    assert terms_of(f"since {version}.") == ["sinc", "1.2.3"]
    assert terms_of("2.0.0-rc1 3.13b2") == ["2.0.0-rc1", "2.0.0", "3.13b2", "3.13"]


GLUED = [
    ("16.2", "postgres:16.2"),
    ("16.2", "postgres-16.2-alpine"),
    ("16.2", ">=16.2,<17"),
    ("16.2", "v16.2"),
    ("16.2", "16.2-rc1"),
    ("3.11", "python3.11"),
    ("3.11", "python:3.11-slim-bookworm"),
    ("18.2.0", "react@18.2.0"),
    ("20.1.0", "node-v20.1.0-linux-x64"),
    ("22.04", "ubuntu-22.04"),
    ("7.3.1", "falcon-7.3.1.tar.gz"),
    ("1.2.3", "foo_1.2.3_amd64.deb"),
    ("1.2.3", "libfoo.so.1.2.3"),
    ("1.26", "numpy==1.26.*"),
    ("10.20.30.40", "10.20.30.40:9125"),
    ("1.2.3.4", "http://1.2.3.4/24"),
    ("1.1", "HTTP/1.1"),
    ("2.1", "section 2.1."),
    ("2024-05-01", "backup-2024-05-01.tar.gz"),
    ("2024-05", "2024-05-01T10:00:00"),
    ("3000.5", "3,000.5"),
    ("fe80::1", "[fe80::1]:8080"),
    ("CVE-2024-1234", "(cve-2024-1234)"),
    ("c++", "C++17"),
]


@pytest.mark.parametrize(("number", "glued"), GLUED)
def test_a_number_is_a_term_of_its_own_wherever_it_stands(number: str, glued: str) -> None:
    assert terms_of(number)[0] in terms_of(glued)


@pytest.mark.parametrize("glued", ["16.2", "postgres:16.2", "postgres 16.2", "postgres16.2", "16.2/x", "x_16.2"])
def test_a_version_is_not_its_numbers(glued: str) -> None:
    assert not {"16", "2"} & set(terms_of(glued))


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("resume", "résumé"),
        ("Muller", "Müller"),
        ("Mueller", "Müller"),
        ("strasse", "Straße"),
        ("lodz", "Łódź"),
        ("oresund", "Øresund"),
        ("athina", "Athína"),
        ("αθηνα", "Αθήνα"),
        ("елка", "ёлка"),
        ("كتاب", "كِتَاب"),
        ("istanbul", "İstanbul"),
        ("upload", "résumé-upload"),
    ],
)
def test_accented_words_have_a_term_without_accents(asked: str, written: str) -> None:
    plain = terms_of(asked)[0]
    assert {plain, f"~{plain}"} & set(terms_of(written))


@pytest.mark.parametrize(
    ("one", "other"),
    [("résumé", "re\u0301sume\u0301"), ("ABC-12", "ＡＢＣ-１２"), ("fine", "ﬁne"), ("ガ", "ｶﾞ"), ("か\u3099", "が"),
     ("한", "\u1112\u1161\u11ab"), ("co\u00adoperate", "cooperate")],
)  # fmt: skip
def test_what_looks_the_same_has_the_same_terms(one: str, other: str) -> None:
    assert terms_of(one) == terms_of(other)


@pytest.mark.parametrize("word", ["が", "ガ", "й", "한", "हिन्दी", "தமிழ்", "น้ำ"])
def test_marks_that_make_another_letter_are_no_accents(word: str) -> None:
    assert not any(term.startswith("~") for term in terms_of(word))


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "বাংলা", "አማርኛ", "བོད", "עִבְרִית"])
def test_vowel_signs_do_not_cut_words(word: str) -> None:
    assert terms_of(f"({word})")[0] == unicodedata.normalize("NFKC", word)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("ภาษา", "ฉันพูดภาษาไทยได้"),
        ("น้ำ", "ดื่มน้ำเปล่า"),
        ("ພາສາ", "ຂ້ອຍເວົ້າພາສາລາວ"),
        ("ត្រី", "ខ្ញុំញ៉ាំត្រីឆ្អិន"),
        ("ရေ", "ကျွန်တော်ရေသောက်တယ်"),
        ("数据库", "连接数据库失败"),
        ("猫", "黒い猫が好き"),
        ("བོད", "བོད་སྐད་"),
    ],
)
def test_words_of_scripts_without_spaces_are_found_in_sentences(word: str, sentence: str) -> None:
    asked = set(weighted_terms(word))
    assert asked
    assert asked <= set(terms_of(sentence))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("the user's, the users’", ["the", "user", "the", "user"]),
        ("don't DON’T dont", ["dont", "dont", "dont"]),
        ("b'raw'", ["b'raw", "b", "raw"]),  # quotes of code are no apostrophes
        ("f'{x}'s'", ["f", "x", "s"]),
    ],
)
def test_apostrophes(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


def test_languages_named_with_signs_and_signs_after_words() -> None:
    assert terms_of("C++, c#")[::2] == ["c++", "c#"]
    assert terms_of("count++ issue#12 x+y") == ["count", "issu", "12", "x", "y"]


def test_scripts_without_spaces_become_pairs() -> None:
    assert terms_of("東京都") == ["東", "東京", "京", "京都", "都"]
    assert terms_of("京 東京のAPIs") == ["京", "東", "東京", "京", "京の", "api"]


@pytest.mark.parametrize(
    ("asked", "written"),
    [("numpy", "NumPy"), ("apis", "API"), ("http response", "HTTPResponse"), ("join", "os.path.join"), ("c", "C++")],
)
def test_who_asks_finds_how_others_write_it(asked: str, written: str) -> None:
    assert set(terms_of(asked)) <= set(terms_of(written))


def test_long_tokens_are_cut() -> None:
    assert {len(term) for term in terms_of("ab" * 500)} == {MAX_TERM_CHARS}


@given(TEXTS)
def test_counts_are_those_of_the_terms(text: str) -> None:
    assert count_terms(text) == Counter(terms_of(text))


@given(TEXTS)
@example("a'b.c")
@example("東京.tower大阪")
def test_every_run_of_letters_and_digits_is_found_by_itself(text: str) -> None:
    """But for what belongs together: a number inside a version, a letter after an apostrophe."""
    without = re.sub(r"['’]|\d", " ", unicodedata.normalize("NFKC", text))
    found = set(terms_of(without))
    for run in re.findall(rf"[^\W_](?:[^\W_]|[{analyzer._MARK}])*", without):
        asked = terms_of(run)
        assert asked
        assert found & set(asked), run


def test_a_question_asks_for_single_characters_only_alone() -> None:
    assert list(weighted_terms("数据库")) == ["数据", "据库"]
    assert list(weighted_terms("猫 和 数据")) == ["猫", "和", "数据"]


def test_other_spellings_count_less_and_function_words_have_none() -> None:
    assert set(other_spellings("resum")) == {"~resum"}
    assert set(other_spellings("résumé")) == {"resum", "~resum"}
    assert other_spellings("the") == other_spellings("16.2") == {}
    assert max(other_spellings("müller").values()) < 1


@given(TEXTS)
def test_terms_are_not_empty_and_never_too_long(text: str) -> None:
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in terms_of(text))


def test_memory_of_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer, "_MAX_REMEMBERED", 10)
    monkeypatch.setattr(analyzer, "_known", {})
    text = " ".join(f"word{number}" for number in range(100))
    assert count_terms(text) == Counter(terms_of(text))
    assert len(analyzer._known) <= 10


def test_small_words_of_a_question_weigh_less() -> None:
    assert weighted_terms("How does the retry_policy of a retry work?") == {
        "how": FUNCTION_WORD_WEIGHT,
        "doe": FUNCTION_WORD_WEIGHT,
        "the": FUNCTION_WORD_WEIGHT,
        "retry_polici": 1.0,
        "retri": 1.0,
        "polici": 1.0,
        "of": FUNCTION_WORD_WEIGHT,
        "a": FUNCTION_WORD_WEIGHT,
        "work": 1.0,
    }
    assert weighted_terms("???") == {}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("it retries", [("it", "it"), ("retri", "retries")]),
        ("(getHTTPResponse)", [("gethttprespons", "getHTTPResponse"), ("get", "get"), ("http", "HTTP"),
                               ("respons", "Response")]),
        ("the user's os.path", [("the", "the"), ("user", "user's"), ("os.path", "os.path"), ("os", "os"),
                                ("path", "path")]),
        ("don't", [("dont", "don't")]),
        ("since v1.2.3", [("sinc", "since"), ("1.2.3", "v1.2.3")]),
        ("東京都", [("東", "東"), ("東京", "東京"), ("京", "京"), ("京都", "京都"), ("都", "都")]),
    ],
)  # fmt: skip
def test_terms_are_placed_where_they_stand(text: str, places: list[tuple[str, str]]) -> None:
    assert [(term, text[start:end]) for term, start, end in placed_terms(text)] == places


@given(TEXTS)
@example("a'sB's_C don't /東.京x's")
@example("HTTPServer.getUserIDs_2 os.path/x--y v1.2-rc1 2024-05-01 1,000 ___ C++17 a::b user@host.io:80 A1,2")
def test_placed_terms_are_the_terms_of_a_text_and_lie_in_it(text: str) -> None:
    found = list(placed_terms(text))
    assert [term for term, _, _ in found] == terms_of(text)
    assert all(0 <= start < end <= len(text) for _, start, end in found)


@pytest.mark.parametrize(
    ("question", "held", "share"),
    [
        ("rotate the key", {"rotat", "key"}, 1.0),
        ("rotate xyzzy", {"rotat"}, 6 / 11),
        ("asdkjh qwlkej", {"the", "rotat"}, 0.0),
        ("Zk3vQx9TqL0aB7w", {"k", "3", "qx", "b"}, 0.0),
        ("getHTTPResponse", {"respons"}, 1.0),
        ("!!!!", {"rotat"}, 0.0),
        ("what is it", {"what"}, None),
        ("数据库", {"数据"}, 1.0),
    ],
)
def test_the_share_of_a_question_that_is_known(question: str, held: set[str], share: float | None) -> None:
    assert known_share(question, held) == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    "question", ["16.3", "v2.0", "E1101", "getFoo", "os.pth", "teh", "x64", "CVE-2024-1234", "数据"]
)
def test_only_plain_words_are_corrected(question: str) -> None:
    assert unknown_words(question, set()) == {}


@pytest.mark.parametrize(
    ("term", "candidates", "meant"),
    [
        ("authentc", ["authent", "authent2", "author"], ["authent"]),
        ("pyhton", ["python", "pylon"], ["python"]),
        ("obejct", ["object"], ["object"]),
        ("remedi", ["emed", "medi", "reed"], []),
        ("foreach", ["reach"], []),
        ("decompil", ["compil"], []),
        ("kubernete", ["kubernet"], ["kubernet"]),
    ],
)
def test_what_a_misspelt_word_may_mean(term: str, candidates: list[str], meant: list[str]) -> None:
    assert closest(term, candidates) == meant
