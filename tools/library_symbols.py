"""The symbols of the compiled library, for the checks beside this file. Needs nm."""
import subprocess


def symbols(library):
    """(file, symbol, kind) of every global symbol of an archive; kind U is a use, others but w define it."""
    listing = subprocess.run(["nm", "-A", "-g", library], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        _, member, symbol = line.split(":", 2)
        *_, kind, name = symbol.split()
        yield member.rsplit("/", 1)[-1].removesuffix(".o"), name.split("@")[0], kind
