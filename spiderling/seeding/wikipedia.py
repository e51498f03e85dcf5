"""What the articles of a Wikipedia link to: from a dump of its table of external links, or from its API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from scrapy.http import Request, Response

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.urls import canonicalize
from spiderling.seeding.source import Found, lines_of

_PAGE = 500
"""Links in one answer: the most that the API gives to anonymous clients."""
_COLUMN = re.compile(r"^  `(\w+)`")
_ROW = re.compile(r"\(((?:'(?:[^'\\]|\\.)*'|[^'()])*)\)")
_VALUE = re.compile(r"'((?:[^'\\]|\\.)*)'|([^,]+)")
_ESCAPE = re.compile(r"\\(.)")


class WikipediaSource:
    """``list=exturlusage`` of a MediaWiki API, article name space, page by page."""

    retries = 5

    def __init__(self, api: str) -> None:
        """*api*: its address, such as https://cs.wikipedia.org/w/api.php; raises BadInput if that is none."""
        target = canonicalize(api)
        if target is None or "?" in api:
            raise BadInput(f"--api is {api!r}; give the address of an API, such as https://cs.wikipedia.org/w/api.php")
        self._api = target.url
        self.name = f"wikipedia {target.host}"

    def requests(self) -> Iterator[Request]:
        yield self._page({})

    def _page(self, further: dict[str, str]) -> Request:
        query = {
            "action": "query",
            "list": "exturlusage",
            "euprop": "url",
            "eunamespace": "0",
            "eulimit": str(_PAGE),
            "format": "json",
            "formatversion": "2",
            "maxlag": "5",
            **further,
        }
        return Request(f"{self._api}?{urlencode(query)}")

    def read(self, response: Response) -> Iterator[Found]:
        try:
            answer = json.loads(response.body)
            error = answer.get("error")
            links = [] if error else [str(entry["url"]) for entry in answer["query"]["exturlusage"]]
            further = {str(key): str(value) for key, value in (answer.get("continue") or {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SpiderlingError(
                f"{self._api} answered {response.status} with something that is no answer of a MediaWiki API; use a "
                "dump: FILE-externallinks.sql.gz of dumps.wikimedia.org"
            ) from None
        if error:
            said = f"{error.get('code')}: {error.get('info')}" if isinstance(error, dict) else str(error)
            raise SpiderlingError(f"{self._api} refuses ({said[:200]}); repeat the command later, and it goes on.")
        yield from (f"https:{link}" if link.startswith("//") else link for link in links)
        if further:
            yield self._page(further)


def dumped_links(path: Path) -> Iterator[str]:
    """The URLs in ``<wiki>-<date>-externallinks.sql.gz``, packed or not, in either form that the table has had.

    Raises BadInput if it cannot be read, is no such dump, or breaks off; the URLs before that were yielded.
    """
    columns: list[str] = []
    last = ""
    for packed in lines_of(path):
        line = packed.decode("utf-8", "replace").rstrip("\n")
        last = line or last
        column = _COLUMN.match(line)
        if column is not None:
            columns.append(column[1])
        elif line.startswith("INSERT INTO `externallinks`"):
            yield from _inserted(line, columns)
    if "el_from" not in columns:
        raise BadInput(f"{path} is no dump of external links; take <wiki>-<date>-externallinks.sql.gz.")
    if not last.startswith("-- Dump completed"):
        raise BadInput(f"{path} breaks off before its end; download it again.")


def _inserted(line: str, columns: list[str]) -> Iterator[str]:
    """The URLs in the rows of one INSERT."""
    for row in _ROW.finditer(line):
        values = [_ESCAPE.sub(r"\1", text) if text else other for text, other in _VALUE.findall(row[1])]
        if len(values) != len(columns):
            continue
        fields = dict(zip(columns, values, strict=True))
        if "el_to" in fields:
            url = fields["el_to"]
            yield f"https:{url}" if url.startswith("//") else url
        elif "el_to_domain_index" in fields:
            path = fields.get("el_to_path", "")
            yield _from_index(fields["el_to_domain_index"]) + ("/" if path in ("", "NULL") else path)


def _from_index(index: str) -> str:
    """The origin of ``https://cz.example.www.:8080``: since 2023 the table has the labels of names in reverse."""
    scheme, _, rest = index.partition("://")
    name, _, port = rest.partition(".:")
    labels = name.strip(".").split(".")
    host = ".".join(labels[1:] if labels[0] == "V4" else reversed(labels))
    return f"{scheme}://{host}" + (f":{port}" if port else "")
