"""Draw the results of the measurements of whole runs.

    python bench/plot_runs.py docs/measurements docs/images/runs.png

Runs with the packages of locks/bench.txt.
"""

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def read(folder: Path, name: str) -> object:
    """Return the results of a measurement."""
    results: object = json.loads((folder / f"{name}.json").read_text())["results"]
    return results


def draw_runs(panel: object, results: list) -> None:
    """Draw each way's median as a multiple of the bare one's, by the number of rows."""
    results = [each for each in results if each.get("catalog", "nessie") == "nessie"]
    sizes = sorted({each["rows"] for each in results})
    ways = list(dict.fromkeys(each["way"] for each in results))
    medians = {
        (rows, way): statistics.median(e["seconds"] for e in results if (e["rows"], e["way"]) == (rows, way))
        for rows in sizes
        for way in ways
    }
    for number, way in enumerate(ways):
        heights = [medians[rows, way] / medians[rows, "bare"] for rows in sizes]
        positions = [index + number * 0.2 for index in range(len(sizes))]
        panel.bar(positions, heights, 0.2, label=way)
        for position, height, rows in zip(positions, heights, sizes, strict=True):
            panel.annotate(f"{medians[rows, way]:.1f} s", (position, height), ha="center", va="bottom", fontsize=7)
    panel.set_xticks([index + 0.3 for index in range(len(sizes))], [f"{rows:,} rows" for rows in sizes])
    panel.set(title="A whole command, against a bare spark-submit", ylabel="times the bare one", ylim=(0, 1.35))
    panel.legend(ncols=len(ways), loc="upper center")


def draw_growth(panel: object, results: dict) -> None:
    """Draw the median of a small run as its table and its catalog grow."""
    for what, measured in results.items():
        sizes = sorted(map(int, measured))
        label = {"references": "branches and commits"}.get(what, what)
        panel.plot(sizes, [statistics.median(measured[str(size)]) for size in sizes], marker="o", label=label)
    panel.set(xscale="log", title="A small warm run", ylabel="seconds, median", ylim=(0, None), xlabel="there before")
    panel.legend()


def draw_memory(panel: object, results: dict) -> None:
    """Draw the worker's memory as the number of runs grows."""
    sizes = sorted(map(int, results["memory"]))
    panel.plot(sizes, [results["memory"][str(size)] / 2**20 for size in sizes], marker="o")
    panel.set(title="The worker's memory", xlabel="runs", ylabel="MiB", ylim=(0, None))


def main(source: str, target: str) -> None:
    """Draw one panel for each measurement."""
    folder = Path(source)
    figure, panels = pyplot.subplots(1, 3, figsize=(16, 4.5), width_ratios=(2, 1, 1))
    draw_runs(panels[0], read(folder, "runs"))
    draw_growth(panels[1], read(folder, "growth"))
    draw_memory(panels[2], read(folder, "throughput"))
    for panel in panels:
        panel.grid(True, alpha=0.3)
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
