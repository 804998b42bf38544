"""Texts of whose words the embedding model knows too few: indexed, found by their words, and told of.

With the real local model, because what it can read is what is at stake.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest

from rag_pipeline.cli.config_warnings import _texts_without_vector
from rag_pipeline.defs.resources import Pipeline
from rag_pipeline.embedding import Embedder, make_embedder
from rag_pipeline.embedding.stage import EmbeddingsReport
from rag_pipeline.errors import UnreadableText
from rag_pipeline.evaluation.remembering import open_search
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import Found
from rag_pipeline.settings import Embedding, Settings
from rag_pipeline.settings.complaints import Complaint
from rag_pipeline_tests.end_to_end.installation import Installation, WordEmbedder
from rag_pipeline_tests.git_repository import GitRepository

THAI = [
    "วิธีติดตั้งโปรแกรม",
    "การตั้งค่าฐานข้อมูล",
    "สำรองข้อมูลทุกวัน",
    "กู้คืนระบบจากไฟล์",
    "เปลี่ยนรหัสผ่านผู้ใช้",
    "ตรวจสอบบันทึกเหตุการณ์",
    "เพิ่มพื้นที่จัดเก็บ",
    "ลบบัญชีที่ไม่ใช้",
    "ปรับปรุงความเร็ว",
    "แก้ปัญหาเครือข่าย",
    "ส่งอีเมลแจ้งเตือน",
    "นำเข้ารายชื่อลูกค้า",
    "พิมพ์ใบแจ้งหนี้",
    "ปิดระบบอย่างปลอดภัย",
]
ENGLISH = "# Backups\n\nThe database is copied to another site every night at two o'clock.\n"
OTHERS = {
    "my.md": "# ဒေတာဘေ့စ်\n\nဒေတာဘေ့စ်ကို နေ့စဉ် သိမ်းဆည်းပါ။\n",
    "km.md": "# មូលដ្ឋានទិន្នន័យ\n\nបម្រុងទុកទិន្នន័យ រៀងរាល់ថ្ងៃ។\n",
    "am.md": "# የውሂብ ጎታ\n\nየውሂብ ጎታውን በየቀኑ ያስቀምጡ።\n",
    "zh.md": "# 数据库\n\n每天晚上备份数据库，然后检查备份。\n",
    "zh2.md": "# 打印机\n\n请先安装驱动程序，再连接打印机。\n",
    "emoji.md": "🎉🎉🎉\n\n🚀 🚀 🚀\n",
    "lump.md": "QUJDREVGR0hJSktM" * 40 + "\n",
}


class Local(Installation):
    """An installation with the local model."""

    def embedder_for(self, settings: Embedding, *, environ: Mapping[str, str]) -> Embedder:  # type: ignore[override]
        return make_embedder(settings, environ=environ)


@pytest.fixture
def installation(tmp_path, database, repository):
    repositories = [{"name": "docs", "source": str(repository.path), "include": ["*.md"]}]
    return Local(tmp_path / "home", database, repositories, embedder=WordEmbedder("all-MiniLM-L6-v2"))


def commit(repository: GitRepository, pages: Mapping[str, str], *, day: str = "2024-01-20") -> None:
    repository.commit(f"{day}T10:00", dict(pages))


def thai_pages() -> dict[str, str]:
    return {f"{number}.md": f"# {name}\n\n{name}\n" for number, name in enumerate(THAI)}


def find(installation: Installation, question: str, **how: str) -> Found:
    return installation.pipeline().find(SearchQuery(text=question, tenant="default", k=3, **how))  # type: ignore[arg-type]


def paths(found: Found) -> list[str]:
    return [hit.source_id.removeprefix("docs:") for hit in found.hits]


def vectors(installation: Installation) -> tuple[int, int]:
    """Rows with a vector, and rows without."""
    with psycopg.connect(installation.database) as connection:
        row = connection.execute("SELECT count(embedding), count(*) - count(embedding) FROM rag.vectors_1").fetchone()
    assert row is not None
    return row[0], row[1]


def texts(installation: Installation) -> int:
    """Different texts that the index shows."""
    return len({text for chunks in installation.documents().values() for text in chunks})


def texts_without_vector(settings: Settings) -> list[Complaint]:
    """What `config check --online` says of them."""
    return list(_texts_without_vector(settings, online=True))


def embeddings(pipelines: list[Pipeline]) -> EmbeddingsReport:
    report = pipelines[-1].reports["embeddings"]
    assert isinstance(report, EmbeddingsReport)
    return report


def test_a_repository_of_thai_pages_is_indexed_and_found_by_its_words(installation, repository):
    commit(repository, thai_pages())
    installation.checks = True
    pipelines = installation.refresh()
    assert vectors(installation) == (0, len(THAI))
    assert not installation.failures()
    note = str(pipelines[-1].reports["without_vector"])
    assert "knows too few words of 14 texts" in note and "multilingual model" in note and "min_known_share" in note
    for number in (0, 7, 13):
        found = find(installation, THAI[number])
        assert paths(found)[0] == f"{number}.md"
        assert found.degraded.startswith("not searched by meaning: all-MiniLM-L6-v2 knows 0% of the question's words")
    (warning,) = texts_without_vector(installation.settings)
    assert warning.key == "embedding.model" and "14 texts" in warning.message
    with pytest.raises(UnreadableText):
        find(installation, THAI[0], legs="vector")
    assert find(installation, "how do I make backups?").hits == []
    again = embeddings(installation.refresh())
    assert (again.embedded, again.unreadable, again.fresh) == (0, 0, again.parts)


def test_pages_of_many_scripts_stand_next_to_english_ones(installation, repository):
    commit(repository, {**OTHERS, "en.md": ENGLISH, "th.md": f"# {THAI[1]}\n\n{THAI[2]}\n"})
    report = embeddings(installation.refresh())
    chunks = texts(installation)
    assert (report.embedded, report.unreadable) == (1, chunks - 1) == vectors(installation)
    assert chunks > len(OTHERS)
    for question, page in (("ဒေတာဘေ့စ်", "my.md"), ("የውሂብ", "am.md"), ("数据库", "zh.md"), ("打印机", "zh2.md")):
        assert paths(find(installation, question))[0] == page, question
    english = find(installation, "when are copies made?")
    assert paths(english) == ["en.md"] and not english.degraded
    # Both legs are asked, and a page without a vector is found by its words all the same.
    mixed = find(installation, "how often do I have to save the 数据库 of our project?")
    assert not mixed.degraded and set(paths(mixed)) == {"en.md", "zh.md"}


def test_a_page_without_spaces_is_cut_into_chunks_of_usual_length(installation, repository):
    line = "".join(THAI)
    commit(repository, {"long.md": "\n".join([f"# {THAI[0]}\n", *[line] * 20])})
    installation.refresh()
    lengths = [len(text) for text in installation.documents()["docs:long.md"]]
    assert sum(lengths) > 5_000 and max(lengths) < 100  # of at most 60 tokens


def test_an_evaluation_takes_the_words_alone_as_people_get_them(installation, repository):
    commit(repository, {**OTHERS, "en.md": ENGLISH})
    installation.refresh()
    pipeline = installation.pipeline()
    embedder = pipeline.models.configured()
    with (
        pipeline.connection() as connection,
        open_search(connection, embedder, settings=installation.settings, environ={}) as search,
    ):
        fused, alone = (
            search(SearchQuery(text="数据库", tenant="default", k=1, legs=legs))  # type: ignore[arg-type]
            for legs in ("fused", "vector")
        )
    assert [hit.source_id for hit in fused] == ["docs:zh.md"] and not alone


def test_what_cannot_be_read_is_not_measured_again_without_a_change(installation, repository):
    commit(repository, {**OTHERS, "en.md": ENGLISH})
    installation.refresh()
    before = installation.rows()
    commit(repository, {"more.md": "# More\n\nAnother page in English.\n"}, day="2024-01-21")
    assert embeddings(installation.refresh()).unreadable == 0
    assert set(before["vectors_1"]) < set(installation.rows()["vectors_1"])


def test_another_minimum_gives_vectors_and_takes_them_away(installation, repository):
    commit(repository, {**OTHERS, "en.md": ENGLISH})
    installation.more = {"embedding": {"model": "all-MiniLM-L6-v2", "min_known_share": 0.0}}
    installation.refresh()
    chunks = texts(installation)
    assert vectors(installation) == (chunks, 0)
    for minimum, expected in ((0.5, (1, chunks - 1)), (0.0, (chunks, 0))):
        installation.more = {"embedding": {"model": "all-MiniLM-L6-v2", "min_known_share": minimum}}
        installation.run("2024-01-20")
        assert vectors(installation) == expected


def test_a_lost_database_gets_the_same_texts_settled_from_the_lake(installation, repository, other_database):
    commit(repository, {**OTHERS, "en.md": ENGLISH})
    installation.refresh()
    installation.database = other_database
    report = embeddings(installation.refresh())
    chunks = texts(installation)
    assert (report.embedded, report.restored, report.unreadable) == (0, 1, chunks - 1)
    assert vectors(installation) == (1, chunks - 1)
