#!/usr/bin/env python3
"""Writes what tokenizer_test.cpp and embeddings_test.py read: lines.txt, ids.txt with the tokens that
the package tokenizers (pip install tokenizers==0.23.3) makes of each line, and vocabulary.txt with those
tokens of BERT's vocabulary that occur. Usage: make_fixture.py VOCAB, the vocab.txt of the model."""

import itertools
import random
import sys
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

FOLDER = Path(__file__).parent
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = 320  # the first lines, in English: embeddings_test.py counts on them

SUBJECTS = ["The old sailor", "My youngest sister", "A team of surgeons", "The night train", "Our physics teacher", "The orchestra",
            "A grey heron", "The city council", "An apprentice baker", "The software engineer", "The goalkeeper", "The volcano",
            "A retired judge", "The satellite", "Her grandmother", "The chess champion"]
VERBS = ["repaired", "forgot about", "wrote a letter about", "was surprised by", "carefully measured", "argued over", "photographed",
         "dreamed of", "paid too much for", "quietly ignored"]
OBJECTS = ["the broken compass", "the harbour at dawn", "a jar of pickled lemons", "the national elections", "an unusually cold winter",
           "the encryption algorithm", "a violin concerto", "the melting glacier", "the penalty kick", "an ancient manuscript",
           "the price of copper", "a litter of puppies", "the heart transplant", "the railway strike", "a loaf of sourdough"]
ENDS = [".", ", as everyone knows.", " before the guests arrived.", " in the spring of 1987!", "; nobody else did.", " for the third time?"]

FOREIGN = [
    "Ångström und Größe: die Straße führt über die Brücke nach Köln.", "L'été dernier, nous avons mangé des crêpes à Orléans…",
    "¿Dónde está la biblioteca? ¡Allí, señor!", "Příliš žluťoučký kůň úpěl ďábelské ódy.", "Zażółć gęślą jaźń",
    "Đây là một câu tiếng Việt với nhiều dấu thanh.", "İstanbul'da IŞIK ve ılık çay", "Οδυσσεύς ΑΣ ΣΊΣΥΦΟΣ ἀρχή",
    "Съешь же ещё этих мягких французских булок, да выпей чаю", "שָׁלוֹם עוֹלָם", "السَّلَامُ عَلَيْكُمْ ورحمة الله", "नमस्ते दुनिया, आप कैसे हैं?",
    "ภาษาไทยไม่มีช่องว่าง", "日本語のテキスト、カタカナとひらがな。", "我爱北京天安门，天安门上太阳升。", "大韓民國 대한민국 안녕하세요 세계", "ｆｕｌｌ　ｗｉｄｔｈ ＡＢＣ１２３",
    "ﬁne ﬂour oﬃce", "Æsop œuvre ẞ ß ŉ ǅ", "𝕳𝖊𝖑𝖑𝖔 𝒲𝑜𝓇𝓁𝒹 𐐷𐐲𐑌𐑇", "Ẁ̴̢h̷̛a̶t̸ ̵i̶s̴ ̷t̶h̶i̴s̷", "ꜱᴍᴀʟʟ ᴄᴀᴘꜱ", "x² + y³ ≤ ∑ ½ · 10⁻⁶ µm",
]
ODD = [
    "", " ", "\t \u00a0\u2003\u3000", "\r", "\x00\x01\x7f", "\ufffd", "a\u200bb\u200dc\ufeffd\u00ade", "tab\tseparated\tvalues\r", "line\u2028separator\u2029end",
    "vertical\x0btab form\x0cfeed next\x85line", "[CLS] [SEP] [MASK] [PAD] [UNK]", "##ing ## ##", "don't can't won't it's I'll we've", "e-mail: first.last+tag@example.co.uk",
    "https://example.com/a/b?c=d&e=%20f#g", "std::vector<std::pair<int, float>> v{{1, 2.0f}};", "$1,234.56 + 7% = £9.99 (approx.)", "......!!!???---___***",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 emoji \U0001f1e9\U0001f1ea", "CamelCaseWord snake_case_word kebab-case-word", "a" * 100, "a" * 101, "un" * 50 + "s", "ab" * 200,
    "x" * 99 + " " + "y" * 100 + " " + "z" * 101, "é" * 100, "e\u0301" * 101, "\u4e2d" * 120, "antidisestablishmentarianism floccinaucinihilipilification", "\ue000\uf8ff\U000f0000", "\u0378\u0530\u1ff5",
    "«quoted» “quoted” ‘quoted’ „quoted‟ 「引用」", "1st 2nd 3rd 100th 0x7fff 1e-05 3.14159", "AaAaAa ÀàÁá ÇçÑñ ŐőŰű", "각\u1100\u1161\u11a8", "\u0344\u0374\u037e\u0387\u2126\u212a\u212b", "𠀀𪜀𫝀𫠠丽", "\u302e\u302fx\u0334\u0321",
]


