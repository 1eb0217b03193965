"""The package as people get it: the wheel, the sdist, the quickstart, the documents."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgen.codegen.cli.commands import main
from repositories import init

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH"
    }
    environment |= variables
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built from a copy of what git would commit."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).exists():
            target.write_bytes((ROOT / name).read_bytes())
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "-o",
        folder / "dist",
        ".",
        cwd=source,
    )
    return folder / "dist"


@pytest.mark.processes
def test_the_wheel_holds_the_package_and_nothing_else(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "msgen"
    }
    for name in (
        "msgen/py.typed",
        "msgen/codegen/emit/python/templates/module.py.j2",
        "msgen/generated/backend.py",
        "msgen/runtime/codec/codec.py",
    ):
        assert name in names
    native = [name for name in names if name.endswith(".so")]
    assert [name.partition(".")[0] for name in native] == [
        "msgen/runtime/codec/_native"
    ]
    assert not [name for name in names if "test" in name]


@pytest.mark.processes
def test_the_wheel_builds_a_schema_without_the_runtime(
    distributions: Path, tmp_path: Path
) -> None:
    (wheel,) = distributions.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--constraint", ROOT / "constraints.txt", wheel, cwd=tmp_path,
    )  # fmt: skip
    msgen = tmp_path / "venv" / "bin" / "msgen"
    assert run(msgen, "init", "engine", cwd=tmp_path).startswith("wrote engine/schema/")
    assert run(msgen, "build", "engine/schema", cwd=tmp_path) == (
        "1 group, 3 messages: 2 written, 0 unchanged, 0 removed\n"
    )
    run(msgen, "check", "engine/schema", cwd=tmp_path)
    git = init(tmp_path / "engine")
    git.commit({})
    checked = run(msgen, "check", "schema", "--against", "merge-base", cwd=git.folder)
    assert checked == "1 group: 0 lint findings, 0 files out of date: 0 errors\n"
    run(
        msgen,
        "diff",
        "schema",
        "--against",
        "HEAD",
        "--format",
        "sarif",
        cwd=git.folder,
    )
    assert run(msgen, "--version", cwd=tmp_path).startswith("msgen, version ")
    installed = run(python, "-m", "pip", "list", "--format", "freeze", cwd=tmp_path)
    for heavy in ("torch", "pyzmq", "msgpack", "numpy"):
        assert f"{heavy}==" not in installed


@pytest.mark.long
@pytest.mark.processes
def test_the_sdist_builds_the_same_wheel(distributions: Path, tmp_path: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    (wheel,) = distributions.glob("*.whl")
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
        "--wheel-dir", tmp_path, sdist, cwd=tmp_path,
    )  # fmt: skip
    (again,) = tmp_path.glob("*.whl")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(
        zipfile.ZipFile(wheel).namelist()
    )


@pytest.mark.long
@pytest.mark.processes
def test_without_a_compiler_the_wheel_is_built_without_the_engine(
    distributions: Path, tmp_path: Path
) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
        "--wheel-dir", tmp_path, sdist, cwd=tmp_path, CC="/nonexistent/cc",
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    said = run(
        sys.executable,
        "-c",
        "import msgen.runtime as r; print(r.__file__, r.ENGINE, r.codec.native_engine.why_not)",
        cwd=tmp_path,
        PYTHONPATH=str(site),
        MSGEN_CODEC="auto",
    )
    assert said == (
        f"{site}/msgen/runtime/__init__.py python it was not built here "
        "(No module named 'msgen.runtime.codec._native')\n"
    )


def test_the_committed_modules_are_what_the_schema_generates() -> None:
    result = CliRunner().invoke(main, ["build", "--check", str(ROOT / "schema")])
    assert result.exit_code == 0, result.output


@pytest.mark.processes
def test_the_quickstart_runs() -> None:
    shown = run(sys.executable, "examples/quickstart.py", cwd=ROOT)
    assert "encoded: BatchBackendMsg in 48 bytes\n" in shown
    assert re.search(
        r"^  92 ce f3 40 18 00 91 94 01 07 c4 0c 01 00", shown, re.MULTILINE
    )
    assert "equal:   True\n" in shown
    assert "received: UserMsg 2 with 100000 tokens, the last is 99999\n" in shown
    assert shown.endswith("received: ExitMsg\n")


def yaml_examples() -> dict[str, dict[str, str]]:
    """The groups in the documents: by document, group name to its text."""
    documents: dict[str, dict[str, str]] = {}
    for path in (
        ROOT / "README.md",
        ROOT / "schema" / "README.md",
        *ROOT.glob("docs/*.md"),
    ):
        groups: dict[str, str] = {}
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
            for part in re.split(r"^(?=group: )", block, flags=re.MULTILINE):
                match = re.match(r"group: (\w+)", part)
                if match:
                    groups[match[1]] = part
        documents[path.relative_to(ROOT).as_posix()] = groups
    return documents


EXAMPLES = yaml_examples()


@pytest.mark.parametrize(
    ("document", "group"),
    [(name, group) for name in EXAMPLES for group in EXAMPLES[name]],
)
def test_the_schemas_in_the_documents_build(
    document: str, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = tmp_path / "schema"
    schema.mkdir()
    wanted = [group]
    for name in wanted:  # grows by what the group imports
        own = ROOT / "schema" / f"{name}.yaml"
        text = EXAMPLES[document].get(name) or own.read_text(encoding="utf-8")
        (schema / f"{name}.yaml").write_text(text, encoding="utf-8")
        imports = re.search(r"^imports: \[(.*)\]", text, re.MULTILINE)
        wanted += imports[1].replace(" ", "").split(",") if imports else []
    result = CliRunner().invoke(main, ["build", "schema"])
    assert result.exit_code == 0, result.stderr


def test_nothing_in_the_package_can_run_code_from_data() -> None:
    for folder in ("codegen", "generated", "runtime"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    imported = {alias.name for alias in node.names}
                    module = getattr(node, "module", None)
                    assert not {module, *imported} & {
                        "pickle",
                        "marshal",
                        "shelve",
                        "dill",
                    }
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id not in ("eval", "exec", "__import__"), path
