"""Small talk needs no search; everything else gets one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.retrieval.small_talk import should_retrieve

SMALL_TALK = [
    "", "  \n", "...", "???", "!", "hi", "Hello!", "hey there :)", "thanks:)", "thanks",
    "Thank you so much!!", "ok", "OK, got it, thanks 👍",
    "👍", "👍🏽🎉", "🇩🇪", "1️⃣", "👩‍💻", ":-)", "<3", "how are you?", "What’s up?",
    "Good morning everyone", "yes", "lol <3", "ＯＫ",
    "Hallo zusammen", "Vielen Dank!", "guten Tag", "Wie geht's?", "Tschüß", "alles klar, danke",
    "Merci beaucoup", "Bonjour, comment ça va ?", "d'accord", "à bientôt",
    "¡Hola! ¿Qué tal?", "gracias", "Muchas gracias, hasta luego", "buenos días",
    "Grazie mille", "ciao", "va bene, grazie", "Obrigado!", "tudo bem?", "bom dia", "não, obrigada",
    "你好！", "你好吗？", "谢谢你，再见", "好的", "明白了",
    "こんにちは", "ありがとうございます！", "了解です", "お元気ですか？",
]  # fmt: skip
QUESTIONS = [
    "how do I deploy?", "deploy", "hi, how do I install it?", "thanks, but it still fails", "ok?", "why?", "and then?",
    "=>", "&&", "c++", "E1234", "KeyError", "404", "v1.2", "k8s", "install",
    "hello world example", "good morning, prod is down",
    "yes, rollback", "`ok`", "os.path.join", "no module named foo", "hi()", "thanks/README", "hola.py", "👍 deploy",
    "wie installiere ich das", "danke, aber wie", "merci, et pour le déploiement ?", "gracias, ¿y el despliegue?",
    "grazie, come si installa?", "obrigado, e o deploy?", "谢谢，怎么部署", "部署",
    "ありがとう、インストール方法は？", "インストール",
    "привет, как установить?", "hi " * 200,
]  # fmt: skip


@pytest.mark.parametrize("message", SMALL_TALK)
def test_small_talk_in_eight_languages(message):
    assert not should_retrieve(message)


@pytest.mark.parametrize("message", QUESTIONS)
def test_whatever_says_more_is_looked_up(message):
    assert should_retrieve(message)


@given(st.lists(st.sampled_from([message for message in SMALL_TALK if message.isascii() and "?" not in message])))
def test_small_talk_after_small_talk_is_small_talk(messages):
    said = " ".join(messages)
    assert len(said) > 200 or not should_retrieve(said)


@given(st.sampled_from(SMALL_TALK), st.sampled_from(["deploy", "KeyError", "kubectl", "postgres", "部署", "Fehler"]))
def test_one_word_of_engineering_is_enough(small_talk, word):
    assert should_retrieve(f"{small_talk} {word}")
    assert should_retrieve(f"{word}, {small_talk}")


@given(st.text())
def test_any_text_gets_an_answer(text):
    assert should_retrieve(text) in (True, False)
