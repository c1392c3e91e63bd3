#!/usr/bin/env python3
"""Checks the rules of CONTRIBUTING.md that a machine can check, one line for each finding.

Usage: tools/check_style.py [--root DIR] [--build DIR] [RULE ...]     (default: all rules)
Exit status: 0 nothing found; 1 findings, each as file:line: rule: message; 2 bad usage.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from style import docstrings, includes, simple  # noqa: E402
from style.tree import Tree  # noqa: E402

RULES = {
    "include": includes.check_include,
    "include_cycle": includes.check_cycle,
    "built": simple.check_built,
    "size": simple.check_size,
    "docstring": docstrings.check_docstring,
    "words": simple.check_words,
}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, help="the source tree")
    parser.add_argument("--build", help="the build folder, for the rule 'built'")
    parser.add_argument("rules", nargs="*", metavar="RULE", help=" ".join(RULES))
    options = parser.parse_args(arguments)
    unknown = [rule for rule in options.rules if rule not in RULES]
    if unknown:
        parser.error(f"no rule '{unknown[0]}'; there are: " + " ".join(RULES))
    tree = Tree(options.root, options.build)
    findings = sorted({finding for rule in options.rules or RULES for finding in RULES[rule](tree)})
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
