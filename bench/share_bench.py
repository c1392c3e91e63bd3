#!/usr/bin/python3
"""Times a run whose second rank is throttled to half, with replicas dealt out evenly and by measured speed.

Layers sleep 5 ms in each forward pass, 10 ms on rank 1, so that ranks do not take the processor from each other. Of 12
replicas the ideal division is 8 and 4, whose passes sleep for 40 ms on both ranks; dealt out evenly, rank 1 sleeps for 60.
Runs alternate; each reports the median of its steps, and the median over the rounds is what counts.

Exit status: 0 the step is within the bar of the ideal, 1 it is not, 2 a run failed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPLICAS = 12
IDEAL_MS = 40.0
BAR = 1.15


def run(arguments, folder, share):
    """Returns the summary of one run."""
    out = os.path.join(folder, "run")
    command = [arguments.convoy, "run", os.path.join(ROOT, "examples", "recipes", "fashion_softmax.toml"), "-n", "2",
               "--out", out, "--quiet"]
    settings = {
        "data.limit": 4000,
        "train.accumulation": 1,
        "train.epochs": 0,
        "train.steps": arguments.warmup + arguments.steps,
        "train.global_batch": 8 * REPLICAS,
        "measure.warmup_steps": arguments.warmup,
        "replicas.count": REPLICAS,
        "parallel.share": share,
    }
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    environment = dict(os.environ, CONVOY_TIMING_ONLY="1", CONVOY_PLANT="throttle:rank=1,step=0")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"share_bench: convoy ended with status {done.returncode}: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convoy", default=os.path.join(ROOT, "build", "bin", "convoy"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=5)
    arguments = parser.parse_args()

    medians = {"even": [], "auto": []}
    for _ in range(arguments.rounds):
        for share, found in medians.items():
            with tempfile.TemporaryDirectory() as folder:
                summary = run(arguments, folder, share)
            found.append(summary["step_ms"]["median"])
            shares = summary["shares"]
            measured = "" if shares["micro_batch_ms"] is None else ", measured {:.2f} and {:.2f} ms".format(
                *shares["micro_batch_ms"])
            print(f"{share}: replicas {shares['replicas']}{measured}: step {found[-1]:.2f} ms", flush=True)
    step = statistics.median(medians["auto"])
    even = statistics.median(medians["even"])
    met = step <= BAR * IDEAL_MS
    print("load average {:.1f} on {} processors: other work on them counts against the bar".format(
        os.getloadavg()[0], os.cpu_count()))
    print(f"by speed {step:.2f} ms, evenly {even:.2f} ms; ideal {IDEAL_MS:.0f} ms: {step / IDEAL_MS:.3f} of it, "
          f"bar {BAR}: {'met' if met else 'NOT MET'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
