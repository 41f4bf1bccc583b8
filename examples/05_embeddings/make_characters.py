#!/usr/bin/env python3
"""Writes characters.inc, the tables of words.cpp, from what the reference makes of every character there
is: BertNormalizer and BertPreTokenizer of the package tokenizers (pip install tokenizers==0.23.3). Its
Unicode is older for some properties than for others, so no one version of the standard would do."""

from pathlib import Path

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

SURROGATES, HANGUL = range(0xD800, 0xE000), range(0xAC00, 0xD7A4)  # no characters; by rule

normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
splitter = BertPreTokenizer()


def ranges(characters: list[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for c in characters:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def runs(folds: dict[int, int]) -> list[list[int]]:
    """Rows of struct Fold: the longest run from each character that no run before it holds."""
    rows, characters, i = [], sorted(folds), 0
    while i < len(characters):
        first = characters[i]
        best = [first, first, 1, folds[first], 0]
        for step in (1, 2):
            last, to_step = first, folds.get(first + step, -1) - folds[first]
            while to_step >= 0 and folds.get(last + step, -1) == folds[last] + to_step and (step == 1 or last + 1 not in folds):
                last += step
            if last - first > (best[1] - first) // best[2] * step:
                best = [first, last, step, folds[first], to_step]
        rows.append(best)
        i += (best[1] - first) // best[2] + 1
    return rows


def table(kind: str, name: str, rows: list[str]) -> str:
    lines, line = [], ""
    for row in rows:
        if len(line) + len(row) > 98:
            lines.append(line)
            line = ""
        line += (" " if line else "    ") + row + ","
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def main() -> None:
    blanks, dropped, ideographs, punctuation = [], [], [], []
    folds: dict[int, int] = {}
    long_folds: dict[int, str] = {}
    for c in range(0x110000):
        if c in SURROGATES or c in HANGUL:
            continue
        if len(splitter.pre_tokenize_str(f"a{chr(c)}a")) == 3:
            punctuation.append(c)
        folded = normalizer.normalize_str(chr(c))
        if not folded:
            dropped.append(c)
        elif folded == " ":
            blanks.append(c)
        else:
            if folded.startswith(" "):
                ideographs.append(c)
            folded = folded.strip(" ")
            if len(folded) > 1:
                long_folds[c] = folded
            elif folded != chr(c):
                folds[c] = ord(folded)

    def hexed(rows: list[list[int]]) -> list[str]:
        return ["{" + ", ".join(f"{value:#x}" if value > 9 else str(value) for value in row) + "}" for row in rows]

    text = "// Made by make_characters.py.\n// clang-format off\n"
    text += table("Range", "kBlanks", hexed(ranges(blanks)))
    text += table("Range", "kDropped", hexed(ranges(dropped)))
    text += table("Range", "kIdeographs", hexed(ranges(ideographs)))
    text += table("Range", "kPunctuation", hexed(ranges(punctuation)))
    text += table("Fold", "kFolds", hexed(runs(folds)))
    longs = ['{%#x, U"%s"}' % (c, "".join(f"\\U{ord(d):08x}" for d in to)) for c, to in long_folds.items()]
    text += table("LongFold", "kLongFolds", longs) + "// clang-format on\n"
    (Path(__file__).parent / "characters.inc").write_text(text)


if __name__ == "__main__":
    main()
