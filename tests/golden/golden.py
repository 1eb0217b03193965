"""Golden cases: documents that hold a case's files and what is expected of them.

`README.md` says how a page is written.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pages import Block, Heading, fenced, read

GOLDEN = Path(__file__).parent
UPDATE = os.environ.get("MSGEN_UPDATE_GOLDEN") == "1"

_TITLE = re.compile(r"`([\w-]+)`: .+")
_WITHOUT_LABEL = ("diff", "text", "json")
_LANGUAGES = {".yaml": "yaml", ".py": "python"}
_JSON = "<details>\n<summary>JSON</summary>\n\n{}\n</details>\n"
"""Most readers want the text; the same as JSON is folded away."""


@dataclass(frozen=True)
class Case:
    """A case and the blocks that it sees: its own, and those of the headings above it."""

    page: Path
    name: str
    line: int
    end: int
    blocks: Mapping[str, Block]

    def files(self, folder: str = "") -> dict[str, bytes]:
        """Return the files whose labels start with ``folder``, which is left out."""
        return {
            name.removeprefix(folder): block.data
            for name, block in self.blocks.items()
            if block.label and name.startswith(folder)
        }

    def versions(self) -> dict[str, dict[str, bytes]]:
        """Return the files of `previous`, and those of `current`: the same after the edit."""
        previous = self.files()
        edit = self.text("diff") if "diff" in self.blocks else ""
        try:
            current = edited(previous, edit)
        except ValueError as error:
            raise ValueError(f"{self.page}:{self.line}: {error}") from error
        return {"previous": previous, "current": current}

    def text(self, name: str) -> str:
        """Return the text of a block."""
        return self.blocks[name].data.decode()

    def check(self, name: str, text: str) -> None:
        """Check that an output is the one shown, or show this one from now on."""
        if UPDATE:
            _rewrite(self, name, text)
        else:
            shown = self.text(name)
            assert text == shown, f"{self.page}:{self.line}: {self.name}"

    def check_files(self, folder: str, files: Mapping[str, str]) -> None:
        """Check that exactly these files are shown in ``folder``, or show these from now on."""
        if UPDATE:
            for name in self.files(folder).keys() - files.keys():
                _rewrite(self, folder + name, None)
            for name, text in files.items():
                _rewrite(self, folder + name, text)
        else:
            shown = {name: data.decode() for name, data in self.files(folder).items()}
            assert files == shown, f"{self.page}:{self.line}: {self.name}"


@functools.cache
def cases(kind: str, folder: Path = GOLDEN) -> dict[str, Case]:
    """Return the cases of a kind by name, in the order of their pages.

    Raises:
        ValueError: with file and line, where a page is not written as it should be.
    """
    found: dict[str, Case] = {}
    for page in sorted((folder / kind).glob("*.md")):
        for name, case in _parse(page, page.read_bytes().decode()).items():
            if name in found:
                raise ValueError(f"{page}:{case.line}: a second case {name!r}")
            found[name] = case
    return found


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files into ``folder`` and return it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def good_schema(name: str, folder: Path) -> Path:
    """Write the schema of a good case into a folder of its own, and return that."""
    return write_files(folder / name / "schema", cases("good")[name].files("schema/"))


# The text is an argument so that a page is read again when it has changed.
@functools.lru_cache(maxsize=100)
def _parse(page: Path, text: str) -> dict[str, Case]:
    try:
        pieces = list(read(text))
    except ValueError as error:
        raise ValueError(f"{page}:{error}") from None
    headings = [piece.line for piece in pieces if isinstance(piece, Heading)]
    found: dict[str, Case] = {}
    # The headings that a piece stands under: level, whether it is a case, and the blocks there.
    open_headings: list[tuple[int, bool, dict[str, Block]]] = [(0, False, {})]
    own: set[str] = set()
    for piece in pieces:
        if isinstance(piece, Heading):
            place = f"{page}:{piece.line + 1}"
            while open_headings[-1][0] >= piece.level:
                open_headings.pop()
            _, inside, above = open_headings[-1]
            if inside:
                raise ValueError(f"{place}: a heading inside of a case")
            title = _TITLE.fullmatch(piece.text)
            own, blocks = set(), dict(above)
            open_headings.append((piece.level, title is not None, blocks))
            if title:
                if title[1] in found:
                    raise ValueError(f"{place}: a second case {title[1]!r}")
                rest = (line for line in headings if line > piece.line)
                end = next(rest, text.count("\n"))
                found[title[1]] = Case(page, title[1], piece.line + 1, end, blocks)
        else:
            place = f"{page}:{piece.fence + 1}"
            _, inside, blocks = open_headings[-1]
            name = piece.label or piece.language
            if not piece.label and not (inside and name in _WITHOUT_LABEL):
                raise ValueError(f"{place}: a block without a label")
            if name in own:
                raise ValueError(f"{place}: a second block {name!r}")
            own.add(name)
            blocks[name] = piece
    return found


def _rewrite(case: Case, name: str, text: str | None) -> None:
    """Put an output in its page, or take it out; all else stays as it is."""
    content = case.page.read_bytes().decode()
    case = _parse(case.page, content)[case.name]
    block = case.blocks.get(name)
    lines = content.removesuffix("\n").split("\n")
    if text is None:
        assert block is not None
        del lines[block.start : block.end + 1]
    elif block is not None:
        new = fenced(block.language, text.encode())
        lines[block.fence : block.end] = new[:-1].split("\n")
    else:
        new = fenced(_LANGUAGES.get(Path(name).suffix, name), text.encode())
        if name not in _WITHOUT_LABEL:
            new = f"`{name}`:\n\n{new}"
        elif name == "json":
            new = _JSON.format(new)
        last = case.end
        while not lines[last - 1]:
            last -= 1
        after = [""] if case.end < len(lines) else []
        lines[last : case.end] = ["", *new[:-1].split("\n"), *after]
    changed = "\n".join(lines).rstrip("\n") + "\n"
    if changed != content:
        case.page.write_bytes(changed.encode())
        cases.cache_clear()


def edited(files: Mapping[str, bytes], edit: str) -> dict[str, bytes]:
    """Apply an edit in the form of `diff -u`; hunks are found by their lines, not by numbers.

    Raises:
        ValueError: what a hunk shows does not stand exactly once in its file.
    """
    result = dict(files)
    for part in re.split(r"^(?=--- )", edit, flags=re.MULTILINE)[1:]:
        header, *hunks = re.split(r"^@@.*\n", part, flags=re.MULTILINE)
        match = re.fullmatch(r"--- (\S+)\n\+\+\+ (\S+)\n", header)
        if match is None:
            raise ValueError(f"an edit starts with '--- old' and '+++ new': {header!r}")
        old, new = match.groups()
        text = "" if old == "/dev/null" else result.pop(old).decode()
        for hunk in hunks:
            lines = [line or " " for line in hunk.removesuffix("\n").split("\n")]
            before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
            after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
            if old == "/dev/null":
                text = after
            elif f"\n{text}".count(f"\n{before}") == 1:
                text = f"\n{text}".replace(f"\n{before}", f"\n{after}")[1:]
            else:
                raise ValueError(f"this does not stand once in {old}:\n{before}")
        if new != "/dev/null":
            result[new] = text.encode()
        elif text:
            raise ValueError(f"{old} goes, but this is left of it:\n{text}")
    return result
