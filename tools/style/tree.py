"""The files that the rules look at, and what a finding is."""

import dataclasses
import pathlib
import re

# Folders and files that are Convoy's own; build folders and runs are never looked at.
ROOTS = ("convoy", "apps", "examples", "bench", "tests", "tools", "cmake", "docs", ".ci")
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "dist"}
CODE = {".h", ".cpp", ".py", ".sh", ".cmake", ".ts", ".js", ".css", ".md", ".html"}
CODE_NAMES = {"CMakeLists.txt", "Makefile", "run"}


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One broken rule at one place."""

    file: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.rule}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Layer:
    """What one line of cmake/layers.txt says about a module."""

    torch: bool
    may_include: frozenset


class Tree:
    """The source tree under a root, and the build folder if there is one."""

    def __init__(self, root, build=None):
        self.root = pathlib.Path(root)
        self.build = pathlib.Path(build) if build else None
        self._texts = {}
        self.files = sorted(self._find())

    def _find(self):
        for path in self.root.iterdir():
            if path.is_file() and not path.is_symlink():
                yield path.name
        for name in ROOTS:
            for path in (self.root / name).rglob("*"):
                relative = path.relative_to(self.root)
                if path.is_file() and not SKIPPED_FOLDERS.intersection(relative.parts):
                    yield relative.as_posix()

    def text(self, file):
        """Returns a file's text; bytes that are no UTF-8 are replaced."""
        if file not in self._texts:
            self._texts[file] = (self.root / file).read_text(encoding="utf-8", errors="replace")
        return self._texts[file]

    def lines(self, file):
        return self.text(file).splitlines()

    def cpp(self, *folders):
        """Returns the C++ files under these folders."""
        return [f for f in self.files if f.startswith(tuple(x + "/" for x in folders)) and f.endswith((".h", ".cpp"))]

    def code(self):
        """Returns the files that people write by hand, data files apart."""
        return [f for f in self.files if pathlib.PurePath(f).suffix in CODE or pathlib.PurePath(f).name in CODE_NAMES]

    def layers(self):
        """Returns module -> Layer, as cmake/layers.txt says."""
        layers = {}
        for line in self.lines("cmake/layers.txt"):
            fields = [field.strip() for field in line.split("|")]
            if re.match(r"\d", line) and len(fields) == 4:
                layers[fields[1]] = Layer(fields[2] == "yes", frozenset(fields[3].split()))
        return layers

    def cache(self, key):
        """Returns a value of the build folder's CMake cache, or ""."""
        if self.build and (self.build / "CMakeCache.txt").exists():
            for line in (self.build / "CMakeCache.txt").read_text().splitlines():
                if line.startswith(key + ":"):
                    return line.partition("=")[2]
        return ""


def module_of(file):
    """Returns the module that a source file belongs to: "base", "apps/cli", or None outside convoy/ and apps/."""
    parts = file.split("/")
    if parts[0] == "convoy" and len(parts) > 2:
        return parts[1]
    if parts[0] == "apps" and len(parts) > 2:
        return "/".join(parts[:2])
    return None
