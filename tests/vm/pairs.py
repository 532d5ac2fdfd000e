#!/usr/bin/env python3
"""Prints the predictions of whatif beside the recordings of tests/vm/pairs: pairs.py FOLDER SCHEDVIZ HALF, HALF being learning, judged or all.

An effect is the difference of the two settings with p < 0.05 (Mann-Whitney, two-sided, exact)."""
import glob
import json
import math
import re
import statistics
import subprocess
import sys

LOADS = ["forks", "server", "pipeline", "barriers", "one-each", "bound", "overload"]
# The number of the variant, the setting that is predicted from, the one that is predicted, the policy. A pair was judged where the numbers of load
# and variant have an odd sum; that was settled before any was recorded.
VARIANTS = [
    (0, "default-off", "default-random", "newidle=random"),
    (1, "default-off", "default-classic", "newidle"),
    (2, "12000-off", "12000-classic", "newidle"),
    (4, "default-classic", "default-random", "newidle=random"),
]
# Of a kernel that steals only these are judged. Their numbers are those under two caches; under one cache they are one less.
STEALING = [
    (1, "default-off", "default-off-steal", "steal=llc"),
    (2, "default-classic", "default-classic-steal", "steal=llc"),
]
# The greatest skill that is wanted.
METRICS = {"elapsed": 0.9, "violation": 0.7, "mean-wait": 0.7}


def p_of(a, b):
    """The share of all ways to divide the values whose rank sum is at least as far from its mean."""
    order = sorted(a + b)
    rank = {value: 2 * order.index(value) + order.count(value) + 1 for value in order}
    ways = {(0, 0): 1}
    for value in order:
        for (number, total), count in list(ways.items()):
            if number < len(a):
                key = (number + 1, total + rank[value])
                ways[key] = ways.get(key, 0) + count
    mean = len(a) * (len(order) + 1)
    far = abs(sum(rank[value] for value in a) - mean)
    of_all = sum(count for (number, total), count in ways.items() if number == len(a) and abs(total - mean) >= far)
    return of_all / math.comb(len(order), len(a))


def figures(run):
    recorded = run["recorded"]
    return {"elapsed": recorded["elapsed_ns"], "violation": recorded["violation_ns"], "mean-wait": recorded["waits"]["mean_ns"]}


def ask(schedviz, *words):
    return json.loads(subprocess.run([schedviz, "whatif", "-q", "--json", *words], stdout=subprocess.PIPE, check=False).stdout)


def cost(folder):
    """The time of a search of the smallest domain and of all, while balancing was on: the medians over the CPUs."""
    cpus = []
    for line in open(f"{folder}/costs", encoding="ascii"):
        name, nanoseconds = line.split()
        if name == "MC":
            cpus.append([])
        cpus[-1].append(int(nanoseconds))
    return "{}ns,{}ns".format(statistics.median_low(cpu[0] for cpu in cpus), statistics.median_low(sum(cpu) for cpu in cpus))


def main():
    folder, schedviz, half = sys.argv[1:4]
    effects, held, stated = [], 0, 0
    steals = bool(glob.glob(f"{folder}/*-steal.*.dat"))
    # The lists of the CPUs that share a cache with each.
    caches = set(re.findall(r"^\d+(?:-\d+)?$", open(f"{folder}/log", encoding="ascii").read(), re.MULTILINE))
    for at, before, after, policy in STEALING if steals else VARIANTS:
        at -= steals and len(caches) == 1
        for number, load in enumerate(LOADS):
            files = {setting: f"{folder}/{setting}.{load}.*.dat" for setting in (before, after)}
            if (number + at) % 2 != (half == "judged") and half != "all" or not all(map(glob.glob, files.values())):
                continue
            words = [f"--under={policy}", f"--newidle-cost={cost(folder)}"]
            pair = ask(schedviz, "--predict-from", files[before], "--measured", files[after], *words)
            sides = [pair["runs"], ask(schedviz, *sorted(glob.glob(files[after])), "--under=observed")["runs"]]
            print(f"{load}: {before} -> {after}, {len(sides[0])} and {len(sides[1])} runs")
            for row in pair["skill"]:
                metric = row["metric"]
                if metric not in METRICS:
                    continue
                p = p_of(*([figures(run)[metric] for run in side] for side in sides))
                three = [row[f"{which}_median"] / 1e6 for which in ("from", "predicted", "measured")]
                skill = row.get("skill")
                print(f"  {metric:10} {three[0]:9.2f} {three[1]:9.2f} {three[2]:9.2f} ms  p {p:.4f}  skill {skill or math.nan:6.2f}"
                      f"  held {row['held']:2}/{row['predictions']}  within {row['within_all']:2}/{row['measured']}")
                stated += row["predictions"]
                held += row["held"]
                if p < 0.05 and skill is not None:
                    effects.append((metric, skill, row["held"], row["predictions"]))
    for metric, most in METRICS.items():
        of = [effect for effect in effects if effect[0] == metric]
        if of:
            good = sum(skill < most for _, skill, _, _ in of)
            print(f"{metric}: {len(of)} effects, skill {statistics.median(skill for _, skill, _, _ in of):.2f} in the median, below {most} in {good}")
    if effects:
        in_effects = [sum(effect[at] for effect in effects) for at in (2, 3)]
        print(f"intervals that hold: {in_effects[0]} of {in_effects[1]} of effects, {held} of {stated} of all")


main()
