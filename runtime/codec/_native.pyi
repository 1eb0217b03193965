from collections.abc import Callable, Sequence
from typing import Any

import torch

from .frames import Buffer, FrameWriter

class Engine:
    def __init__(
        self,
        records: tuple[tuple[Any, ...], ...],
        prefix: int,
        encode: Callable[[Any], bytes],
        encode_frames: Callable[..., list[Buffer]],
        decode: Callable[[Buffer], Any],
        decode_frames: Callable[[Sequence[Buffer]], Any],
    ) -> None: ...
    def encode(self, msg: Any, /) -> bytes: ...
    def encode_frames(self, msg: Any, threshold: int = 65536) -> list[Buffer]: ...
    def encode_for(self, threshold: int, msg: Any, /) -> bytes | list[Buffer]: ...
    def decode(self, data: Buffer, /) -> Any: ...
    def decode_frames(self, frames: Sequence[Buffer], /) -> Any: ...
    def decode_received(
        self, head: Buffer, rest: Callable[[], Sequence[Buffer]], /
    ) -> Any: ...

def configure(
    tensor: type,
    parameter: type,
    exchange_api: object,
    count_modes: Callable[[], int] | None,
    view_of: Callable[[Any], memoryview],
    frame_writer: type[FrameWriter],
    samples: tuple[torch.Tensor | None, ...],
) -> None: ...
