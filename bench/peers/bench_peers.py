#!/usr/bin/python3
"""Times Convoy's data parallel steps beside PyTorch's DistributedDataParallel on Gloo, the same models on the same machine.

Processes are alternated: each pair runs one, then the other, and every second pair in the other order. Each process warms
up, then reports the median of its steps; the ratio of a pair is peer over Convoy, and the median of ratios is what counts.
Convoy's steps include the making of their input on a thread of its own; the peer's input lies in memory. Neither side
evaluates or saves. Also measured: scaling from one rank to two, against one process with the whole batch and against one
rank with the same replicas.

Exit status: 0 all bars are met, 1 one is not, 2 the peer cannot be run.
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RANKS = 2
# (model, global batch, least ratio): what the project promises.
PEER_BARS = (("mlp", 128, 1.8), ("cnn", 128, 1.0), ("cnn", 16, 1.15))
# (model, least efficiency against the fastest one-process run, least against the same replicas on one rank or None)
SCALING_BARS = (("mlp", 0.75, 0.85), ("cnn", 0.94, None))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_convoy(arguments, folder, model, batch, ranks, replicas):
    """Returns the run's summary."""
    out = os.path.join(folder, "run")
    shutil.rmtree(out, ignore_errors=True)
    command = [arguments.convoy, "run", os.path.join(ROOT, "bench", "recipes", model + ".toml"), "-n", str(ranks)]
    settings = {
        "data.path": os.path.join(folder, "cifar"),
        "train.global_batch": batch,
        "train.steps": arguments.warmup + arguments.steps,
        "measure.warmup_steps": arguments.warmup,
        "replicas.count": replicas,
        "parallel.threads": arguments.threads,
    }
    command += ["--out", out]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    environment = dict(os.environ, CONVOY_TIMING_ONLY="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"bench-peers: convoy failed with status {done.returncode}: {done.stderr.strip()}")
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def run_peer(arguments, model, batch, kernel):
    """Returns what the peer's rank 0 reports."""
    environment = dict(os.environ, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    threads = str(arguments.threads)
    environment.update(OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads, GLOO_SOCKET_IFNAME="lo")
    if kernel:
        environment.setdefault("OPENBLAS_CORETYPE", kernel)
    command = [sys.executable, os.path.join(HERE, "ddp_peer.py"), "--model", model, "--batch", str(batch)]
    command += ["--steps", str(arguments.steps), "--warmup", str(arguments.warmup), "--threads", threads]
    processes = [
        subprocess.Popen(command, env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]
    try:
        outputs = [process.communicate(timeout=600)[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    if any(process.returncode != 0 for process in processes):
        sys.exit("bench-peers: a rank of the peer failed")
    return json.loads(outputs[0])


def median_ms(found):
    return found["step_ms"]["median"]


def compare_with_peer(arguments, folder, model, batch, least):
    ours, theirs = [], []
    kernel = None
    for pair in range(arguments.pairs):
        for which in ("convoy", "peer") if pair % 2 == 0 else ("peer", "convoy"):
            if which == "convoy":
                found = run_convoy(arguments, folder, model, batch, RANKS, RANKS)
                kernel = found["blas"]["kernel"]
                ours.append(median_ms(found))
            else:
                theirs.append(median_ms(run_peer(arguments, model, batch, kernel)))
    ratios = sorted(b / a for a, b in zip(ours, theirs))
    return {
        "what": f"{model}, batch {batch}, {RANKS} ranks: PyTorch DDP over Convoy",
        "convoy_ms": statistics.median(ours),
        "other_ms": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "lowest": ratios[0],
        "highest": ratios[-1],
        "bar": least,
    }


def measure_scaling(arguments, folder, model, least, least_same):
    kinds = {"two ranks": (RANKS, RANKS), "whole batch": (1, 1), "same replicas": (1, RANKS)}
    times = {kind: [] for kind in kinds}
    for pair in range(arguments.pairs):
        order = list(kinds) if pair % 2 == 0 else list(reversed(kinds))
        for kind in order:
            ranks, replicas = kinds[kind]
            times[kind].append(median_ms(run_convoy(arguments, folder, model, 128, ranks, replicas)))
    rows = []
    fastest = [min(a, b) for a, b in zip(times["whole batch"], times["same replicas"])]
    for name, base, bar in (("the fastest one-process run", fastest, least),
                            ("the same replicas on one rank", times["same replicas"], least_same)):
        ratios = sorted(b / (RANKS * a) for a, b in zip(times["two ranks"], base))
        rows.append({
            "what": f"{model}, batch 128: efficiency of {RANKS} ranks against {name}",
            "convoy_ms": statistics.median(times["two ranks"]),
            "other_ms": statistics.median(base),
            "ratio": statistics.median(ratios),
            "lowest": ratios[0],
            "highest": ratios[-1],
            "bar": bar,
        })
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--convoy", default=os.path.join(ROOT, "build", "bin", "convoy"), help="the command")
    parser.add_argument("--pairs", type=int, default=7, help="how often each kind of process is run")
    parser.add_argument("--steps", type=int, default=30, help="steps that a process measures")
    parser.add_argument("--warmup", type=int, default=8, help="steps before them")
    parser.add_argument("--threads", type=int, default=1, help="compute threads of each rank")
    parser.add_argument("--only", choices=("peers", "scaling"), help="one half alone")
    parser.add_argument("--json", help="also write the rows to this file")
    arguments = parser.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError:
        print("bench-peers: this Python has no torch: make bench-peers installs Debian's python3-torch", file=sys.stderr)
        return 2
    rows = []

    def show(row):
        rows.append(row)
        bar = "" if row["bar"] is None else f"  bar {row['bar']:.2f}  {'ok' if row['ratio'] >= row['bar'] else 'BELOW'}"
        spread = f"({row['lowest']:.2f} to {row['highest']:.2f})"
        print(f"{row['what']}: {row['other_ms']:.1f} / {row['convoy_ms']:.1f} ms = {row['ratio']:.2f} {spread}{bar}",
              flush=True)

    with tempfile.TemporaryDirectory(prefix="convoy-peers-") as folder:
        data = [arguments.convoy, "data", "synth", "cifar10", "--out", os.path.join(folder, "cifar")]
        subprocess.run(data + ["--samples", "2000", "--test-samples", "100"], check=True, stdout=subprocess.DEVNULL)
        if arguments.only != "scaling":
            for model, batch, least in PEER_BARS:
                show(compare_with_peer(arguments, folder, model, batch, least))
        if arguments.only != "peers":
            for model, least, least_same in SCALING_BARS:
                for row in measure_scaling(arguments, folder, model, least, least_same):
                    show(row)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0 if all(row["bar"] is None or row["ratio"] >= row["bar"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
