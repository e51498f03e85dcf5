"""How far <html lang> can be believed, and what a declaration of that weight does to single sentences.

    python benchmarks/declared.py [--quick] [--data ../shared/data]

With --data: marked pages (pages/), whose true language is known.  The weight used in
text/declared.py is the logarithm of the odds found here.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.common import result, table  # noqa: E402
from spiderling.languages import available, load  # noqa: E402
from spiderling.text.declared import WEIGHT, language_of_tag  # noqa: E402
from spiderling.text.encoding.detect import decode  # noqa: E402
from spiderling.text.html.parser import parse  # noqa: E402
from spiderling.text.language.models import LanguageModels  # noqa: E402

SENTENCES = ROOT / "tests" / "quality" / "sentences.tsv"


def marked_pages(data: Path) -> Iterator[tuple[str, str | None]]:
    """True and declared language of each page whose true one is known."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with (data / "pages/pages-dev.jsonl.zst").open("rb") as packed, unpacker.stream_reader(packed) as raw:
        for page in map(json.loads, io.TextIOWrapper(raw, "utf-8")):
            text = decode(page["html"].encode("latin-1"), None).text
            if page["lang"] and text:
                # the tag stands at the front; the whole page need not be parsed
                yield page["lang"], language_of_tag(parse(text[:20_000]).html_lang)


def believed(data: Path) -> float:
    """Print the table by language; returns the logarithm of the odds that a declaration is right."""
    counts = Counter((true, None if said is None else said == true) for true, said in marked_pages(data))
    codes = sorted({true for true, _ in counts})
    rows = [[code, counts[code, True], counts[code, False], counts[code, None]] for code in codes]
    right, wrong = (sum(counts[code, verdict] for code in codes) for verdict in (True, False))
    table(["language", "declared rightly", "wrongly", "not"], [*rows, ["all", right, wrong, ""]])
    return math.log(max(right, 1) / max(wrong, 1))


def recognised(models: LanguageModels, chars: int) -> tuple[float, float, float]:
    """Share of sentences recognised without a declaration, with the right one, and with that of another language."""
    rows = [line.split("\t") for line in SENTENCES.read_text("utf-8").splitlines()]
    rows = [(code, text[:chars]) for code, text in rows if code in models.codes]
    right = [0, 0, 0]
    for code, text in rows:
        guesses = models.identify([text])
        others = [other for other in models.codes if other != code]
        right[0] += guesses.nearest() == code
        right[1] += guesses.leaning(code, WEIGHT).nearest() == code
        right[2] += all(guesses.leaning(other, WEIGHT).nearest() == code for other in others)
    none, own, other = (100 * count / len(rows) for count in right)
    return none, own, other


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="accepted for uniformity: it is quick")
    parser.add_argument("--data", type=Path, help="folder with pages/")
    arguments = parser.parse_args()
    measured = believed(arguments.data) if arguments.data else None
    models = load(available())
    print()
    rows = [[f"first {chars} characters", *recognised(models, chars)] for chars in (20, 40, 1000)]
    table(["sentences", "no declaration %", "right one %", "worst wrong one %"], rows)
    print()
    result(log_odds=round(measured, 2) if measured is not None else None, weight=WEIGHT)


if __name__ == "__main__":
    main()
