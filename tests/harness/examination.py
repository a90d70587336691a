"""The findings of `doctor` on a worker."""

from pathlib import Path
from typing import Any

from activities.installation.examine_installation import ExamineInstallationActivity
from activities.notifications.open_notifier import open_notifier
from lakehouse.catalog import BranchCatalog
from sluice.contracts.examination import ExamineInstallationInput, Finding
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog


def examined(folder: Path, catalog: BranchCatalog | None = None, /, **settings: Any) -> dict[str, Finding]:
    """Return the last finding of a worker for each part."""
    lake = {"warehouse": (folder / "lake").as_uri(), "sluice_home": folder, **settings}
    given = Settings.of(**lake)
    activity = ExamineInstallationActivity(given, catalog or MemoryCatalog(), {}, open_notifier(given.notifications))
    findings = run_activity(activity.examine_installation, ExamineInstallationInput()).findings
    return {finding.part: finding for finding in findings}
