"""What the page is made of, as it is served; without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rag_pipeline.serving import page
from rag_pipeline_tests.serving.page.stub_service import StubService, stub_app

FOLDER = Path(page.__file__).parent
FILES = sorted(path.name for path in FOLDER.iterdir() if path.suffix in {".html", ".css", ".js", ".svg"})
MOST_BYTES = 40_000


@pytest.fixture
def client():
    return TestClient(stub_app(StubService()), headers={"Accept-Encoding": "identity"})


def test_the_page_may_load_only_its_own_files_and_run_no_text(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("style.css", "text/css; charset=utf-8"), ("main.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)  # fmt: skip
def test_each_file_has_its_type(client, name, content_type):
    answer = client.get(f"/static/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    assert answer.content == (FOLDER / name).read_bytes()
    assert "content-security-policy" in answer.headers


def test_what_a_browser_has_already_is_not_sent_again(client):
    first = client.get("/static/main.js")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/static/main.js", headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert client.get("/static/main.js", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip, br", "gzip"), ("br;q=1.0, gzip;q=0.8", "gzip"), ("gzip;q=0", None), ("identity", None)],
)
def test_files_are_packed_for_those_who_take_them_packed(client, accepted, encoding):
    answer = client.get("/static/style.css", headers={"Accept-Encoding": accepted})
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.content == (FOLDER / "style.css").read_bytes()


def test_the_page_is_small_on_its_way(client):
    sent = [client.get(f"/static/{name}", headers={"Accept-Encoding": "gzip"}) for name in FILES]
    assert sum(int(answer.headers["content-length"]) for answer in sent) < MOST_BYTES


@pytest.mark.parametrize("name", ["__init__.py", "..%2f__init__.py", "nothing.js", "%00", "main.js/"])
def test_nothing_else_is_served(client, name):
    answer = client.get(f"/static/{name}", follow_redirects=False)
    assert answer.status_code in {404, 307}
    assert b"import" not in answer.content


def test_the_head_of_a_page_is_had_without_its_body(client):
    answer = client.head("/")
    assert (answer.status_code, answer.content) == (200, b"")


def test_every_file_is_named_by_another_and_none_by_an_address_elsewhere():
    texts = {name: (FOLDER / name).read_text(encoding="utf-8") for name in FILES}
    named = set(re.findall(r'(?:static/|from "\./)([a-z]+\.(?:js|css|svg))"', "\n".join(texts.values())))
    assert named == set(FILES) - {"index.html"}
    for name, text in texts.items():
        elsewhere = re.findall(r"(?:src|href|url|import|fetch)\W{0,3}(?:https?:)?//\S+", text)
        assert elsewhere == [], name


def test_no_markup_is_made_from_text_and_nothing_is_inline():
    for name in FILES:
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
    page_text = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\bsrc=)", page_text)


def test_the_service_has_the_page_with_its_own_stricter_policy(running):
    answer = running.client.get("/")
    assert (
        answer.headers["content-security-policy"]
        == TestClient(stub_app(StubService())).get("/").headers["content-security-policy"]
    )
    assert running.client.get("/static/main.js").status_code == 200
    missing = running.client.get("/static/nothing.js")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    assert "/" not in running.client.get("/openapi.json").json()["paths"]
