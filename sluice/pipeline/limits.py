"""Limits of a pipeline file: it is read in seconds, and its run fits into Temporal's messages."""

from typing import Any

from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.nodes import Node

MAX_FILE_BYTES = 1_000_000
MAX_CHECKS = 5_000
"""Maximum number of checks of a pipeline. A request with 5,000 takes a megabyte, and so do their verdicts; Temporal
accepts two in one payload."""
MAX_PIPELINE_BYTES = 1_400_000
"""Maximum size of a pipeline in Temporal's messages, in bytes. They contain little else."""
MAX_NODES = 200_000
MAX_DEPTH = 50


class BoundedComposer(Composer):
    """A composer of YAML that refuses values nested deeper than those of any pipeline."""

    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose one node.

        Raises:
            ComposerError: the node is nested too deep.
        """
        if self.depth > MAX_DEPTH:
            problem = f"it nests more than {MAX_DEPTH} levels deep, which is the limit"
            raise ComposerError(None, None, problem, self.parser.peek_event().start_mark)
        self.depth += 1
        try:
            node: Node | None = super().compose_node(parent, index)
            return node
        finally:
            self.depth -= 1


def count_nodes(tree: Any) -> int:
    """Return the number of values in a tree after its aliases are replaced.

    Aliases share one value, so that a short file can stand for more values than fit into memory.
    """
    known: dict[int, int] = {}

    def count(node: Any) -> int:
        if not isinstance(node, dict | list):
            return 1
        if id(node) not in known:
            known[id(node)] = MAX_NODES + 1  # until it is counted: a value that contains itself has no end
            values = node.values() if isinstance(node, dict) else node
            known[id(node)] = 1 + sum(map(count, values))
        return known[id(node)]

    return count(tree)
