"""Cut the miniature web out of the recorded one: ``python build.py --data DIR [--out DIR]``.

DIR holds ``miniweb-subset.tar.zst`` (members ``host/path``) and ``index.csv`` (the
licence of each host).  The same input gives the same bytes.  What is changed on a
page is said in README.md.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from spiderling.base.files import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

Pages = dict[str, bytes]


@dataclass(frozen=True)
class Cut:
    """What is taken of one recorded host, and how it is served here."""

    host: str
    address: int
    """Last part of 127.80.0.x."""
    language: str
    start: str = "index.html"
    limit: int = 220
    source: str = ""
    """The recorded host, if it has another name."""
    folders: tuple[str, ...] = ()
    """Only pages below these folders; the start page is always taken."""
    encoding: str = ""
    """The pages are re-coded to it, and their label with them."""
    behaviour: str = ""
    licence: str = ""
    """Where index.csv leaves it open or says less than the pages do."""

    @property
    def recorded(self) -> str:
        return self.source or self.host


CUTS = (
    Cut("gimp.cs.test", 2, "cs"),
    Cut("lo.cs.test", 3, "cs", "contents.html", 200, behaviour="robots=disallow:/text/scalc/"),
    Cut("handbook.cs-cz.test", 4, "cs", behaviour="robots=open"),
    Cut("handbook.pl-pl.test", 4, "pl"),
    Cut("aptitude.cs.test", 5, "cs", behaviour="robots=open"),
    Cut(
        "instalace.test",
        6,
        "cs",
        "cs/index.html",
        84,
        "install.test",
        ("cs",),
        "windows-1250",
        licence="GPL-2",
    ),
    Cut(
        "install.test",
        6,
        "mul",
        "_languages.html",
        130,
        folders=("en", "da", "ro"),
        licence="GPL-2",
        behaviour="robots=error:2",
    ),
    Cut("gnome.test", 7, "mul", "_languages.html", 80, folders=("C", "cs", "de", "hu", "sl", "uk")),
    Cut("gnome.pl.test", 7, "pl", "pl/gnome-help/index.html", 20, "gnome.test", ("pl",), "iso-8859-2"),
    Cut(
        "history.test",
        8,
        "mul",
        "_languages.html",
        behaviour="www",
        licence="GPL-2+ (package); free if changes are marked (title page)",
    ),
    Cut("gnucash.de.test", 8, "de", "gnucash-guide-de/index.html", 60, "gnucash.test", encoding="windows-1252"),
    Cut("upg.de.test", 8, "de"),
    Cut("sqlite.en.test", 9, "en", limit=120, behaviour="robots=open"),
    Cut("aptdoc.test", 9, "mul", "_languages.html", behaviour="busy=5"),
    Cut("securing.en-us.test", 9, "en", licence="GFDL-1.2+ (title page); GPL-2.0 (package)"),
    Cut("lo.pl.test", 10, "pl", "contents.html", 70),
    Cut("aptitude.ru.test", 10, "ru", limit=30, encoding="koi8-r", behaviour="robots=delay:0.5"),
    Cut("doublecmd.uk.test", 10, "uk", encoding="windows-1251"),
    Cut("maint.de.test", 10, "de", "index.de.html", behaviour="slow=1.5"),
    Cut("udhr.test", 1, "mul", licence="public domain (text); MIT (markup)"),
    Cut(
        "udhr.th.test",
        1,
        "th",
        "tha.html",
        1,
        "udhr.test",
        encoding="tis-620",
        licence="public domain (text); MIT (markup)",
    ),
)
_OWN = "CC0-1.0 (written for this project)"
ADDED = (  # host, last part of the address, start, what the portal says of it, licence, behaviour
    ("mirror.cs.test", 5, "/index.html", "aptitude.cs.test once more", "GPL-2+", "mirror=aptitude.cs.test"),
    ("stare.test", 2, "/", "moved pages, a chain and loops of redirects, dead links", _OWN, "site=moved"),
    ("kalendar.test", 3, "/", "a calendar without end", _OWN, "site=calendar robots=open"),
    ("odkazy.test", 6, "/", "lists of links, nothing to read", _OWN, "site=lists"),
)
UDHR = re.compile(
    "(ces|slk|pol|deu_1996|eng|hun|slv|ukr|rus|hrv|bul|lit|est|fin|swe|dan|nld|fra|spa|ita|ron_2006|ell_monotonic|"
    r"tur|heb|arb|hin|jpn|kor|cmn_hans|vie|swh|isl|gle|lat|tgk|amh|som)\.html"
)
DEAD_LINKS_A_HOST = 5
_HREF = re.compile(rb"""(<(?:a|area|link)\b[^>]*?)\s+href\s*=\s*("[^"]*"|'[^']*')""", re.I | re.S)
_LABEL = re.compile(rb"""(charset\s*=\s*["']?|<\?xml[^>]*?encoding=["'])([A-Za-z0-9_-]+)""", re.I)
_STATIC = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico")


