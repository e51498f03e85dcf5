"""Writes the digests of the Python sources that the twin stands for: python native/seal.py.

Run it when the twin does again what the changed sources do: after the tests of tests/text and
``python -m benchmarks.equality`` have passed with both.  Then build it anew (make native).
"""

from __future__ import annotations

import sys
from pathlib import Path

NATIVE = Path(__file__).resolve().parent
sys.path[:0] = [str(NATIVE.parent), str(NATIVE / "src")]

NAMES = (
    "base/link_batch.py",
    "base/url_features.py",
    "base/urls.py",
    "text/boilerplate/context.py",
    "text/boilerplate/features.py",
    "text/html/blocks.py",
    "text/html/links.py",
    "text/html/metadata.py",
    "text/html/normal.py",
    "text/html/parser.py",
    "text/html/pieces.py",
    "text/html/tags.py",
    "text/html/zones.py",
    "text/language/function_words.py",
    "text/language/known.py",
    "text/language/scores.py",
    "text/language/words.py",
    "text/ngrams.py",
    "text/quality.py",
    "text/spam.py",
)
"""The sources of what is compiled; add those of a new step."""


def main() -> None:
    from spiderling.text.compiled import digest, meaning, source_of

    sources = {name: source_of(name) for name in NAMES}
    lines = "".join(f'    "{name}": ("{digest(of)}", "{meaning(of)}"),\n' for name, of in sources.items())
    head = '"""The Python sources that the twin stands for, with digests of bytes and meaning; written by seal.py."""'
    text = f"{head}\n\nSOURCES = {{\n{lines}}}\n"
    (NATIVE / "src/spiderling_native/sources.py").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
