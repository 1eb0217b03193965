"""The compiled codec; everything else about the package stands in setup.cfg."""

import os
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("runtime/codec/native")
# The files are compiled as one: what is called most stands in several. clang may lack the linker.
TOGETHER = [] if "clang" in os.environ.get("CC", "") else ["-flto"]

setup(
    ext_modules=[
        Extension(
            "msgen.runtime.codec._native",
            sources=sorted(map(str, NATIVE.rglob("*.c"))),
            depends=sorted(map(str, NATIVE.rglob("*.h"))),
            extra_compile_args=[
                "-std=c11",
                "-O3",
                "-g0",
                "-fvisibility=hidden",
                "-fno-plt",
                *TOGETHER,
            ],
            extra_link_args=["-O3", *TOGETHER],
            # Without a C compiler the install goes on, and Python serves.
            optional=True,
        )
    ]
)
