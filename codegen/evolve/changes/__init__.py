"""Two models to changes: who is who, and what differs.

`Walk` goes through both schemas side by side and asks `groups`, `messages`, `fields`, `slots`,
`types` and `enums`; `names` looks at what it met. Each finder yields the changes that it sees, and
its row of the table of findings stands below it: whoever adds a rule writes both in one file. A
change says for both directions whether values are read as they were written; whom it concerns is
for the package above. May import `schema`.
"""

from .change import Change, ChangeRule, Node
from .pairing import GroupPair
from .type_names import diff_type_names
from .walk import Walk

__all__ = ["Change", "ChangeRule", "GroupPair", "Node", "Walk", "diff_type_names"]
