"""The Python sources that the twin stands for, with digests of bytes and meaning; written by seal.py."""

SOURCES = {
    "base/link_batch.py": ("d56eed6c94067be1", "0d530440fb804c52"),
    "base/url_features.py": ("aa7f448587ce5e8c", "93506ab3a278351e"),
    "base/urls.py": ("2afeeaab5ad6e0f3", "b1c17e6953c8e651"),
    "text/boilerplate/context.py": ("72d472ed9da77640", "98d5fd5fca058b95"),
    "text/boilerplate/features.py": ("3c93b01e65addfb9", "4f3632a4620e6da8"),
    "text/html/blocks.py": ("d2aa6e2c2fa0e1ad", "00e45140e6615674"),
    "text/html/links.py": ("a0920a202db56bbf", "95b775034a75b4d9"),
    "text/html/metadata.py": ("6e9443f168b014c8", "6c87b852db38e0dd"),
    "text/html/normal.py": ("a7957e661874077b", "ef747b1747c40414"),
    "text/html/parser.py": ("4486393124d2bb1c", "180880d9a8163e28"),
    "text/html/pieces.py": ("a4795809c53ad839", "3fcc6d4f90319fac"),
    "text/html/tags.py": ("5e459da3b6355e61", "749e43bf440dbd3e"),
    "text/html/zones.py": ("b462f8a4bc3fa91f", "8e554b2fa62674cd"),
    "text/language/function_words.py": ("0f00845a02c23948", "e7dfe92bd5a3f98b"),
    "text/language/known.py": ("89886985218f5dce", "9fbc2a236993ff59"),
    "text/language/scores.py": ("3e26b4b4157f1e2d", "305e34f0a6d7e4d4"),
    "text/language/words.py": ("e25fd878f9be8746", "2a042072f63ebd1b"),
    "text/ngrams.py": ("f91bc8e79d1b4815", "87fb85a33b9ce0a9"),
    "text/quality.py": ("fd74ff2115dc83f8", "3aadf9cbfd3c2e78"),
    "text/spam.py": ("611bad403512b2be", "362e9110f36527fa"),
}
