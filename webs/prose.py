"""Makes pages of one language: sentence-like text in a template with navigation and clutter.

Sentences consist of phrases of two to four words, which are drawn once, by frequency.
So a page of 30 kB takes a fraction of a millisecond, and runs of seven words hardly ever
occur twice, as in real text.
"""

from __future__ import annotations

import html
import random
from collections.abc import Sequence

PHRASES = 8000
CHROME = 200
_SCRIPT = (
    "<script>(function(w,d){{var k='{key}',q=w.dataLayer=w.dataLayer||[];q.push({{event:k,page:d.location.pathname}});"
    "var s=d.createElement('script');s.async=true;s.src='/static/'+k+'.js?v={number}';d.head.appendChild(s);}})"
    "(window,document);</script>\n"
)
_TILE = (
    '<div class="tile tile--{number}" data-id="{number}"><span class="tile__icon" style="order:{number};flex:1 1 auto">'
    '</span><b class="tile__name">{key}</b><i class="tile__state">{number}</i></div>\n'
)


class Prose:
    """The phrases and the template's clutter of one language."""

    def __init__(self, language: str, words: Sequence[tuple[str, int]], seed: int) -> None:
        rng = random.Random(f"{seed} {language}")
        self._language = language
        forms = [html.escape(word) for word, _ in words]
        drawn = iter(rng.choices(forms, [max(count, 1) for _, count in words], k=PHRASES * 12))

        def phrases(count: int) -> list[str]:
            return [" ".join(next(drawn) for _ in range(rng.choice((2, 3, 3, 4)))) for _ in range(count)]

        self._starts = [phrase[:1].upper() + phrase[1:] for phrase in phrases(PHRASES // 2)]
        self._middles = [phrase + rng.choice(("", "", ",")) for phrase in phrases(PHRASES)]
        self._ends = [phrase + rng.choice((".", ".", ".", "?")) for phrase in phrases(PHRASES // 2)]
        keys = phrases(CHROME)
        self._chrome = [
            rng.choice((_SCRIPT, _TILE, _TILE)).format(key=key.replace("'", ""), number=rng.randrange(1000))
            for key in keys
        ]
        self._labels = [key[:30] for key in keys]
        # four phrases, each with a space behind it
        self._sentence_bytes = 4 + 4 * len("".join(self._middles).encode()) // PHRASES

    def sentences(self, rng: random.Random, count: int) -> list[str]:
        """*count* new sentences of about twelve words."""
        pools = (self._starts, self._middles, self._middles, self._ends)
        return [" ".join(parts) for parts in zip(*(rng.choices(pool, k=count) for pool in pools), strict=True)]

    def text(self, rng: random.Random, size: int, step: int) -> str:
        """``<p>`` elements of *step* sentences, about *size* UTF-8 bytes together."""
        sentences = self.sentences(rng, size // self._sentence_bytes)
        return "".join(f"<p>{' '.join(sentences[at : at + step])}</p>\n" for at in range(0, len(sentences), step))

    def page(
        self, rng: random.Random, title: str, text_bytes: int, sentences: int, links: Sequence[str], all_bytes: int
    ) -> str:
        """A whole page of about *all_bytes* bytes; more if text and links need more."""
        labels = rng.choices(self._labels, k=len(links))
        anchors = [f'<li><a href="{link}">{label}</a></li>' for link, label in zip(links, labels, strict=True)]
        third = max(1, len(anchors) // 3)
        text = self.text(rng, text_bytes, sentences)
        room = all_bytes - text_bytes - 70 * len(anchors) - 600
        clutter = rng.choices(self._chrome, k=max(2, room // 190))
        half = len(clutter) // 2
        return (
            f'<!DOCTYPE html>\n<html lang="{self._language}">\n<head><meta charset="utf-8"><title>{title}</title>\n'
            f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/static/style.css">\n'
            f'</head>\n<body><header><div class="logo"><a href="/">{title}</a></div>\n'
            f"<nav><ul>{''.join(anchors[:third])}</ul></nav></header>\n"
            f'<div class="layout"><aside class="left">{"".join(clutter[:half])}</aside>\n'
            f"<main><h1>{labels[0]}</h1>\n{text}"
            f'<ul class="more">{"".join(anchors[third : 2 * third])}</ul></main>\n'
            f'<aside class="right"><ul>{"".join(anchors[2 * third :])}</ul>{"".join(clutter[half:])}</aside></div>\n'
            f"<footer><p>&copy; {title}</p></footer></body></html>\n"
        )
