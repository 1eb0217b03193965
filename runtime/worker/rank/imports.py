"""Names of what processes import for themselves: `package.module:name`."""

from __future__ import annotations

import importlib
from typing import Any

from msgen.runtime.codec.codec import Codec
from msgen.runtime.worker.handler import InferenceHandler


def split_name(name: str, what: str) -> tuple[str, str]:
    """Take `module:attribute` apart.

    Raises:
        ValueError: it is not of this form.
    """
    module, found, attribute = name.partition(":")
    if not (found and module and attribute) or ":" in attribute:
        raise ValueError(
            f"{what}: expected 'package.module:name', got {name!r}; processes of their own import "
            "it by that name"
        )
    return module, attribute


def load(name: str, what: str) -> Any:
    """Import what `module:attribute` names.

    Raises:
        ValueError: the form is wrong, or the module has no such attribute.
        ImportError: the module cannot be imported.
    """
    module, attribute = split_name(name, what)
    found = importlib.import_module(module)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ValueError(
                f"{what}: module {module!r} has no {attribute!r}"
            ) from None
    return found


def load_codec(name: str, what: str) -> Codec[Any]:
    """Import a codec.

    Raises:
        ValueError, ImportError: as for `load`; what is found is no codec.
    """
    codec = load(name, what)
    if not isinstance(codec, Codec):
        raise ValueError(
            f"{what}: {name!r} is a {type(codec).__name__}, expected a codec, such as "
            "'msgen.generated.backend:CODEC'"
        )
    return codec


def load_handler(name: str) -> type[InferenceHandler]:
    """Import a handler's class.

    Raises:
        ValueError, ImportError: as for `load`; what is found is no handler.
    """
    handler = load(name, "handler")
    if not (isinstance(handler, type) and issubclass(handler, InferenceHandler)):
        raise ValueError(
            f"handler: {name!r} is not a class derived from "
            "msgen.runtime.worker.InferenceHandler"
        )
    return handler
