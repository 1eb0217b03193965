"""Old versions out of git, wherever and however the command runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgen.codegen.cli.commands import main
from msgen.codegen.history import git as git_module
from repositories import Git, clone, init

JOBS = "group: jobs\nreceiver: worker\nmessages:\n  Job: {tag: 1, fields: {uid: int}}\n"
LATER = JOBS.replace("uid: int", "uid: u8")


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in list(os.environ):
        if key.startswith("GIT_"):
            monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository with a tagged first version, and a branch that changed it."""
    git = init(tmp_path / "repository")
    git.commit({"schema/jobs.yaml": JOBS, "README": "text"}, "First")
    git("tag", "v1.0")
    git("switch", "--quiet", "--create", "work")
    git.commit({"schema/jobs.yaml": LATER}, "Second")
    monkeypatch.chdir(git.folder)
    return git


def msgen(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def told(result: Result) -> list[str]:
    """The rules of the findings of a JSON report."""
    assert result.stderr == ""
    comparisons = json.loads(result.stdout)["comparisons"]
    return [each["rule"] for each in comparisons[0]["findings"]]


def rules(*arguments: str | Path) -> list[str]:
    return told(msgen("diff", *arguments, "--format", "json"))


def error(*arguments: str | Path) -> str:
    result = msgen("diff", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr[7:-1]


@pytest.mark.parametrize(
    "against", ["main", "v1.0", "HEAD~1", "refs/tags/v1.0", "main~0"]
)
def test_a_revision_of_any_kind(repository: Git, against: str) -> None:
    assert rules("schema", "--against", against) == ["INT_CHANGED"]
    assert rules("schema", "--against", "HEAD") == []


def test_a_commit_by_its_id(repository: Git) -> None:
    commit = repository("rev-parse", "main")
    assert rules("schema", "--against", commit) == ["INT_CHANGED"]
    assert rules("schema", "--against", commit[:8]) == ["INT_CHANGED"]


def test_the_default_is_where_the_branch_began(repository: Git) -> None:
    first = repository("rev-parse", "main")
    repository("switch", "--quiet", "main")
    repository.commit({"schema/other.yaml": JOBS.replace("jobs", "other")}, "Third")
    repository("switch", "--quiet", "work")
    result = msgen("diff", "schema")
    assert result.stdout.startswith(
        f"against merge-base ({first[:12]}, where this branch left main)\n"
    )
    assert rules("schema") == ["INT_CHANGED"]
    assert rules("schema", "--against", "main") == ["INT_CHANGED", "GROUP_REMOVED"]


def test_changes_that_are_not_committed_count(repository: Git) -> None:
    (repository.folder / "schema" / "jobs.yaml").write_text(JOBS)
    assert rules("schema", "--against", "HEAD") == ["INT_CHANGED"]
    assert rules("schema") == []


def test_nothing_in_the_work_tree_is_touched(repository: Git) -> None:
    (repository.folder / "schema" / "draft.yaml").write_text(
        JOBS.replace("jobs", "draft")
    )
    repository("add", "schema/draft.yaml")
    before = repository("status", "--porcelain"), repository("rev-parse", "HEAD")
    index = (repository.folder / ".git" / "index").read_bytes()
    assert msgen("diff", "schema").exit_code == 1
    assert (
        repository("status", "--porcelain"),
        repository("rev-parse", "HEAD"),
    ) == before
    assert (repository.folder / ".git" / "index").read_bytes() == index


def test_places_in_old_files_are_those_of_git(repository: Git) -> None:
    result = msgen("diff", "schema", "--against", "main")
    assert "    was: main:schema/jobs.yaml:4:31\n" in result.stdout
    assert repository("show", "main:schema/jobs.yaml") == JOBS.strip()


def test_from_a_subfolder(repository: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository.folder / "schema")
    assert rules(".", "--against", "main") == ["INT_CHANGED"]
    assert rules("../schema", "--against", "main") == ["INT_CHANGED"]
    monkeypatch.chdir("/")
    assert rules(repository.folder / "schema", "--against", "main") == ["INT_CHANGED"]


def test_a_schema_deep_in_the_repository_and_through_a_link(
    repository: Git, tmp_path: Path
) -> None:
    repository.commit({"a b/ünï/schema/jobs.yaml": JOBS})
    (repository.folder / "a b" / "ünï" / "schema" / "jobs.yaml").write_text(LATER)
    assert rules("a b/ünï/schema", "--against", "HEAD") == ["INT_CHANGED"]
    (tmp_path / "link").symlink_to(repository.folder / "a b")
    assert rules(tmp_path / "link" / "ünï" / "schema", "--against", "HEAD") == [
        "INT_CHANGED"
    ]


def test_a_schema_that_is_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = init(tmp_path / "schema")
    git.commit({"jobs.yaml": JOBS, "src/settings.yaml": "not: ours"})
    shutil.rmtree(git.folder / "src")
    (git.folder / "jobs.yaml").write_text(LATER)
    monkeypatch.chdir(git.folder)
    assert rules(".", "--against", "HEAD") == ["INT_CHANGED"]
    assert "was: HEAD:jobs.yaml:4:31" in msgen("diff", ".", "--against", "HEAD").stdout


def test_in_a_worktree(repository: Git, tmp_path: Path) -> None:
    other = tmp_path / "other"
    repository("worktree", "add", "--quiet", str(other), "main")
    assert rules(other / "schema", "--against", "work") == ["INT_CHANGED"]
    assert rules(other / "schema") == []


def test_with_a_detached_head(repository: Git) -> None:
    repository("switch", "--quiet", "--detach", "work")
    assert rules("schema") == ["INT_CHANGED"]


def test_inside_a_hook(repository: Git, tmp_path: Path) -> None:
    """A hook runs with GIT_DIR and GIT_INDEX_FILE set; here it checks another repository too."""
    other = init(tmp_path / "other")
    other.commit({"schema/jobs.yaml": LATER})
    hook = repository.folder / ".git" / "hooks" / "pre-commit"
    script = (
        "#!/bin/sh\n"
        "env | grep ^GIT_INDEX_FILE= >hook.env\n"
        f"'{sys.executable}' -m msgen.codegen.cli diff schema --against main >hook.out\n"
        f"'{sys.executable}' -m msgen.codegen.cli diff '{other.folder}/schema' >>hook.out\n"
    )
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(script)
    hook.chmod(0o755)
    worktree = tmp_path / "worktree"
    repository("worktree", "add", "--quiet", "--detach", str(worktree), "work")
    for folder in (repository.folder, worktree):
        Git(folder)("commit", "--quiet", "--allow-empty", "--message", "Hooked")
        assert "GIT_INDEX_FILE=" in (folder / "hook.env").read_text()
        out = (folder / "hook.out").read_text()
        assert "[INT_CHANGED]" in out and out.count("against ") == 2
        assert out.endswith("no findings\n0 errors\n")


def test_variables_of_a_hook_that_point_elsewhere_do_no_harm(
    repository: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = init(tmp_path / "other")
    other.commit({"schema/jobs.yaml": LATER})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    assert rules("schema", "--against", "v1.0") == ["INT_CHANGED"]


def test_a_repository_that_only_git_dir_tells(
    repository: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.folder / ".git").rename(tmp_path / "elsewhere.git")
    assert "is in no git repository" in error("schema", "--against", "main")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    assert rules("schema", "--against", "main") == ["INT_CHANGED"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_WORK_TREE", str(repository.folder))
    assert rules(repository.folder / "schema", "--against", "main") == ["INT_CHANGED"]


def test_in_a_submodule(repository: Git, tmp_path: Path) -> None:
    outer = init(tmp_path / "outer")
    outer.commit({"README": "text"})
    outer("submodule", "--quiet", "add", repository.folder.as_uri(), "inner")
    outer.commit({}, "Add the submodule")
    inner = Git(outer.folder / "inner")
    assert rules(inner.folder / "schema", "--against", "v1.0") == ["INT_CHANGED"]
    assert rules(inner.folder / "schema") == []


def test_a_folder_that_was_a_submodule(repository: Git, tmp_path: Path) -> None:
    outer = init(tmp_path / "outer")
    outer("submodule", "--quiet", "add", repository.folder.as_uri(), "schema")
    outer.commit({}, "Add the submodule")
    outer("rm", "--quiet", "schema")
    outer.commit({"schema/jobs.yaml": JOBS}, "Keep the files here")
    commit = outer("rev-parse", "HEAD~1")[:12]
    assert error(outer.folder / "schema", "--against", "HEAD~1") == (
        f"cannot compare with 'HEAD~1': schema was a submodule and no folder in {commit}; compare "
        "with another commit, or check that version out and give its folder"
    )


def test_a_folder_that_was_a_file_or_a_link(repository: Git) -> None:
    schema = repository.folder / "schema"
    schema.rename(repository.folder / "kept")
    schema.symlink_to("kept")
    repository.commit({}, "Link it")
    schema.unlink()
    (repository.folder / "kept").rename(schema)
    assert "schema was a symbolic link and no folder" in error(
        "schema", "--against", "HEAD"
    )
    shutil.rmtree(schema)
    repository.commit({"schema": "text"}, "A file")
    schema.unlink()
    schema.mkdir()
    (schema / "jobs.yaml").write_text(JOBS)
    assert "schema was a file and no folder" in error("schema", "--against", "HEAD")


def test_a_file_that_was_a_link(repository: Git) -> None:
    (repository.folder / "schema" / "more.yaml").symlink_to("jobs.yaml")
    repository.commit({}, "Link it")
    (repository.folder / "schema" / "more.yaml").unlink()
    assert "schema/more.yaml is a symbolic link" in error("schema", "--against", "HEAD")


def test_an_unknown_revision(repository: Git) -> None:
    assert error("schema", "--against", "v9") == (
        "cannot compare with 'v9': git knows no revision 'v9', and there is no such folder; fetch "
        "it, or write a folder as ./v9"
    )
    assert "git knows no revision '--help'" in error("schema", "--against=--help")


def test_a_branch_that_only_the_remote_has(repository: Git, tmp_path: Path) -> None:
    repository("switch", "--quiet", "main")
    copy = clone(repository.folder, tmp_path / "copy")
    copy("switch", "--quiet", "--create", "mine")
    copy("branch", "--delete", "--force", "main")
    assert rules(copy.folder / "schema", "--against", "work") == ["INT_CHANGED"]
    assert rules(copy.folder / "schema", "--against", "main") == []


def test_the_default_branch_of_a_clone_is_the_remotes(
    repository: Git, tmp_path: Path
) -> None:
    repository("branch", "--move", "main", "trunk")
    repository("switch", "--quiet", "trunk")
    copy = clone(repository.folder, tmp_path / "copy", "--origin", "upstream")
    copy("switch", "--quiet", "--create", "mine")
    copy.commit({"schema/jobs.yaml": LATER})
    result = msgen("diff", copy.folder / "schema")
    assert "where this branch left upstream/trunk" in result.stdout
    assert "[INT_CHANGED]" in result.stdout


def test_a_default_branch_called_master(tmp_path: Path) -> None:
    git = init(tmp_path / "old", branch="master")
    git.commit({"schema/jobs.yaml": JOBS})
    git("switch", "--quiet", "--create", "work")
    git.commit({"schema/jobs.yaml": LATER})
    assert rules(git.folder / "schema") == ["INT_CHANGED"]


def test_no_default_branch(tmp_path: Path) -> None:
    git = init(tmp_path / "repository", branch="only")
    git.commit({"schema/jobs.yaml": JOBS})
    assert error(git.folder / "schema") == (
        "cannot compare with 'merge-base': the repository has no default branch (origin/HEAD, main "
        "or master); name what to compare with: --against BRANCH, TAG, COMMIT or FOLDER"
    )


def test_no_commit_yet(tmp_path: Path) -> None:
    git = init(tmp_path / "repository")
    (git.folder / "schema").mkdir()
    (git.folder / "schema" / "jobs.yaml").write_text(JOBS)
    assert "there is no commit yet to compare with" in error(git.folder / "schema")


def test_no_common_commit(repository: Git) -> None:
    repository("switch", "--quiet", "--orphan", "alone")
    repository.commit({"schema/jobs.yaml": JOBS})
    assert error("schema") == (
        "cannot compare with 'merge-base': HEAD and main have no common commit; compare with its "
        "tip: --against main"
    )


def test_a_shallow_clone(repository: Git, tmp_path: Path) -> None:
    repository("switch", "--quiet", "main")
    copy = clone(
        repository.folder, tmp_path / "copy", "--depth=1", "--branch=work", "--no-tags"
    )
    remedy = (
        "this clone is shallow: fetch the history with 'git fetch --unshallow', or in GitHub "
        "Actions give actions/checkout 'fetch-depth: 0'"
    )
    schema = copy.folder / "schema"
    for against in ("HEAD~1", "v1.0"):
        assert error(schema, "--against", against).endswith(f"; {remedy}")
    assert error(schema).endswith(f"(origin/HEAD, main or master); {remedy}")
    copy("fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main")
    assert error(schema).endswith(
        f"HEAD and origin/main have no common commit; {remedy}"
    )
    assert rules(schema, "--against", "main") == ["INT_CHANGED"]
    copy("fetch", "--quiet", "--unshallow")
    assert rules(schema) == ["INT_CHANGED"]


def test_a_folder_that_was_not_there(repository: Git) -> None:
    repository.commit({"fresh/jobs.yaml": JOBS})
    commit = repository("rev-parse", "main")[:12]
    assert error("fresh", "--against", "main") == (
        f"cannot compare with 'main': there was no folder fresh in {commit}; compare with a commit "
        "that has it, or pass --allow-missing where a new schema breaks nobody"
    )
    result = msgen("diff", "fresh", "--against", "main", "--allow-missing")
    assert (result.exit_code, result.stdout) == (
        0,
        f"not compared: main ({commit}) has no schema folder; a new schema breaks nobody\n"
        "0 errors\n",
    )


def test_an_old_version_that_is_no_schema(repository: Git) -> None:
    repository.commit({"schema/jobs.yaml": JOBS.replace("tag: 1", "tagg: 1")})
    (repository.folder / "schema" / "jobs.yaml").write_text(JOBS)
    result = msgen("diff", "schema", "--against", "HEAD")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "error: cannot compare with 'HEAD': its schema has errors; compare with a version that "
        "this msgen reads\nHEAD:schema/jobs.yaml:4:3: error: "
    )


def test_old_files_with_other_line_ends_are_the_same(repository: Git) -> None:
    crlf = (
        (repository.folder / "schema" / "jobs.yaml")
        .read_bytes()
        .replace(b"\n", b"\r\n")
    )
    (repository.folder / "schema" / "jobs.yaml").write_bytes(crlf)
    repository.commit({}, "Line ends")
    (repository.folder / "schema" / "jobs.yaml").write_text(LATER)
    assert rules("schema", "--against", "HEAD") == []


def test_a_folder_to_compare_with(repository: Git, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "jobs.yaml").write_text(JOBS)
    assert rules("schema", "--against", tmp_path / "old") == ["INT_CHANGED"]
    assert rules("schema", "--against", "../old") == ["INT_CHANGED"]
    assert "no such folder" in msgen("diff", "schema", "--against", "./none").stderr


def test_a_name_of_both_a_revision_and_a_folder_is_the_revision(
    repository: Git,
) -> None:
    (repository.folder / "v1.0").mkdir()
    (repository.folder / "v1.0" / "jobs.yaml").write_text(LATER)
    assert rules("schema", "--against", "v1.0") == ["INT_CHANGED"]
    assert rules("schema", "--against", "./v1.0") == []
    (repository.folder / "only-folder").mkdir()
    (repository.folder / "only-folder" / "jobs.yaml").write_text(LATER)
    assert rules("schema", "--against", "only-folder") == []


def test_what_is_gone_is_told_at_its_file(
    repository: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = JOBS.replace("jobs", "more")
    repository.commit({"schema/more.yaml": more, "schema/jobs.yaml": LATER})
    (repository.folder / "schema" / "more.yaml").unlink()
    line = ":1:8: error: group 'more' is gone [GROUP_REMOVED]\n"
    for folder in ("schema", "./schema", str(repository.folder / "schema")):
        text = msgen("diff", folder, "--against", "HEAD").stdout
        assert f"\n{Path(folder).as_posix()}/more.yaml{line}" in text
        assert "    was: HEAD:schema/more.yaml:1:8\n" in text
    monkeypatch.chdir(repository.folder / "schema")
    assert f"\nmore.yaml{line}" in msgen("diff", ".", "--against", "HEAD").stdout
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "more.yaml").write_text(more)
    (tmp_path / "old" / "jobs.yaml").write_text(LATER)
    against = msgen("diff", ".", "--against", str(tmp_path / "old"))
    assert f"\nmore.yaml{line}" in against.stdout


def test_outside_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "jobs.yaml").write_text(JOBS)
    folder = (tmp_path / "schema").as_posix()
    assert error(folder) == (
        f"cannot compare with 'merge-base': {folder} is in no git repository; give a folder to "
        "compare with: --against FOLDER"
    )


def test_a_bare_repository_around_it(tmp_path: Path) -> None:
    init(tmp_path / "source").commit({"README": "text"})
    bare = clone(tmp_path / "source", tmp_path / "bare.git", "--bare")
    (bare.folder / "schema").mkdir()
    (bare.folder / "schema" / "jobs.yaml").write_text(JOBS)
    assert "is in a bare repository, without files" in error(bare.folder / "schema")


def test_without_git(repository: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert error("schema", "--against", "main") == (
        "cannot compare with 'main': git is not installed; install it, or give a folder: "
        "--against FOLDER"
    )


def test_a_repository_of_another_user(
    repository: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = subprocess.CompletedProcess(
        [], 128, b"", b"fatal: detected dubious ownership in repository at '/x'\n"
    )
    monkeypatch.setattr(git_module, "_git", lambda *_, **__: refused)
    assert "git config --global --add safe.directory" in error(
        "schema", "--against", "main"
    )


def test_an_object_that_is_not_there(repository: Git) -> None:
    blob = repository("rev-parse", "main:schema/jobs.yaml")
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert f"object {blob[:12]} is not in this clone" in error(
        "schema", "--against", "main"
    )


def test_a_tree_that_is_not_there(repository: Git) -> None:
    tree = repository("rev-parse", "main:schema")
    (repository.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert "git cannot list schema/" in error("schema", "--against", "main")


def test_all_tags_that_match(repository: Git) -> None:
    repository("tag", "v1.10")
    repository.commit({"schema/jobs.yaml": JOBS})
    repository("tag", "--annotate", "--message", "Two", "v1.9")
    repository("tag", "w1")
    result = msgen("diff", "schema", "--transitive", "v1.*", "--format", "json")
    data: Any = json.loads(result.stdout)
    found = [(each["against"], len(each["findings"])) for each in data["comparisons"]]
    assert found == [("v1.0", 0), ("v1.9", 0), ("v1.10", 1)]
    assert result.exit_code == 1
    both = msgen("diff", "schema", "--transitive", "v1.9", "--against", "v1.10")
    assert both.exit_code == 1
    assert both.stdout.count("against v1.") == 2


def test_tags_from_before_the_schema_are_passed_over(repository: Git) -> None:
    repository("switch", "--quiet", "--orphan", "past")
    repository.commit({"README": "text"})
    repository("tag", "v0.1")
    repository("switch", "--quiet", "work")
    result = msgen("diff", "schema", "--transitive", "v*")
    assert "not compared: tag v0.1 has no schema folder\n" in result.stdout
    assert result.exit_code == 1


def test_no_tag_that_matches(repository: Git, tmp_path: Path) -> None:
    text = "fetch them with 'git fetch --tags', or give another pattern"
    assert error("schema", "--transitive", "x*") == (
        f"cannot compare with tags 'x*': no tag matches; {text}"
    )
    copy = clone(repository.folder, tmp_path / "copy", "--depth=1", "--no-tags")
    assert error(copy.folder / "schema", "--transitive", "v*") == (
        "cannot compare with tags 'v*': no tag matches; this clone is shallow and may lack them; "
        f"{text}"
    )


def test_a_schema_in_another_repository_than_the_working_directory(
    repository: Git, tmp_path: Path
) -> None:
    other = init(tmp_path / "other")
    other.commit({"schema/jobs.yaml": JOBS})
    (other.folder / "schema" / "jobs.yaml").write_text(LATER)
    assert rules(other.folder / "schema", "--against", "HEAD") == ["INT_CHANGED"]