def decomposed(line: str) -> str:
    return unicodedata.normalize("NFD", line)


def noisy(line: str, dice: random.Random) -> str:
    """The line with characters of all kinds thrown in."""
    blocks = [(0x20, 0x7F), (0x00, 0x20), (0x7F, 0x180), (0x180, 0x590), (0x590, 0xE80), (0x1E00, 0x2070), (0x2070, 0x2C00), (0x3000, 0x3400), (0x4E00, 0xA000), (0xA000, 0xAC00), (0xAC00, 0xD7A4), (0xF900, 0x10000), (0x10000, 0x1F000), (0x1F300, 0x1FB00), (0x20000, 0x30000)]
    characters = list(line)
    for _ in range(dice.randint(1, 12)):
        first, last = dice.choice(blocks)
        characters.insert(dice.randint(0, len(characters)), chr(dice.randrange(first, last)))
    return "".join(characters).replace("\n", "\t")


def make_lines() -> list[str]:
    dice = random.Random(1)
    sentences = [f"{s} {v} {o}{e}" for s, v, o, e in itertools.product(SUBJECTS, VERBS, OBJECTS, ENDS)]
    lines = dice.sample(sentences, SENTENCES) + FOREIGN + ODD
    lines += [decomposed(line) for line in FOREIGN] + [line.upper() for line in FOREIGN] + [line.swapcase() for line in lines[:40]]
    while len(lines) < 900:
        lines.append(noisy(dice.choice(FOREIGN + lines[:SENTENCES]), dice))
    while len(lines) < 1050:  # no text at all
        lines.append(noisy("", dice))
    while len(lines) < 1200:  # words of pieces
        syllables = ["ba", "ker", "tion", "un", "re", "ing", "s", "ly", "Ér", "ñ", "-", "7", "42", "zz", "q"]
        lines.append(" ".join("".join(dice.choices(syllables, k=dice.randint(1, 9))) for _ in range(dice.randint(1, 8))))
    return lines


def tokenizer_of(tokens: list[str]) -> Tokenizer:
    vocabulary = {token: id for id, token in enumerate(tokens)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def main() -> None:
    lines = make_lines()
    whole = Path(sys.argv[1]).read_text().splitlines()
    expected = [encoding.tokens for encoding in tokenizer_of(whole).encode_batch(lines)]
    used = set(SPECIAL).union(*expected)
    part = [token for token in whole if token in used]
    encodings = tokenizer_of(part).encode_batch(lines)
    assert [encoding.tokens for encoding in encodings] == expected  # the part does as the whole
    (FOLDER / "lines.txt").write_bytes("".join(line + "\n" for line in lines).encode())
    (FOLDER / "ids.txt").write_text("".join(" ".join(map(str, encoding.ids)) + "\n" for encoding in encodings))
    (FOLDER / "vocabulary.txt").write_text("".join(token + "\n" for token in part))


if __name__ == "__main__":
    main()
