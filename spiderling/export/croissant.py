"""``croissant.json``: a dataset as programs find it, by Croissant 1.0 of MLCommons (docs.mlcommons.org/croissant)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from spiderling.base.files import read_yaml
from spiderling.export.formats import COLUMNS
from spiderling.jobdir.card import Manifest, hub_licence

CROISSANT = "croissant.json"
_TYPES = {"string": "sc:Text", "text": "sc:Text", "int": "sc:Integer", "float": "sc:Float", "time": "sc:DateTime"}
"""Kind of a column -> its type; those that have parts, as ``paragraphs``, are left out."""


def croissant_of(manifest: Manifest) -> dict[str, Any]:
    """The description of the dataset that *manifest* is of."""
    contents = manifest["contents"]
    languages = [*filter(None, contents["languages"])]
    found: dict[str, Any] = read_yaml(files(__package__).joinpath("croissant.yaml").read_text("utf-8"))
    every = found["distribution"][0]
    found["distribution"] += [
        {
            "@type": "cr:FileObject",
            "@id": file["name"],
            "contentUrl": file["name"],
            "contentSize": f"{file['bytes']} B",
            "encodingFormat": every["encodingFormat"],
            "sha256": file["sha256"],
        }
        for file in manifest["files"]
    ]
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"document/{name}",
            "dataType": _TYPES[kind],
            "source": {"fileSet": {"@id": every["@id"]}, "extract": {"column": name}},
        }
        for name, kind in COLUMNS.items()
        if kind in _TYPES
    ]
    return found | {
        "name": f"Web corpus of {', '.join(languages) or 'no language'}",
        "description": f"{contents['documents']:,} documents, {contents['words']:,} words; README.md tells of them.",
        "license": hub_licence(contents),
        "inLanguage": languages,
        "datePublished": manifest["made"][:10],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "document", "field": fields}],
    }
