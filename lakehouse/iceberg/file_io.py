"""PyIceberg's properties for file access."""

from sluice.setting_groups import StorageSettings


def file_io_properties(settings: StorageSettings) -> dict[str, str]:
    """Return the properties for PyIceberg's file access. Credentials come from the environment."""
    properties = {"s3.endpoint": settings.aws_endpoint_url_s3, "s3.region": settings.aws_region}
    return {key: value for key, value in properties.items() if value}
