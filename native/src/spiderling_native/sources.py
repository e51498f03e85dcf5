"""The Python sources that the twin stands for, with their digests; written by seal.py."""

SOURCES = {
    "base/link_batch.py": "d56eed6c94067be1",
    "base/url_features.py": "aa7f448587ce5e8c",
    "base/urls.py": "2afeeaab5ad6e0f3",
    "text/boilerplate/context.py": "72d472ed9da77640",
    "text/boilerplate/features.py": "3c93b01e65addfb9",
    "text/html/blocks.py": "d2aa6e2c2fa0e1ad",
    "text/html/links.py": "a0920a202db56bbf",
    "text/html/metadata.py": "6e9443f168b014c8",
    "text/html/normal.py": "a7957e661874077b",
    "text/html/parser.py": "4486393124d2bb1c",
    "text/html/pieces.py": "a4795809c53ad839",
    "text/html/tags.py": "5e459da3b6355e61",
    "text/html/zones.py": "b462f8a4bc3fa91f",
    "text/language/function_words.py": "0f00845a02c23948",
    "text/language/known.py": "89886985218f5dce",
    "text/language/scores.py": "92084d857e328a5c",
    "text/language/words.py": "e25fd878f9be8746",
    "text/ngrams.py": "f91bc8e79d1b4815",
    "text/quality.py": "fd74ff2115dc83f8",
    "text/spam.py": "611bad403512b2be",
}
