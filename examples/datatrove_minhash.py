"""Documents that are similar as a whole are kept once, by datatrove's MinHash.  Needs ``pip install datatrove
regex tokenizers orjson``.

    python -m examples.datatrove_minhash crawls/cs -o once --tasks 8

`scrapy dedup` compares paragraphs (docs/corpus.md).  These steps compare whole documents, and find most of those that
share 72 % of their runs of five words, numbers aside.  Each step is divided into tasks, which run on one machine here;
with datatrove's ``SlurmPipelineExecutor`` in place of ``LocalPipelineExecutor`` they are jobs of Slurm.  A task that is
done is not done again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.word_tokenizers import WordTokenizer

from examples.datatrove_steps import SpiderlingReader


class Words(WordTokenizer):
    """Words between spaces; datatrove has better ones for many languages, with packages of their own."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="JOBDIR|FILE")
    parser.add_argument("-o", dest="out", type=Path, required=True, metavar="DIR", help="for what the steps write")
    parser.add_argument("--tasks", type=int, default=1, help="tasks of the steps that read documents (1)")
    args = parser.parse_args()
    config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
    documents = SpiderlingReader(*args.sources)
    signatures, pairs, drop = (str(args.out / name) for name in ("signatures", "pairs", "drop"))
    steps = [
        ([documents, MinhashDedupSignature(signatures, config, Words())], args.tasks),
        ([MinhashDedupBuckets(signatures, pairs, config=config)], config.num_buckets),
        ([MinhashDedupCluster(pairs, drop, config)], 1),
        # the same tasks as in the first step, since documents are named by their place in a task
        ([documents, MinhashDedupFilter(drop), JsonlWriter(str(args.out / "documents"))], args.tasks),
    ]
    for number, (pipeline, tasks) in enumerate(steps, 1):
        LocalPipelineExecutor(pipeline, tasks=tasks, logging_dir=str(args.out / f"log-{number}")).run()


if __name__ == "__main__":
    main()
