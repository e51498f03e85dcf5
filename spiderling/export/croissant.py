"""``croissant.json``: a dataset as programs find it, by Croissant 1.0 of MLCommons (docs.mlcommons.org/croissant)."""

from __future__ import annotations

from typing import Any

from spiderling.export.formats import COLUMNS
from spiderling.jobdir.card import Manifest, hub_licence

CROISSANT = "croissant.json"
_CONFORMS = "http://mlcommons.org/croissant/1.0"
_TERMS = """
citeAs column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath key md5 parentField
path recordSet references regex repeated replace samplingRate separator source subField transform
"""
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "data": {"@id": "cr:data", "@type": "@json"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "equivalentProperty": "cr:equivalentProperty",
    "rai": "http://mlcommons.org/croissant/RAI/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
_TYPES = {"string": "sc:Text", "text": "sc:Text", "int": "sc:Integer", "float": "sc:Float", "time": "sc:DateTime"}
"""Kind of a column -> its type; ``langs`` and ``paragraphs``, which have parts, are left out."""
_FILES = "documents"


def croissant_of(manifest: Manifest) -> dict[str, Any]:
    """The description of the dataset that *manifest* is of."""
    contents = manifest["contents"]
    languages = [*filter(None, contents["languages"])]
    files = [
        {
            "@type": "cr:FileObject",
            "@id": file["name"],
            "contentUrl": file["name"],
            "contentSize": f"{file['bytes']} B",
            "encodingFormat": "application/x-parquet",
            "sha256": file["sha256"],
        }
        for file in manifest["files"]
    ]
    every = {
        "@type": "cr:FileSet",
        "@id": _FILES,
        "encodingFormat": "application/x-parquet",
        "includes": "data/*.parquet",
    }
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"document/{name}",
            "dataType": _TYPES[kind],
            "source": {"fileSet": {"@id": _FILES}, "extract": {"column": name}},
        }
        for name, kind in COLUMNS.items()
        if kind in _TYPES
    ]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS,
        "name": f"Web corpus of {', '.join(languages) or 'no language'}",
        "description": f"{contents['documents']:,} documents, {contents['words']:,} words; README.md tells of them.",
        "license": hub_licence(contents["licences"]),
        "inLanguage": languages,
        "datePublished": manifest["made"][:10],
        "distribution": [*files, every],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "document", "field": fields}],
    }
