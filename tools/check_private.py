#!/usr/bin/env python3
"""What one Python module of the tests keeps to itself, no other uses: a name that begins with an underscore is its
module's own, and a class's own members are used by self, by cls, by super(), or by its neighbours in that module.

    tools/check_private.py
"""

import ast
import subprocess
import sys


def private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_"


def defined(tree):
    """The private names that a module gives to something."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return {name for name in names if private(name)}


def used(tree):
    """(line, name) of the private names of others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if private(alias.name))
        elif isinstance(node, ast.Attribute) and private(node.attr):
            yield node.lineno, node.attr


files = subprocess.run(["git", "ls-files", "tests/*.py", "bench/*.py"], check=True, capture_output=True, text=True).stdout.split()
trees = {}
for file in files:
    with open(file, encoding="utf-8") as source:
        trees[file] = ast.parse(source.read(), file)
owners = {file: defined(tree) for file, tree in trees.items()}
found = [f"{file}:{line}: {name} is another module's own"
         for file, tree in trees.items() for line, name in used(tree)
         if name not in owners[file] and any(name in names for names in owners.values())]
print(*found, sep="\n", end="\n" if found else "")
sys.exit(bool(found))