def targets(host: str, name: str, body: bytes) -> list[str]:
    """The pages of the same host that a page links to, in the order of their links."""
    anchors = (match for match in _HREF.finditer(body) if not match[1].lower().startswith(b"<link"))
    links = (_target(host, name, match[2]) for match in anchors)
    return [path for other, path in links if other == host]


def _target(host: str, name: str, quoted: bytes) -> tuple[str, str]:
    """Host and path (without leading slash) of a link; ('', '') for what cannot be read."""
    href = quoted[1:-1].decode("utf-8", "replace").replace("&amp;", "&").strip()
    try:
        parts = urlsplit(urljoin(f"http://{host}/{name}", href))
        return (parts.hostname or "").lower(), unquote(parts.path).lstrip("/")
    except ValueError:
        return "", ""


def reach(host: str, start: str, pages: Pages, limit: int) -> list[str]:
    """Up to *limit* page names in breadth-first order from *start*."""
    order, seen = [start], {start}
    for name in order:
        for target in targets(host, name, pages[name]):
            if target in pages and target not in seen and len(order) < limit:
                seen.add(target)
                order.append(target)
    return order


def choose(cut: Cut, recorded: Pages) -> Pages:
    """The pages of one host; folders share the limit evenly, so that each language is there."""
    wanted = {name: body for name, body in recorded.items() if _belongs(cut, name)}
    if len(cut.folders) < 2:
        return {name: wanted[name] for name in reach(cut.recorded, cut.start, wanted, cut.limit)}
    chosen = {cut.start: wanted[cut.start]}
    for folder in cut.folders:
        below = {name: body for name, body in wanted.items() if name.startswith(f"{folder}/")}
        first = next(name for name in targets(cut.recorded, cut.start, wanted[cut.start]) if name in below)
        for name in reach(cut.recorded, first, below, cut.limit // len(cut.folders)):
            chosen[name] = below[name]
    return chosen


def _belongs(cut: Cut, name: str) -> bool:
    if name == cut.start:
        return True
    if cut.recorded == "udhr.test":
        return UDHR.fullmatch(name) is not None
    return not cut.folders or name.split("/")[0] in cut.folders


def unlink(cut: Cut, pages: Pages, hosts: frozenset[str]) -> Pages:
    """Take the href off links to pages that were left out; a few behind the start page stay, as dead links."""
    recorded, known = cut.recorded, hosts | {cut.recorded}
    dead: set[str] = set()

    def judge(name: str) -> Callable[[re.Match[bytes]], bytes]:
        def repl(match: re.Match[bytes]) -> bytes:
            other, path = _target(recorded, name, match[2])
            if other == recorded and path not in pages and path and not path.lower().endswith(_STATIC):
                dead.update([path] if len(dead) < DEAD_LINKS_A_HOST and name != cut.start else [])
                return match[0] if path in dead else match[1]
            return match[1] if other.endswith(".test") and other not in known else match[0]

        return repl

    return {name: _HREF.sub(judge(name), body) for name, body in pages.items()}


def recode(pages: Pages, encoding: str) -> Pages:
    """The pages in a legacy encoding, labelled so; characters that it lacks become references."""
    if not encoding:
        return pages

    def one(body: bytes) -> bytes:
        labelled = _LABEL.sub(rb"\g<1>" + encoding.encode(), body)
        if labelled == body:
            meta = f'<head><meta http-equiv="Content-Type" content="text/html; charset={encoding}">'
            labelled = body.replace(b"<head>", meta.encode(), 1)
        return labelled.decode("utf-8").encode(encoding, "xmlcharrefreplace")

    return {name: one(body) for name, body in pages.items()}


def portal(sites: list[dict[str, str]]) -> bytes:
    """The page that links to every host."""
    items = "\n".join(
        f'<li><a href="http://{site["host"]}{site["start"]}">{site["host"]}</a> ({site["language"]}): '
        f"{site['source']}</li>"
        for site in sites
    )
    return (
        '<!DOCTYPE html>\n<html lang="cs"><head><meta charset="utf-8"><title>Rozcestník malého webu</title></head>\n'
        "<body><h1>Rozcestník malého webu</h1>\n<p>Na této stránce začíná malý web, který je přiložen k programu, "
        "aby si každý mohl vyzkoušet, jak se sbírá korpus, aniž by k tomu potřeboval síť. Odtud vede odkaz na každý "
        "server, který v něm je. Některé jsou v češtině, jiné v polštině, němčině, angličtině nebo v dalších jazycích, "
        "a několik z nich se chová tak, jak se to na skutečném webu stává: odpovídají pomalu, posílají jinam, "
        f"nebo nemají konce.</p>\n<ul>\n{items}\n</ul></body></html>\n"
    ).encode()


def read_recorded(data: Path) -> tuple[dict[str, Pages], dict[str, dict[str, str]]]:
    """The pages of the hosts that are needed, and the lines of index.csv."""
    needed = {cut.recorded for cut in CUTS}
    pages: dict[str, Pages] = {}
    path = data / "miniweb-subset.tar.zst"
    with zstd.open(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            host, _, name = member.name.removeprefix("./").partition("/")
            content = archive.extractfile(member) if host in needed else None
            if content is not None:
                pages.setdefault(host, {})[name] = content.read()
    with (data / "index.csv").open(encoding="utf-8", newline="") as file:
        return pages, {row["host"]: row for row in csv.DictReader(file)}


def pack(pages: dict[str, Pages], path: Path) -> None:
    """Write the archive: sorted, no times, no owners."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for host in sorted(pages):
            for name in sorted(pages[host]):
                member = tarfile.TarInfo(f"{host}/{name}")
                member.size = len(pages[host][name])
                archive.addfile(member, io.BytesIO(pages[host][name]))
    parameter = zstd.CompressionParameter
    options = {parameter.compression_level: 19, parameter.window_log: 25, parameter.enable_long_distance_matching: 1}
    path.write_bytes(zstd.compress(raw.getvalue(), options=options))


def build(data: Path, out: Path) -> None:
    recorded, index = read_recorded(data)
    hosts = frozenset({cut.host for cut in CUTS} | {added[0] for added in ADDED} | {"portal.test"})
    pages: dict[str, Pages] = {}
    sites: list[dict[str, str]] = []
    for cut in CUTS:
        chosen = unlink(cut, choose(cut, recorded[cut.recorded]), hosts)
        pages[cut.host] = recode(chosen, cut.encoding)
        row = index[cut.recorded]
        licence = cut.licence or row["licence"]
        sites.append(_site(cut.host, cut.address, cut.language, f"/{cut.start}", row["source"], licence, cut.behaviour))
        print(f"{cut.host:22}{len(chosen):5} pages{sum(map(len, chosen.values())):10} bytes")
    sites += [_site(host, at, "cs", *rest) for host, at, *rest in ADDED]
    pages["portal.test"] = {"index.html": portal(sites)}
    first = _site("portal.test", 1, "cs", "/index.html", "the page that links to every host", _OWN, "robots=open")
    sites.insert(0, first)
    pack(pages, out / "pages.tar.zst")
    with (out / "sites.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(sites[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(sites)
    (out / "seeds.txt").write_text("http://portal.test/index.html\n", encoding="utf-8")
    print(f"{sum(map(len, pages.values()))} pages, {(out / 'pages.tar.zst').stat().st_size} bytes packed")


def _site(host: str, at: int, language: str, start: str, source: str, licence: str, behaviour: str) -> dict[str, str]:
    return {
        "host": host,
        "address": f"127.80.0.{at}",
        "language": language,
        "start": start,
        "source": source,
        "licence": licence,
        "behaviour": behaviour,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the bundled miniature web.")
    parser.add_argument("--data", type=Path, required=True, help="holds miniweb-subset.tar.zst and index.csv")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    build(options.data, options.out)
