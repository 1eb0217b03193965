"""Pages of golden cases: what is read from them, what is refused, and what is written."""

from __future__ import annotations

from pathlib import Path

import golden
import pytest
from golden import cases, edited
from pages import Block, fenced, read

PAGE = """\
# Topic

`schema/common.yaml`:

```yaml
group: common
```

## Two cases

### `first`: its own files, and those above it

`schema/jobs.yaml`:

```yaml
group: jobs
```

```text
one
```

### `second`: only those above it

Prose that stays.

```text
two
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "bad" / "topic.md"
    path.parent.mkdir()
    path.write_text(PAGE)
    return path


def test_a_case_has_its_files_and_those_of_the_headings_above(page: Path) -> None:
    found = cases("bad", page.parents[1])
    common = {"common.yaml": b"group: common\n"}
    assert list(found) == ["first", "second"]
    assert found["first"].files("schema/") == {**common, "jobs.yaml": b"group: jobs\n"}
    assert found["second"].files("schema/") == common
    assert found["second"].text("text") == "two\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain: [text, \xc3\xa9]\n",
        b"no end",
        b"end\r\nof\r\nlines\r\n",
        b"carriage\rreturns\r",
        b"\ttab \\ \\x41 \\r \\\n",
        b"backslashes \\x41 \\ alone\n",
        b"\xef\xbb\xbfmark, \xff byte, \x00 nul, \xc2\x85 next, \xe2\x80\xa8 separator\n",
        b"```yaml\na: fence\n```\n````\n",
        b"\n\n",
        b"\n",
    ],
)
def test_any_bytes_can_be_written_and_read_back(data: bytes) -> None:
    (block,) = read(fenced("yaml", data))
    assert isinstance(block, Block)
    assert block.data == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```yaml\na: b\n", "1: this block does not end"),
        ("```\na: b\n```\n", "1: a block starts with ``` and its language"),
        ("```yaml title\n```\n", "1: a block starts with"),
        ("- a list\n\n    a: b\n", "3: a block starts with"),
        ("`a.yaml`:\n\nText.\n", "3: a block has to follow 'a.yaml'"),
        ("`a.yaml`:\n", "1: a block has to follow 'a.yaml'"),
        ("```yaml escaped\n\\n\n```\n", "1: an escape other than"),
        ("```yaml\n```\n", "1: a block without a label"),
        ("```text\n```\n", "1: a block without a label"),
        ("# `a`: x\n```text\n```\n```text\n```\n", "4: a second block 'text'"),
        ("# `a`: x\n## b\n", "2: a heading inside of a case"),
        ("# `a`: x\n# `a`: y\n", "2: a second case 'a'"),
    ],
)
def test_a_page_that_is_written_in_another_way_is_refused(
    page: Path, text: str, message: str
) -> None:
    page.write_text(text)
    with pytest.raises(ValueError) as caught:
        cases("bad", page.parents[1])
    assert str(caught.value).startswith(f"{page}:{message}")


def test_outputs_are_written_anew_and_nothing_else(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "UPDATE", True)
    second = cases("bad", page.parents[1])["second"]
    second.check("text", "two\n")
    assert page.read_text() == PAGE
    second.check("text", "```\nlonger\n")
    new = "````text\n```\nlonger\n````\n"
    assert page.read_text() == PAGE.replace("```text\ntwo\n```\n", new)


def test_outputs_that_are_not_there_yet_are_added(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "UPDATE", True)
    for case in cases("bad", page.parents[1]).values():
        case.check("json", "{}\n")
        case.check_files("generated/", {"a.py": "a = 1\n", "b.py": "b = 2\n"})
    added = """\

<details>
<summary>JSON</summary>

```json
{}
```

</details>

`generated/a.py`:

```python
a = 1
```

`generated/b.py`:

```python
b = 2
```
"""
    expected = PAGE.replace("one\n```\n", f"one\n```\n{added}") + added
    assert page.read_text() == expected
    for case in cases("bad", page.parents[1]).values():
        case.check_files("generated/", {"a.py": "a = 1\n"})
    assert page.read_text().count("```python\n") == 2
    assert "b = 2" not in page.read_text()


def test_an_edit_changes_adds_renames_and_deletes_files() -> None:
    files = {"a": b"1\n2\n\n3\n", "b": b"1\n", "c": b"1\n2\n"}
    edit = """\
--- a
+++ a
@@
 1
-2
+two

@@
+before
 3
--- b
+++ /dev/null
@@
-1
--- c
+++ e
@@
 1
-2
--- /dev/null
+++ d
@@
+new
"""
    assert edited(files, edit) == {
        "a": b"1\ntwo\n\nbefore\n3\n",
        "d": b"new\n",
        "e": b"1\n",
    }


@pytest.mark.parametrize(
    "edit",
    [
        "--- a\n+++ a\n@@\n-3\n",
        "--- a\n+++ a\n@@\n-1\n",
        "--- a\n+++ /dev/null\n@@\n-2\n",
        "--- a\n@@\n-2\n",
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: str) -> None:
    with pytest.raises(ValueError):
        edited({"a": b"1\n2\n1\n"}, edit)


@pytest.mark.parametrize(
    "page", sorted(golden.GOLDEN.glob("*/*.md")), ids=lambda path: path.stem
)
def test_every_page_opens_with_a_title_and_an_introduction(page: Path) -> None:
    title, empty, text, *_ = page.read_text().split("\n")
    assert title.startswith("# ")
    assert empty == ""
    assert text[0].isupper() or text[0] == "`"
