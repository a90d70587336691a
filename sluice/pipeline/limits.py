"""The limits of a pipeline file, so that it is read in seconds and its run fits into Temporal's messages."""

from typing import Any

from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.nodes import Node

MAX_FILE_BYTES = 1_000_000
MAX_CHECKS = 5_000
"""A request with so many checks takes a megabyte, and so do their verdicts; Temporal takes two in one payload."""
MAX_PIPELINE_BYTES = 1_400_000
"""The size of a pipeline in Temporal's messages, which hold little beside it."""
MAX_NODES = 200_000
MAX_DEPTH = 50


class BoundedComposer(Composer):
    """Reads YAML, and refuses what nests deeper than any pipeline."""

    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose one node.

        Raises:
            ComposerError: it is too deep.
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
    """Return how many values a tree has with its aliases replaced.

    Aliases share their value, so that a short file can stand for more values than fit into memory.
    """
    known: dict[int, int] = {}

    def count(node: Any) -> int:
        if not isinstance(node, dict | list):
            return 1
        if id(node) not in known:
            known[id(node)] = MAX_NODES + 1  # until it is counted: a value that holds itself has no end
            values = node.values() if isinstance(node, dict) else node
            known[id(node)] = 1 + sum(map(count, values))
        return known[id(node)]

    return count(tree)
