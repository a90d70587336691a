"""A fake catalog that only returns the branch and hash that a job is bound to."""

from collections.abc import Iterable
from pathlib import Path


class FakeCatalog:
    """A fake catalog that only returns the branch and hash that a job is bound to."""

    main = "main"

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        return {spark_catalog: f"{branch}@{at}"}

    def explain_absence(self, _: Iterable[str]) -> str | None:
        return None

    def explain_refused_write(self, _: Iterable[str]) -> str | None:
        return None
