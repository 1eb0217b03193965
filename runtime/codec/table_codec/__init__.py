"""The table codec: walks the description table, converts what may be converted, or says what is wrong.

The engines (native_engine, python_engine) take what fits exactly and give up on the rest without a
text. The whole message then comes here, from the start: a number of numpy's or an instance of a
subclass is converted, everything else ends in an error that names the field. The table codec is
slower and complete: it gives the same bytes and objects as the engines for every valid message, and
both engines are tested against it.

    codec.py    the calls: which message it is, what its header says, the errors of the whole
    encoder.py  message -> slots          decoder.py  slots -> message
    walker.py   what the two have in common, and the path of where they stand

Imports of the codec: the table, wire, frames, tensors, shapes and show; never an engine.
"""

from .codec import TableCodec
from .decoder import TableDecoder
from .encoder import TableEncoder

__all__ = ["TableCodec", "TableDecoder", "TableEncoder"]
