"""Reads exports of a corpus with the libraries that are installed: ``python examples/read_corpus.py cs/ cs.tei.xml``.

An export is a dataset (a directory), ``.parquet``, ``.jsonl`` (also ``.gz`` and ``.zst``) or ``.tei.xml``.  Each reader
is a few lines to copy; it gives the texts of the documents.  Needs one or more of: pandas, polars, pyarrow, datasets,
datatrove with its extra ``io``, lxml.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched, because all files are here


def with_pandas(path: Path) -> Iterable[str]:
    import pandas

    if ".jsonl" in path.name:
        return pandas.read_json(path, lines=True, dtype=False)["text"]
    return pandas.read_parquet(path / "data" if path.is_dir() else path, columns=["text"])["text"]


def with_polars(path: Path) -> Iterable[str]:
    import polars

    if ".jsonl" in path.name:
        return polars.read_ndjson(path)["text"]
    return polars.read_parquet(path / "data/*.parquet" if path.is_dir() else path, columns=["text"])["text"]


def with_datasets(path: Path) -> Iterable[str]:
    import datasets

    if path.is_dir():
        return datasets.load_dataset(str(path), split="train")["text"]
    kind = "json" if ".jsonl" in path.name else "parquet"
    return datasets.load_dataset(kind, data_files=str(path), split="train")["text"]


def with_datatrove(path: Path) -> Iterable[str]:
    from datatrove.pipeline.readers import JsonlReader, ParquetReader

    if ".jsonl" in path.name:
        reader = JsonlReader(str(path.parent), glob_pattern=path.name, id_key="id", text_key="text")
    elif path.is_dir():
        reader = ParquetReader(str(path / "data"), id_key="id", text_key="text")
    else:
        reader = ParquetReader(str(path.parent), glob_pattern=path.name, id_key="id", text_key="text")
    return (document.text for document in reader())


def with_lxml(path: Path) -> Iterable[str]:
    from lxml import etree

    for _, text in etree.iterparse(path, tag="{http://www.tei-c.org/ns/1.0}text"):
        yield "\n".join("".join(block.itertext()) for block in text[0])
        text.clear()  # the file may be larger than the memory


TABLES: dict[str, Callable[[Path], Iterable[str]]] = {
    "pandas": with_pandas,
    "polars": with_polars,
    "datasets": with_datasets,
    "datatrove": with_datatrove,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("export", type=Path, nargs="+")
    for path in parser.parse_args().export:
        for name, read in {"lxml": with_lxml}.items() if path.suffix == ".xml" else TABLES.items():
            try:
                texts = list(read(path))
            except ImportError as error:
                print(f"{path}: {name} cannot read it here: {error}")
                continue
            print(f"{path}: {name} reads {len(texts):,} documents, {sum(len(text.split()) for text in texts):,} words")


if __name__ == "__main__":
    main()
