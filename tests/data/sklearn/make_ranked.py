#!/usr/bin/env python3
"""Writes ranked.json: rows of (score, class), and what scikit-learn makes of them, with every digit.

Run by hand with Debian's python3-sklearn; the tests only read the file. Beside scikit-learn's doubles, which are rounded at
every operation, stand the same definitions computed as fractions and rounded once (`exact`).
"""
import csv
import json
import os
import warnings
from fractions import Fraction

import numpy
import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")


def rows_of(seed, count, share, digits, signal):
    """Pseudo-random rows from a linear congruential generator (Knuth's MMIX constants), equal everywhere."""
    state = seed
    rows = []

    def uniform():
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 11) / 2.0**53

    for _ in range(count):
        positive = uniform() < share
        score = (1 - signal) * uniform() + (signal * uniform() if positive else 0.0)
        rows.append((round(score, digits) if digits else score, int(positive)))
    return rows


def counts_by_threshold(rows):
    """Cumulative (threshold, true positives, false positives), highest threshold first."""
    steps = []
    tp = fp = 0
    ordered = sorted(rows, key=lambda row: -row[0])
    for i, (score, positive) in enumerate(ordered):
        tp += positive
        fp += 1 - positive
        if i + 1 == len(ordered) or ordered[i + 1][0] != score:
            steps.append((score, tp, fp))
    return steps


def exact_values(rows, threshold):
    steps = counts_by_threshold(rows)
    positives, negatives = steps[-1][1], steps[-1][2]
    area = Fraction(0)
    average = Fraction(0)
    before = (0, 0)
    for _, tp, fp in steps:
        if positives and negatives:
            area += Fraction((fp - before[1]) * (tp + before[0]), 2 * positives * negatives)
        if positives:
            average += Fraction(tp - before[0], positives) * Fraction(tp, tp + fp)
        before = (tp, fp)
    tp = sum(1 for score, positive in rows if positive and score >= threshold)
    predicted = sum(1 for score, _ in rows if score >= threshold)
    best = max(steps, key=lambda step: (Fraction(2 * step[1], step[1] + step[2] + positives or 1), step[0]))
    ratio = lambda a, b: float(Fraction(a, b)) if b else 0.0
    return {
        "roc_auc": float(area) if positives and negatives else None,
        "pr_auc": float(average),
        "precision": ratio(tp, predicted),
        "recall": ratio(tp, positives),
        "f1": ratio(2 * tp, predicted + positives),
        "best_f1_threshold": best[0] if positives else None,
    }


def sklearn_values(rows, threshold):
    scores = numpy.array([row[0] for row in rows])
    labels = numpy.array([row[1] for row in rows])
    predicted = (scores >= threshold).astype(int)
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        labels, predicted, average="binary", zero_division=0
    )
    both = len(set(labels.tolist())) == 2
    values = {
        "roc_auc": float(metrics.roc_auc_score(labels, scores)) if both else None,  # scikit-learn raises ValueError
        "pr_auc": float(metrics.average_precision_score(labels, scores)),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
    }
    return values


def curves(rows):
    scores = numpy.array([row[0] for row in rows])
    labels = numpy.array([row[1] for row in rows])
    fpr, tpr, _ = metrics.roc_curve(labels, scores, drop_intermediate=False)
    precision, recall, _ = metrics.precision_recall_curve(labels, scores)
    return {
        "roc": [[float(x), float(y)] for x, y in zip(fpr, tpr)],
        "pr": [[float(x), float(y)] for x, y in zip(recall[::-1], precision[::-1])],
    }


def rows_of_run(name):
    """The test part of one run of examples/recipes/bank.toml on a synthetic table: its predictions.csv."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), newline="") as file:
        return [(float(row["score"]), int(row["truth"] == "yes")) for row in csv.DictReader(file)]


CASES = [
    ("two_ranks", [(0.9, 1), (0.8, 0), (0.3, 1), (0.2, 0)], 0.5),
    ("f1_by_counts", [(0.9, 1), (0.8, 1), (0.7, 0), (0.6, 0), (0.1, 1)], 0.5),
    ("ties", [(0.5, 1), (0.5, 0), (0.5, 0), (0.7, 1), (0.7, 0), (0.2, 0), (0.2, 1), (0.9, 1)], 0.5),
    ("all_tied", [(0.5, 1), (0.5, 0), (0.5, 0)], 0.5),
    ("zeros_of_both_signs", [(-0.0, 1), (0.0, 0), (1.0, 1), (-1.0, 0)], 0.0),
    ("only_positive", [(0.1, 1), (0.9, 1), (0.4, 1)], 0.5),
    ("only_negative", [(0.1, 0), (0.9, 0), (0.4, 0)], 0.5),
    ("one_sample", [(0.3, 1)], 0.5),
    ("separated", [(0.9, 1), (0.8, 1), (0.2, 0), (0.1, 0)], 0.5),
    ("reversed", [(0.1, 1), (0.2, 1), (0.8, 0), (0.9, 0)], 0.5),
    ("nothing_predicted", [(0.1, 1), (0.2, 0), (0.3, 1)], 0.5),
    ("thousand_with_ties", rows_of(1, 1000, 0.11, 2, 0.3), 0.5),
    ("thousand_continuous", rows_of(2, 1000, 0.11, 0, 0.3), 0.5),
    ("thousand_balanced", rows_of(3, 1000, 0.5, 3, 0.2), 0.6),
    ("thousand_logits", [(10 * score - 5, label) for score, label in rows_of(4, 1000, 0.3, 0, 0.4)], 0.0),
    ("bank_run", rows_of_run("bank_predictions.csv"), 0.7615353744944273),
]


def main():
    cases = []
    for name, rows, threshold in CASES:
        case = {
            "name": name,
            "threshold": threshold,
            "sklearn": sklearn_values(rows, threshold),
            "exact": exact_values(rows, threshold),
        }
        if len(rows) < 20 and len({label for _, label in rows}) == 2:
            case["curves"] = curves(rows)
        case["scores"] = [row[0] for row in rows]
        case["labels"] = "".join(str(row[1]) for row in rows)
        cases.append(case)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranked.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"made_by": "tests/data/sklearn/make_ranked.py",\n')
        file.write(f' "scikit_learn": "{sklearn.__version__}", "numpy": "{numpy.__version__}",\n "cases": [\n')
        file.write(",\n".join(json.dumps(case) for case in cases))
        file.write("\n]}\n")


main()
