"""The compiled codec; everything else about the package stands in setup.cfg."""

from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("runtime/native")

setup(
    ext_modules=[
        Extension(
            "msgen.runtime._native",
            sources=sorted(map(str, NATIVE.glob("*.c"))),
            depends=sorted(map(str, NATIVE.glob("*.h"))),
            extra_compile_args=["-std=c11", "-O3", "-g0", "-fvisibility=hidden"],
            # Without a C compiler the install goes on, and Python serves.
            optional=True,
        )
    ]
)
