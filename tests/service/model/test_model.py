"""The program against the model, for some seconds; `make model` runs it for an hour, with other seeds.

A failure prints the shortest steps that still fail, and the command that repeats it."""

import os
import random
import subprocess
import time
from pathlib import Path

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

import engines
import model_machine
from croupier import ROOT

pytestmark = pytest.mark.depends_on("platform")
FAULTS = sorted(Path(__file__).with_name("faults").glob("*.patch"))
MINUTES = float(os.environ.get("MINUTES") or 0) / len(engines.PAIRS)
SEED = int(os.environ.get("MODEL_SEED") or (random.SystemRandom().getrandbits(32) if MINUTES else 20261127))
SAMPLE = int(os.environ.get("TEST_SAMPLE") or 1)  # of sanitized runs, which are several times slower
EXAMPLES = int(os.environ.get("MODEL_EXAMPLES") or (100 if MINUTES else max(20 // SAMPLE, 5)))
STEPS = int(os.environ.get("MODEL_STEPS") or 25)
# Explaining what matters in a failure takes as long again.
LEFT_OUT = {"explain", "shrink"} if os.environ.get("MODEL_SHRINK") == "no" else {"explain"}
PHASES = [phase for phase in hypothesis.Phase if phase.name not in LEFT_OUT]


def run(seed):
    machine = hypothesis.seed(seed)(type("Machine", (model_machine.Machine,), {}))
    settings = hypothesis.settings(deadline=None, database=None, phases=PHASES, max_examples=EXAMPLES, stateful_step_count=STEPS,
                                   print_blob=False, suppress_health_check=list(hypothesis.HealthCheck))
    try:
        run_state_machine_as_test(machine, settings=settings)
    except Exception:
        print(f"To repeat it: make model MINUTES=0 MODEL_SEED={seed} MODEL_EXAMPLES={EXAMPLES} MODEL_STEPS={STEPS}"
              f" MODEL_PAIRS={engines.ODDS},{engines.PLATFORM}", flush=True)
        raise
    finally:
        model_machine.end_world()


@pytest.mark.long(25)
@pytest.mark.sampled
def test_the_program_does_what_the_model_says():
    end, seed = time.monotonic() + 60 * MINUTES, SEED
    while True:
        print(f"seed {seed}", flush=True)
        run(seed)
        if time.monotonic() >= end:
            break
        seed = random.SystemRandom().getrandbits(32)


@pytest.mark.depends_on()
def test_the_planted_faults_still_apply():
    """`make model-faults` builds the program with each and shows that the model finds it."""
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True).returncode != 0:
        pytest.skip("patches are checked in a git checkout")
    assert len(FAULTS) >= 10
    for fault in FAULTS:
        done = subprocess.run(["git", "-C", ROOT, "apply", "--check", "--recount", "-C1", fault], capture_output=True, text=True)
        assert done.returncode == 0, f"{fault.name} no longer applies: make it again\n{done.stderr}"
