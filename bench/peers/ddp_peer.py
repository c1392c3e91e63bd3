"""Times training steps of a reference model in PyTorch's DistributedDataParallel on Gloo.

Started once for each rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment. Rank 0 prints one JSON
object: {"step_ms": {"median": ..., "p95": ...}, "torch": ..., "threads": ...}. A step is forward, backward with its
exchange of gradients, and the update; input lies in memory before the clock starts.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn


def make_mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(3072, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    )


def make_cnn():
    layers, channels = [], 3
    for index, width in enumerate((32, 32, 64, 64, 128, 128)):
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        if index % 2 == 1:
            layers.append(nn.MaxPool2d(2))
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 4 * 4, 10))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("mlp", "cnn"), required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples of a step over all ranks")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(1)
    model = make_mlp() if arguments.model == "mlp" else make_cnn()
    if ranks > 1:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    # What the recipes beside this file ask for; `foreach` does not exist on processors' tensors in fewer operations.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    rank = int(os.environ.get("RANK", "0"))
    generator = torch.Generator().manual_seed(rank)
    batches = [
        (
            torch.randn(arguments.batch // ranks, 3, 32, 32, generator=generator),
            torch.randint(0, 10, (arguments.batch // ranks,), generator=generator),
        )
        for _ in range(4)
    ]
    times = []
    for step in range(arguments.warmup + arguments.steps):
        begin = time.perf_counter()
        inputs, classes = batches[step % len(batches)]
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(inputs), classes).backward()
        optimizer.step()
        times.append((time.perf_counter() - begin) * 1e3)
    measured = sorted(times[arguments.warmup :])
    if rank == 0:
        p95 = measured[min(len(measured) - 1, int(0.95 * len(measured)))]
        found = {"step_ms": {"median": statistics.median(measured), "p95": p95}}
        print(json.dumps(found | {"torch": torch.__version__, "threads": torch.get_num_threads()}))
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
