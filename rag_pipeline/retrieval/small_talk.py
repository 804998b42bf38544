"""Which messages of a chat need no search: greetings, thanks, acknowledgements. Pure.

A message is small talk only when all of it is: phrases of the lists below, one after the other, and nothing else. When
in doubt it is not, since a needless search costs milliseconds and a missing one costs the answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final

_LONGEST_CHARS: Final = 200
"""Whoever writes more than this says something."""

_PHRASES: Final = {
    "en": """
        hi, hii, hiya, hello, helo, hey, heya, hey there, hi there, hello there, yo, sup, howdy, greetings, welcome,
        hi all, hello all, hey all, hi everyone, hello everyone, hey everyone, hi team, hello team, hi folks,
        hey guys, hi bot, hello bot, good morning, good afternoon, good evening, good night, good day, morning,
        evening, gm, gn, how are you, how are you doing, how are you today, how are you doing today, how is it going,
        how's it going, hows it going, what's up, whats up, how do you do, nice to meet you, pleased to meet you,
        thanks, thank you, thankyou, thx, thnx, ty, tysm, tyvm, cheers, thanks a lot, thanks a bunch,
        thanks a million, thanks so much, thank you so much, thank you very much, thanks very much, many thanks,
        much appreciated, appreciated, appreciate it, i appreciate it, thanks for your help, thank you for your help,
        thanks for the help, thank you for the help, thanks again, thank you again, thanks in advance, you're welcome,
        youre welcome, you are welcome, no problem, no worries, np, my pleasure, that helps, that helped,
        that was helpful, this was helpful, very helpful, so helpful, helpful, ok, okay, okey, kk, k, okay then,
        ok then, alright, all right, right, sure, sure thing, of course, yes, yeah, yep, yup, ya, no, nope, nah,
        got it, gotcha, understood, i see, i understand, makes sense, that makes sense, roger, roger that, copy that,
        noted, will do, fine, good, very good, great, great job, good job, well done, nice, nice one, nice work, cool,
        awesome, amazing, excellent, perfect, wonderful, fantastic, brilliant, super, lovely, sweet, neat, wow, lol,
        haha, hahaha, hehe, hmm, hm, ah, oh, aha, oh ok, ah ok, done, all good, sounds good, looks good, that's all,
        thats all, that is all, never mind, nevermind, nvm, agreed, exactly, correct, indeed, very much, so much,
        a lot, and, then, please, sorry, my bad, oops, excuse me, bye, bye bye, goodbye, good bye, see you, see ya,
        see you later, see you soon, see you tomorrow, cya, later, take care, have a nice day, have a good day,
        have a great day, have a good one, have a good weekend, have a nice weekend, good luck, you too, same to you,
        for now, everyone, all, team, folks, guys, again
    """,
    "de": """
        hallo, hallöchen, hi zusammen, hallo zusammen, servus, moin, moin moin, grüß gott, grüß dich, grüezi,
        guten morgen, guten tag, guten abend, gute nacht, schönen guten tag, mahlzeit, wie geht's, wie gehts,
        wie geht es dir, wie geht es ihnen, na, danke, danke euch, dankeschön, danke schön, danke sehr, vielen dank,
        vielen lieben dank, besten dank, herzlichen dank, tausend dank, danke dir, danke ihnen, danke für die hilfe,
        danke für deine hilfe, vielen dank für die hilfe, vielen dank für deine hilfe, bitte, bitte schön, bitteschön,
        bitte sehr, gern geschehen, gerne, gern, kein problem, ja, jo, jawohl, nein, nö, nee, doch, klar, alles klar,
        na klar, okay danke, gut, sehr gut, prima, super, toll, klasse, spitze, wunderbar, perfekt, genau, stimmt,
        richtig, verstanden, verstehe, ich verstehe, ach so, achso, passt, das passt, in ordnung, geht klar,
        einverstanden, tschüss, tschüß, tschau, ciao, auf wiedersehen, bis bald, bis später, bis dann, bis morgen,
        schönen tag, schönen tag noch, schönes wochenende, entschuldigung, sorry
    """,
    "fr": """
        bonjour, bjr, bonsoir, bonne nuit, bonne journée, bonne soirée, salut, coucou, bonjour à tous, salut à tous,
        comment ça va, ça va, ca va, comment allez vous, comment allez-vous, comment vas tu, comment vas-tu, merci,
        merci beaucoup, merci bien, merci à toi, merci à vous, un grand merci, mille mercis, merci d'avance,
        merci pour votre aide, merci pour ton aide, merci pour l'aide, de rien, je vous en prie, je t'en prie,
        pas de problème, avec plaisir, oui, ouais, non, d'accord, daccord, ok merci, bien, très bien, c'est bon,
        parfait, super, génial, excellent, entendu, compris, j'ai compris, je comprends, je vois, bien sûr, exact,
        exactement, au revoir, à bientôt, à plus, à plus tard, à demain, bon week-end, bon weekend, adieu, pardon,
        désolé
    """,
    "es": """
        hola, hola a todos, holi, buenas, buenos días, buenos dias, buen día, buenas tardes, buenas noches, qué tal,
        que tal, cómo estás, como estas, cómo está, cómo va, gracias, muchas gracias, muchísimas gracias, mil gracias,
        gracias por tu ayuda, gracias por su ayuda, gracias por la ayuda, de nada, no hay de qué, con gusto, sí, si,
        no, vale, ok gracias, de acuerdo, entendido, entiendo, ya veo, claro, por supuesto, perfecto, genial, bien,
        muy bien, excelente, estupendo, listo, bueno, exacto, adiós, adios, hasta luego, hasta mañana, hasta pronto,
        hasta la vista, nos vemos, chao, chau, que tengas un buen día, perdón, lo siento
    """,
    "it": """
        ciao, ciao a tutti, salve, buongiorno, buon giorno, buonasera, buona sera, buonanotte, buona notte,
        buona giornata, buona serata, come stai, come sta, come va, tutto bene, grazie, grazie a tutti, grazie mille,
        molte grazie, tante grazie, grazie tante, mille grazie, ti ringrazio, la ringrazio, grazie per l'aiuto,
        grazie dell'aiuto, prego, di niente, figurati, nessun problema, sì, si, no, va bene, d'accordo, certo, capito,
        ho capito, capisco, perfetto, ottimo, bene, molto bene, benissimo, fantastico, esatto, arrivederci, a presto,
        a dopo, a domani, alla prossima, buon weekend, scusa, scusi
    """,
    "pt": """
        olá, ola, oi, oi pessoal, olá a todos, bom dia, boa tarde, boa noite, tudo bem, tudo bom, como vai, como está,
        como você está, e aí, e ai, obrigado, obrigada, muito obrigado, muito obrigada, obrigado pela ajuda,
        obrigada pela ajuda, valeu, brigado, agradeço, de nada, por nada, não há de quê, sem problema, sim, não, nao,
        tá, tá bom, ta bom, está bem, certo, claro, entendi, entendido, beleza, perfeito, ótimo, otimo, legal, bom,
        muito bom, muito bem, exato, tchau, adeus, até logo, ate logo, até mais, até amanhã, até breve, desculpa,
        desculpe
    """,
    "zh": """
        你好, 您好, 你好吗, 您好吗, 大家好, 嗨, 哈喽, 哈啰, 嘿, 喂, 早, 早安, 早上好, 上午好, 中午好, 下午好, 晚上好,
        晚安, 在吗, 谢谢, 谢谢你, 谢谢您, 多谢, 感谢, 非常感谢, 十分感谢, 谢谢大家, 谢谢你的帮助, 谢谢帮助, 辛苦了,
        不客气, 不用谢, 没关系, 没事, 没问题, 好, 好的, 好吧, 好呀, 好啊, 好了, 行, 可以, 嗯, 嗯嗯, 哦, 噢, 是, 是的,
        对, 对的, 不, 不是, 明白, 明白了, 懂了, 知道了, 我知道了, 了解, 收到, 没错, 太好了, 太棒了, 很好, 不错, 完美,
        厉害, 哈哈, 哈哈哈, 再见, 拜拜, 回头见, 明天见, 抱歉, 对不起, 謝謝, 謝謝你, 多謝, 感謝, 非常感謝, 不客氣,
        沒問題, 沒關係, 好嗎, 你好嗎, 再見, 對, 對的, 了, 啊, 呀, 啦, 吧, 我
    """,
    "ja": """
        こんにちは, こんにちわ, こんばんは, おはよう, おはようございます, おやすみ, おやすみなさい, はじめまして,
        やあ, もしもし, お元気ですか, 元気ですか, 元気, よろしく, よろしくお願いします, よろしくお願いいたします,
        お疲れ様, お疲れ様です, お疲れ様でした, お疲れさまです, ありがとう, ありがとうございます,
        ありがとうございました, どうもありがとう, どうもありがとうございます, どうも, 感謝します, 助かりました,
        助かります, どういたしまして, はい, うん, ええ, いいえ, いえ, そうです, そうですね, そうですか, なるほど,
        わかりました, 分かりました, わかった, 分かった, 了解, 了解です, 了解しました, 承知しました, かしこまりました,
        オッケー, オーケー, いいね, いいですね, すごい, すばらしい, 素晴らしい, 完璧, 完璧です, 最高, 最高です,
        さようなら, さよなら, またね, ありがと, また明日, ではまた, じゃあね, バイバイ, 失礼します, すみません,
        ごめんなさい, ハロー, ね, よ
    """,
}

_COURTESIES: Final = """
    how are you, how are you doing, how is it going, how's it going, hows it going, what's up, whats up,
    how do you do, sup, wie geht's, wie gehts, wie geht es, comment ça va, ça va, ca va, comment allez, comment vas,
    qué tal, que tal, cómo estás, como estas, cómo está, cómo va, come stai, come sta, come va, tutto bene, tudo bem,
    tudo bom, como vai, como está, como você está, e aí, e ai, 你好吗, 您好吗, 你好嗎, 在吗, お元気ですか, 元気ですか,
    元気
