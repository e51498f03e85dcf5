"""Builds the bundled models:  python models/build.py TEXTS SEEDS [--date YYYY-MM-DD] [CODE ...]

TEXTS is a directory with common-voice/<code>.txt (sentences, one a line, CC0) and
unilex/<code>.tsv (form<TAB>count, Unicode licence); SEEDS a table with the columns
language, section, url (commoncrawl/web-languages, CC0).  The same input gives the
same files.  One sentence in fifty is left out, so that tests can be made of it.
"""

from __future__ import annotations

import argparse
import csv
from datetime import date
from pathlib import Path

import xxhash
import yaml

from spiderling.languages import save
from spiderling.text.training import sentences, train

HERE = Path(__file__).parent
HELD_OUT = 50
COMMON_VOICE = {"source": "Mozilla Common Voice, validated sentences", "licence": "CC0-1.0"}
UNILEX = {"source": "Unicode Unilex, frequency list (n-grams of its words only)", "licence": "Unicode-DFS-2016"}
SEEDS = {"source": "commoncrawl/web-languages (seeds.txt)", "licence": "CC0-1.0"}


def is_held_out(sentence: str) -> bool:
    """Whether a sentence is kept for tests."""
    return xxhash.xxh3_64_intdigest(sentence.encode(), seed=1) % HELD_OUT == 0


def unilex(path: Path) -> dict[str, int]:
    """The list's forms and counts; empty when there is no such list."""
    if not path.exists():
        return {}
    rows = (line.rstrip("\n").split("\t") for line in path.open(encoding="utf-8") if not line.startswith("#"))
    return {form: int(count) for form, count in (row for row in rows if len(row) == 2)}


def seeds(path: Path, language: str) -> str:
    """seeds.txt of a language, by section."""
    with path.open(encoding="utf-8") as lines:
        table = csv.reader((line for line in lines if line[0] != "#"), delimiter="\t")
        rows = [row for row in table if row[0] == language]
    text = "# From commoncrawl/web-languages (CC0-1.0), collected by speakers of the language\n"
    for section in dict.fromkeys(row[1] for row in rows):
        text += f"# {section}\n" + "".join(f"{row[2]}\n" for row in rows if row[1] == section)
    return text


def build(code: str, about: dict[str, object], texts: Path, seed_file: Path, day: str) -> int:
    """Write one model; returns its size in bytes."""
    raw = (texts / "common-voice" / f"{code}.txt").read_bytes()
    forms = unilex(texts / "unilex" / f"{code}.tsv")
    lines = [line for line in sentences([raw.decode("utf-8")]) if not is_held_out(line)]
    origin = {
        "texts": [COMMON_VOICE, *([UNILEX] if forms else []), SEEDS],
        "sentences": len(lines),
        "tokens": sum(len(line.split()) for line in lines),
        "digest": f"xxh3_128:{xxhash.xxh3_128_hexdigest(raw)}",
        "date": day,
    }
    model = train(code, lines, forms)
    return save(HERE / code, {**about, "origin": origin}, model, seeds(seed_file, str(about["name"]).lower()))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("codes", nargs="*")
    parser.add_argument("--date", default=date.today().isoformat())
    arguments = parser.parse_args()
    languages = yaml.safe_load((HERE / "languages.yaml").read_text(encoding="utf-8"))
    for code in arguments.codes or languages:
        size = build(code, languages[code], arguments.texts, arguments.seeds, arguments.date)
        print(f"{code}  {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
