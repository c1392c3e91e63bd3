"""Rules that need no more than a look at lines and names: sizes, words, files that no target builds."""

import json
import pathlib
import re

from style.tree import Finding

HEADER_LINES = 250
SOURCE_LINES = 500
ANY_LINES = 800
FOLDER_FILES = 20

# Put together from halves so that this file does not break its own rule.
WORDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(^|[^\w.])/(work|farm)/")
TEMPORARY_PATH = re.compile(r"(^|[^\w.])/tm" r"p/")


def check_size(tree):
    """Files fit in a head, folders on a screen."""
    folders = {}
    for file in tree.code():
        suffix = pathlib.PurePath(file).suffix
        limit = {".h": HEADER_LINES, ".cpp": SOURCE_LINES, ".py": SOURCE_LINES}.get(suffix, ANY_LINES)
        lines = len(tree.lines(file))
        if lines > limit:
            yield Finding(file, limit + 1, "size", f"{lines} lines, {limit} are allowed: split it")
        folders.setdefault(str(pathlib.PurePath(file).parent), []).append(file)
    for folder, files in folders.items():
        if len(files) > FOLDER_FILES:
            message = f"{len(files)} files directly in {folder}, {FOLDER_FILES} are allowed: make a folder below it"
            yield Finding(files[0], 1, "size", message)


def check_words(tree):
    """No notes to oneself, no paths of one machine."""
    for file in tree.code():
        page = file.startswith("docs/") or file.endswith(".md")
        for number, line in enumerate(tree.lines(file), 1):
            found = WORDS.search(line)
            if found:
                yield Finding(file, number, "words", f"'{found.group(1)}': file an issue, or do it now")
            if MACHINE_PATH.search(line) or (page and TEMPORARY_PATH.search(line)):
                yield Finding(file, number, "words", "a path of one machine")


def check_built(tree):
    """Each .cpp under tests/, bench/ and examples/ belongs to a target, so that no test is lost in silence."""
    commands = tree.build / "compile_commands.json" if tree.build else None
    if commands is None or not commands.exists():
        yield Finding("CMakeLists.txt", 1, "built", "no compile_commands.json: give the build folder with --build")
        return
    root = tree.root.resolve()
    built = {pathlib.Path(entry["file"]).resolve() for entry in json.loads(commands.read_text())}
    torch_modules = {name for name, layer in tree.layers().items() if layer.torch}
    without_torch = off(tree, "CONVOY_TORCH", default="ON")
    for file in tree.files:
        parts = file.split("/")
        if not file.endswith(".cpp") or parts[0] not in ("tests", "bench", "examples") or root / file in built:
            continue
        if parts[:2] == ["tests", "fuzz"] and off(tree, "CONVOY_FUZZ"):
            continue
        if parts[0] == "bench" and off(tree, "CONVOY_BENCH"):
            continue
        if without_torch and (parts[0] == "examples" or torch_modules.intersection(parts[2:3])):
            continue
        yield Finding(file, 1, "built", "no target builds this file")


def off(tree, option, default="OFF"):
    """Returns whether a CMake option is off in the build folder."""
    return (tree.cache(option) or default).upper() in ("OFF", "0", "FALSE", "NO")
