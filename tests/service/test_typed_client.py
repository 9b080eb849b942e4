"""Types that two generators make of docs/openapi.yaml and docs/provider.yaml, and programs that are checked with them."""

import shutil
import subprocess

import pytest

import node_packages
from croupier import BINARY, PATIENCE, ROOT

pytestmark = pytest.mark.only("embedded", "sqlite")  # no service is asked: once is enough

NAMES = {"WalletRequest": "openapi WalletRequest", "WalletAnswer": "openapi WalletAnswer", "LaunchRequest": "openapi LaunchRequest",
         "LaunchAnswer": "openapi Launch", "ProviderRequest": "provider Request"}


def run(modules, directory, *command):
    done = subprocess.run([modules / ".bin" / command[0], *command[1:]], cwd=directory, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def typed(tmp_path):
    """A directory with the programs, and the packages that they take."""
    source = ROOT / "tests" / "typed"
    modules = node_packages.install(source, BINARY.parent / "typed")
    (tmp_path / "node_modules").symlink_to(modules)
    for program in source.glob("*.ts"):
        shutil.copy(program, tmp_path)
    return modules, tmp_path


def check(modules, directory, *programs):
    run(modules, directory, "tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution",
        "bundler", *programs)


def test_clients_of_openapi_typescript_are_refused_what_the_service_refuses(typed):
    modules, directory = typed
    for document, made in (("openapi", "api"), ("provider", "provider")):
        run(modules, directory, "openapi-typescript", ROOT / "docs" / f"{document}.yaml", "-o", f"{made}.ts")
    lines = ['import type {components as openapi} from "./api";', 'import type {components as provider} from "./provider";']
    lines += [f'export type {name} = {of}["schemas"]["{schema}"];' for name, of, schema in ((name, *of.split()) for name, of in NAMES.items())]
    (directory / "types.ts").write_text("\n".join(lines) + "\n")
    check(modules, directory, "customer.ts", "refusals.ts")


def test_clients_of_hey_api_are_refused_what_the_service_refuses(typed):
    node_packages.needs_node((20, 19))
    modules, directory = typed
    for document in ("openapi", "provider"):
        run(modules, directory, "openapi-ts", "-i", ROOT / "docs" / f"{document}.yaml", "-o", f"hey-{document}", "--no-log-file")
    (directory / "types.ts").write_text("".join(
        f'export type {{{schema} as {name}}} from "./hey-{document}";\n' for name, document, schema in
        ((name, *of.split()) for name, of in NAMES.items())))
    check(modules, directory, "refusals.ts")
    methods = (directory / "hey-openapi" / "sdk.gen.ts").read_text()
    for method in ("getEvent", "launchGame", "callWallet"):
        assert f"export const {method} = " in methods
