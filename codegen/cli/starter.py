"""`msgen init`: a first schema, small and commented, that builds at once."""

from __future__ import annotations

STARTER_FILES = {
    "schema/engine.yaml": """\
# A group: the messages that one process receives. One file per group, named after it.
group: engine
receiver: engine
senders: [api_server]
doc: Messages that the engine receives.

# A message whose field `data` lists any of the others, to send many at once.
batch: {name: BatchEngineMsg, tag: 0}

messages:
  GenerateMsg:
    tag: 1              # its number on the wire: unique in the group, never reused
    doc: A request to generate tokens.
    fields:             # their order is their order on the wire: add new ones at the end
      uid: int
      input_ids:
        type: tensor[int32, seq]
        doc: Prompt token ids.
      params: GenerateParams
  CancelMsg:
    tag: 2
    fields:
      uid: int

structs:
  GenerateParams:
    fields:
      temperature: {type: float, default: 1.0, finite: true}
      max_tokens: {type: u32, default: 256}
      stop: {type: "list[str]", default: [], max_len: 16}
"""
}
"""File name to text, relative to the folder given."""
