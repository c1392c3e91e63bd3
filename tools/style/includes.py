"""Who may include whom: the edges of cmake/layers.txt, libtorch only where it is allowed, no cycles."""

import posixpath
import re

from style.tree import Finding, module_of

TORCH_FOLDERS = {"torch", "ATen", "c10", "caffe2"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def includes_of(tree, file):
    """Yields (line, quote, path) for each include of a file, those inside block comments left out."""
    inside_comment = False
    for number, line in enumerate(tree.lines(file), 1):
        if not inside_comment:
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1), found.group(2)
        opened, closed = line.rfind("/*"), line.rfind("*/")
        if opened != closed:
            inside_comment = opened > closed


def check_include(tree):
    """A module includes only what cmake/layers.txt allows."""
    layers = tree.layers()
    for file in tree.cpp("convoy", "apps"):
        module = module_of(file)
        if module not in layers:
            yield Finding(file, 1, "include", f"'{module}' has no line in cmake/layers.txt")
            continue
        for line, quote, path in includes_of(tree, file):
            problem = forbidden(layers, tree, file, module, quote, path)
            if problem:
                yield Finding(file, line, "include", problem)


def forbidden(layers, tree, file, module, quote, path):
    """Returns why a module's file may not include a path, or None."""
    layer = layers[module]
    first = path.split("/")[0]
    if first in TORCH_FOLDERS and not layer.torch:
        return f"'{module}' may not use libtorch ({path})"
    if first in ("tests", "bench", "examples"):
        return f"the library may not include {path}"
    if quote == '"' and first not in ("convoy", "apps"):
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
        if ".." in path.split("/") or (tree.root / beside).exists():
            return f"include by the path from the root: {beside}"
        return None
    target = module_of(path)
    if target is None or target == module:
        return forbidden_sibling(file, path)
    if first == "apps":
        return f"nothing may include {path} but {target} itself"
    if target not in layer.may_include:
        return f"'{module}' may not include '{target}' (cmake/layers.txt)"
    return None


def forbidden_sibling(file, path):
    """Strategies in convoy/parallel/ never include each other."""
    here, there = file.split("/"), path.split("/")
    if here[:2] != ["convoy", "parallel"] or there[:2] != ["convoy", "parallel"] or len(here) < 4 or len(there) < 4:
        return None
    if here[2] == there[2]:
        return None
    return f"strategy '{here[2]}' may not include its sibling '{there[2]}'"


def check_cycle(tree):
    """No two folders include each other, directly or over others; nor do two headers of one folder."""
    by_folder, by_file = {}, {}
    for file in tree.cpp("convoy", "apps"):
        for line, _, path in includes_of(tree, file):
            if not path.startswith(("convoy/", "apps/")):
                continue
            by_file.setdefault(file, {}).setdefault(path, (file, line))
            here, there = posixpath.dirname(file), posixpath.dirname(path)
            if here != there:
                by_folder.setdefault(here, {}).setdefault(there, (file, line))
    for graph, what in ((by_folder, "folders"), (by_file, "files")):
        cycle = find_cycle(graph)
        if cycle:
            file, line = graph[cycle[0]][cycle[1]]
            yield Finding(file, line, "include_cycle", f"{what} include each other: " + " -> ".join(cycle))


def find_cycle(graph):
    """Returns the nodes of one cycle, the first repeated at the end, or None."""
    done = set()
    for start in sorted(graph):
        path, stack = [], [(start, iter(sorted(graph.get(start, ()))))]
        path.append(start)
        while stack:
            node, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                done.add(node)
                stack.pop()
                path.pop()
            elif target in path:
                return path[path.index(target):] + [target]
            elif target not in done:
                stack.append((target, iter(sorted(graph.get(target, ())))))
                path.append(target)
    return None
