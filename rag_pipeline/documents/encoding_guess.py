"""Guess the encoding of bytes that say nothing of it, and say how much speaks for the guess.

Each candidate that decodes the bytes is rated by the log-likelihood of its letters: how common they are in the
languages that use the encoding, and whether they stand as they do in words (naive Bayes over single characters). All
candidates read the same bytes, so their sums can be compared. The margin between the best text and the next best other
text is the evidence: encodings that give the same text do not compete.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

STRONG_MARGIN: Final = 15.0
"""Natural logarithm of how much likelier the best text must be than every other for a guess to count as sure.

Measured over 23 languages and 40 encodings, 5 to 400 bytes of each: see `test_encodings.py`.
"""
_WORST_SURE: Final = -4.5
"""Mean log-likelihood for each byte that is not ASCII; a text of worse letters is in an encoding that is not listed."""
_IMPLAUSIBLE: Final = -7.0
"""Of a still worse mean, another detector is asked, which knows more encodings."""
_SAMPLE_BYTES: Final = 4096

_CYRILLIC: Final = (
    "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
    "оаинвіетрслкудмпзябьгчйхцжїюєшщфґ",
    "аеиотнрсвлдпкзмгъубцчщжяйхшюф",
    "аоиенртсјвкумдлпгзбшцчжњхљћђфџј",
    "аіенрылтсокдмвпузябгьўчхцжшэйюфё",
)
_GREEK: Final = ("αοιετσνηυρπκμλωςόίάέύήώδγχθφβξζψϊϋΐΰ",)
_HEBREW: Final = ("יוהלאתרבשנמםחדכקפעסטגןצזךףץ",)
_ARABIC: Final = ("اليمنرتبعوهدسفحقكةجشصىطخضزغذثأإئءؤظآ",)
_THAI: Final = ("ารนกอเงมยลวดทสตะปบคหแจพชขใไโผธถศณซฟภษฐญฎฏฆฉฌฑฒฬฮฝฤๅๆฯ่้ี์ัิืุูึ๊๋ำ็ฺ",)
_WESTERN: Final = ("üäößé", "éèàêçâôîùûëïœ", "óáíéñúü", "ãçéáíóêõúàâô", "åäöé", "æøåé", "àèéòùì", "íáéóðþöúæý", "éëïóö")
_CENTRAL: Final = ("ąęłóśżćńź", "íáéěšřčžýůúťďňó", "áéöóőüúűí", "ăâîşţ", "čćžšđ", "áíýčžšéúťľôňďäĺŕ", "üäößé")
_TURKISH: Final = ("ıüşğöçâîû",)
_BALTIC: Final = ("ėąųįšžūęč", "āīšēūņļģķžč", "äõüöšž")
_VIETNAMESE: Final = ("đưàáơêăôãâéèíóúảạếệ\u0300\u0301\u0303\u0309\u0323",)
_KANA: Final = (
    "のにるたいはをとがてでしなれさかまもりこすくっらきだあ"
    "アンスルリイトラシクレタフドロジプグムコマテデバメサキパブダオ"
)
_JAPANESE: Final = "人日一大年本中会定用設使更変必要時分上下生自行前者間見場合文字"
_CHINESE_SIMPLE: Final = (
    "的一是不了人我在有他这中大来上个国和也子时道说要就出会可你对生能而那得于着下自之年过发后作里用行所然家事成方多经么去法学如"
    "都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外"
    "将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先"
    "请文件安装程序配置修改运行下载支持"
)
_CHINESE_TRADITIONAL: Final = (
    "的一是不了人我在有他這中大來上個國和也子時道說要就出會可你對生能而那得於著下自之年過發後作裡用行所然家事成方多經麼去法學如"
    "都同現當沒動面起看定天分還進好小部其些主樣理心本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外"
    "將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先"
    "請檔案安裝程式設定修改執行下載支援"
)
_KOREAN: Final = "이다는을의에가한고하지로기사자인대도정어리시를은나아그일해서라수보부과장니게것만들전제"
_MARKS: Final = "«»„“”‘’–—…•·°©®§№¿¡€\xa0"
_WIDE_MARKS: Final = "、。，：；！？（）「」『』《》・ー“”\u3000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The likeliest encoding; `is_sure` where hardly another one can be meant."""

    encoding: str
    is_sure: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    encoding: str
    prior: float
    """Log-probability that a file which is not UTF-8 is in it, roughly."""
    alphabets: tuple[str, ...]
    """Of each language, by how common the letters are."""
    kind: str
    """`latin`: single letters among ASCII's; `script`: words of their own; `wide`: characters of two bytes."""


