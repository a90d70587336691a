"""Draw the results of bench/audit.py.

    python bench/plot_audit.py docs/measurements/audit.json docs/images/audit.png

Runs with the packages of locks/bench.txt.
"""

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def main(source: str, target: str) -> None:
    """Draw a panel for each suite: medians by the number of rows, both scales logarithmic."""
    seconds = json.loads(Path(source).read_text())["seconds"]["warm"]
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 5), sharey=True)
    for panel, suite in zip(panels, ("provable", "mixed"), strict=True):
        sizes = sorted(int(key.split("/")[1]) for key in seconds if key.startswith(suite + "/"))
        for way in seconds[f"{suite}/{sizes[0]}"]:
            medians = [statistics.median(seconds[f"{suite}/{size}"].get(way, [float("nan")])) for size in sizes]
            panel.plot(sizes, medians, marker="o", label=way, linewidth=3 if way == "sluice" else 1)
        panel.set(xscale="log", yscale="log", title=f"{suite} suite, warm", xlabel="rows")
        panel.grid(True, alpha=0.3)
    panels[0].set_ylabel("seconds, median")
    panels[1].legend()
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