"""
"""Questions that want no answer; any other question mark makes a message a question."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN: Final = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_KEYCAP: Final = re.compile("[0-9#*]\ufe0f?\u20e3")
_EMOTICON: Final = re.compile(
    r"""[:;]-?\)+(?!\S)|(?<!\S)(?:[:;=8xX][-'o^]?[)(\]\[DPpOo/\\|*3]+|<3|\^_?\^|\\o/|[oO]/|[(]:|T_T|-_-)(?!\S)"""
)
_MERE_PUNCTUATION: Final = frozenset(".,;:!?…·~-–—'\"“”‘’«»¿¡。、，！？～・「」　 \t\r\n")


def should_retrieve(message: str) -> bool:
    """Whether a message may have an answer in the index; false for small talk, emoji alone, and nothing at all.

    Knows English, German, French, Spanish, Italian, Portuguese, Chinese and Japanese.
    """
    text = unicodedata.normalize("NFKC", _KEYCAP.sub(" ", message[: _LONGEST_CHARS + 1]))
    if len(text) > _LONGEST_CHARS:
        return True
    words = _without_pictures(_EMOTICON.sub(" ", text)).casefold().replace("’", "'")
    tokens = _tokens(words)
    if not tokens:
        # `=>`, `&&` and their like are questions about code.
        return any(char not in _MERE_PUNCTUATION for char in words)
    if any(char not in _MERE_PUNCTUATION for char in _TOKEN.sub("", words)):
        return True  # no small talk has brackets, slashes or plus signs in it
    if "?" in words and not _holds_a_courtesy(tokens):
        return True
    return not _all_small_talk(tokens)


def _without_pictures(text: str) -> str:
    """The text without emoji and what modifies them (skin tones, joiners, variants)."""
    return "".join(" " if _is_picture(char) else char for char in text)


def _is_picture(char: str) -> bool:
    # Ascii symbols such as ^ and ` share the modifiers' category, but are written by programmers.
    if char < "\x80":
        return False
    return unicodedata.category(char) in {"So", "Sk", "Cf", "Mn", "Me", "Cn", "Co"}


def _tokens(text: str) -> tuple[str, ...]:
    """Words, and the characters of scripts that are written without spaces."""
    return tuple(_TOKEN.findall(text))


def _all_small_talk(tokens: Sequence[str]) -> bool:
    """Whether the tokens are phrases of small talk, one after the other."""
    phrases, longest = _phrases()
    reached = [True, *[False] * len(tokens)]
    for end in range(1, len(tokens) + 1):
        starts = range(max(0, end - longest), end)
        reached[end] = any(reached[start] and tuple(tokens[start:end]) in phrases for start in starts)
    return reached[-1]


def _holds_a_courtesy(tokens: Sequence[str]) -> bool:
    spaced = f" {' '.join(tokens)} "
    return any(f" {' '.join(courtesy)} " in spaced for courtesy in _read(_COURTESIES))


@cache
def _phrases() -> tuple[frozenset[tuple[str, ...]], int]:
    """All phrases as tokens, and the length of the longest."""
    phrases = _read(",".join([*_PHRASES.values(), _COURTESIES]))
    return phrases, max(map(len, phrases))


@cache
def _read(texts: str) -> frozenset[tuple[str, ...]]:
    """Phrases between commas, as tokens."""
    return frozenset(_tokens(unicodedata.normalize("NFKC", text).casefold()) for text in texts.split(","))
