"""Builds the extension modules; lxml brings the headers of libxml2."""

import os
import sys
from pathlib import Path

import lxml
from Cython.Build import cythonize
from setuptools import Extension, setup

sys.path.insert(0, str(Path(__file__).parent))
from compilers import compiler

MODULES = [
    "_text",
    "_sax",
    "_names",
    "_parse",
    "_features",
    "_context",
    "_urls",
    "_derived",
    "_gathered",
    "_language",
    "_signals",
]
os.environ["CC"] = compiler() or f"{sys.executable} -m ziglang cc"
os.environ.setdefault("LDSHARED", f"{os.environ['CC']} -shared")

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"spiderling_native.{name}",
                [f"src/spiderling_native/{name}.pyx"],
                include_dirs=lxml.get_include(),
                # a * b + c is rounded twice, as in Python, on processors too that could do it in one step
                extra_compile_args=["-O3", "-ffp-contract=off"],
            )
            for name in MODULES
        ],
        build_dir="build",
        include_path=["src"],
        compiler_directives={"language_level": 3, "cdivision": True},  # in cdivision // and % are those of C
    )
)
