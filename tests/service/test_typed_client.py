"""Types that openapi-typescript makes of docs/openapi.yaml, and a customer's program that is checked with them."""

import shutil
import subprocess

import pytest

import node_packages
from croupier import BINARY, PATIENCE, ROOT

pytestmark = pytest.mark.only("embedded", "sqlite")  # no service is asked: once is enough


def test_ids_and_odds_are_typed_in_a_client_that_is_made_of_the_document(tmp_path):
    source = ROOT / "tests" / "typed"
    modules = node_packages.install(source, BINARY.parent / "typed")
    (tmp_path / "node_modules").symlink_to(modules)
    shutil.copy(source / "customer.ts", tmp_path)
    for command in (["openapi-typescript", ROOT / "docs" / "openapi.yaml", "-o", "api.ts"],
                    ["tsc", "--noEmit", "--strict", "--skipLibCheck", "customer.ts"]):
        done = subprocess.run([modules / ".bin" / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True,
                              timeout=120 * PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