_CANDIDATES: Final = (
    _Candidate("cp1252", -1.0, _WESTERN, "latin"),
    _Candidate("iso8859-15", -4.0, _WESTERN, "latin"),
    _Candidate("mac_roman", -5.0, _WESTERN, "latin"),
    _Candidate("cp850", -5.0, _WESTERN, "latin"),
    _Candidate("cp437", -5.0, _WESTERN, "latin"),
    _Candidate("cp1250", -2.0, _CENTRAL, "latin"),
    _Candidate("iso8859-2", -2.5, _CENTRAL, "latin"),
    _Candidate("cp852", -5.0, _CENTRAL, "latin"),
    _Candidate("mac_latin2", -6.0, _CENTRAL, "latin"),
    _Candidate("mac_romanian", -6.0, _CENTRAL, "latin"),
    _Candidate("iso8859-16", -6.0, _CENTRAL, "latin"),
    _Candidate("cp1254", -3.0, _TURKISH, "latin"),
    _Candidate("iso8859-3", -6.0, _TURKISH, "latin"),
    _Candidate("cp857", -6.0, _TURKISH, "latin"),
    _Candidate("mac_turkish", -6.0, _TURKISH, "latin"),
    _Candidate("cp1257", -3.5, _BALTIC, "latin"),
    _Candidate("cp775", -6.0, _BALTIC, "latin"),
    _Candidate("iso8859-4", -6.0, _BALTIC, "latin"),
    _Candidate("iso8859-10", -6.0, (*_BALTIC, *_WESTERN), "latin"),
    _Candidate("cp1258", -5.0, _VIETNAMESE, "latin"),
    _Candidate("cp1251", -1.5, _CYRILLIC, "script"),
    _Candidate("koi8-u", -2.0, _CYRILLIC, "script"),
    _Candidate("koi8-r", -2.0, _CYRILLIC, "script"),
    _Candidate("cp866", -3.0, _CYRILLIC, "script"),
    _Candidate("cp1125", -5.0, _CYRILLIC, "script"),
    _Candidate("cp855", -6.0, _CYRILLIC, "script"),
    _Candidate("iso8859-5", -3.5, _CYRILLIC, "script"),
    _Candidate("mac_cyrillic", -4.5, _CYRILLIC, "script"),
    _Candidate("cp1253", -2.5, _GREEK, "script"),
    _Candidate("iso8859-7", -2.5, _GREEK, "script"),
    _Candidate("cp737", -5.0, _GREEK, "script"),
    _Candidate("mac_greek", -6.0, _GREEK, "script"),
    _Candidate("cp1255", -2.5, _HEBREW, "script"),
    _Candidate("cp862", -5.0, _HEBREW, "script"),
    _Candidate("cp1256", -2.5, _ARABIC, "script"),
    _Candidate("iso8859-6", -3.5, _ARABIC, "script"),
    _Candidate("cp720", -6.0, _ARABIC, "script"),
    _Candidate("cp864", -6.0, _ARABIC, "script"),
    _Candidate("cp874", -2.5, _THAI, "script"),
    _Candidate("gb18030", -1.5, (_CHINESE_SIMPLE,), "wide"),
    _Candidate("big5hkscs", -2.0, (_CHINESE_TRADITIONAL,), "wide"),
    _Candidate("cp932", -1.5, (_KANA + _JAPANESE,), "wide"),
    _Candidate("euc_jp", -2.5, (_KANA + _JAPANESE,), "wide"),
    _Candidate("cp949", -2.0, (_KOREAN,), "wide"),
)
_FIRST_LEVEL: Final = {
    "gb18030": (0xB0, 0xD7), "big5hkscs": (0xA4, 0xC6), "cp932": (0x88, 0x97), "euc_jp": (0xB0, 0xCF),
    "cp949": (0xB0, 0xC8),
}  # fmt: skip
"""First bytes of the common characters."""
_LOW_SECOND: Final = frozenset(["big5hkscs", "cp932"])
# Log-likelihoods of a character that is not among the common letters.
_COMMON_WIDE: Final = math.log(0.4 / 3500)
_MARK: Final = math.log(0.004)
_SAME_SCRIPT: Final = math.log(0.0003)
_STRANGE: Final = math.log(0.000003)
_CASE_BREAK: Final = math.log(0.01)
"""Added where a capital follows a small letter, or letters of two scripts touch."""
_INITIAL: Final = math.log(0.08)
"""Added for a capital."""
_CROWDED: Final = math.log(0.12)
"""Added for a letter with an accent right behind another: Latin words have ASCII letters between them."""
_NEVER: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd]|[\U000f0000-\U0010ffff]")
_ASCII_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def guess_encoding(content: bytes) -> Guess | None:
    """The likeliest encoding of bytes that are not UTF-8; None when they are text in none."""
    sample = _sample(content)
    size = sum(byte > 0x7F for byte in sample)
    rated: list[tuple[float, str, str]] = []
    for candidate in _CANDIDATES:
        try:
            text = sample.decode(candidate.encoding)
            content.decode(candidate.encoding)
        except UnicodeDecodeError:
            continue
        if not _NEVER.search(text):
            likeliest = max(sum(_ratings(text, candidate, alphabet)) for alphabet in candidate.alphabets)
            rated.append((candidate.prior + likeliest, candidate.encoding, text))
    best, encoding, text = max(rated, default=(-math.inf, "", ""))
    if best < _IMPLAUSIBLE * size:
        return _detected(content)
    margin = best - max((score for score, _, other in rated if other != text), default=-math.inf)
    return Guess(encoding=encoding, is_sure=margin >= STRONG_MARGIN and best >= _WORST_SURE * size)


def _detected(content: bytes) -> Guess | None:
    import charset_normalizer

    best = charset_normalizer.from_bytes(content).best()
    return None if best is None else Guess(encoding=best.encoding, is_sure=False)


def _sample(content: bytes) -> bytes:
    """The first words that are not ASCII, each once: what is repeated is no further evidence.

    No character of a listed encoding goes over white space.
    """
    words = dict.fromkeys(word for word in content.split() if not word.isascii())
    sample, size = [], 0
    for word in words:
        sample.append(word)
        size += len(word)
        if size >= _SAMPLE_BYTES:
            break
    return b" ".join(sample)


@cache
def _letters(alphabet: str, kind: str) -> Mapping[str, float]:
    """Log-likelihood of each common letter, by its rank; capitals are rarer."""
    letters = dict.fromkeys(alphabet)  # each once, in order
    total = sum(1 / (rank + 4) for rank in range(len(letters)))
    share = 0.6 if kind == "wide" else 0.95
    found = {letter: math.log(share / (rank + 4) / total) for rank, letter in enumerate(letters)}
    found |= {c.upper(): value + _INITIAL for c, value in found.items() if c.upper() != c and len(c.upper()) == 1}
    return found | dict.fromkeys(_WIDE_MARKS if kind == "wide" else _MARKS, _MARK)


def _ratings(text: str, candidate: _Candidate, alphabet: str) -> Iterator[float]:
    """Log-likelihood of each character that is not ASCII."""
    common = _letters(alphabet, candidate.kind)
    is_latin, is_wide = candidate.kind == "latin", candidate.kind == "wide"
    before = " "
    for letter in text:
        if letter > "\x7f":
            value = common.get(letter)
            if value is None:
                value = _wide(letter, candidate) if is_wide else _uncommon(letter, alphabet, is_latin=is_latin)
            if not is_wide and before.isalpha():
                is_ascii = before in _ASCII_LETTERS
                if is_latin != is_ascii and letter.isalpha():
                    value += _CROWDED if is_latin else _CASE_BREAK
                if letter.isupper() and before.islower():
                    value += _CASE_BREAK
            yield value
        elif letter in _ASCII_LETTERS and not is_wide and _breaks(before, letter, is_latin=is_latin):
            yield _CASE_BREAK
        before = letter


def _breaks(before: str, letter: str, *, is_latin: bool) -> bool:
    """Whether a letter of ASCII does not follow this one in a word."""
    if before <= "\x7f" or not before.isalpha():
        return False
    return not is_latin or (letter.isupper() and before.islower())


def _uncommon(letter: str, alphabet: str, *, is_latin: bool) -> float:
    is_same = letter.isalpha() and (letter < "\u0250" if is_latin else ord(letter) >> 8 == ord(alphabet[0]) >> 8)
    return _SAME_SCRIPT if is_same else _STRANGE


def _wide(letter: str, candidate: _Candidate) -> float:
    """Of a character of two bytes: those of the first level of its standard are a few thousand, the others rare."""
    if "\u3040" <= letter <= "\u30ff":
        return _COMMON_WIDE if candidate.alphabets[0].startswith(_KANA) else _STRANGE
    if not letter.isalpha():
        return _STRANGE
    code = letter.encode(candidate.encoding)
    first, last = _FIRST_LEVEL[candidate.encoding]
    is_common = len(code) == 2 and first <= code[0] <= last and (code[1] > 0xA0 or candidate.encoding in _LOW_SECOND)
    return _COMMON_WIDE if is_common else _STRANGE
