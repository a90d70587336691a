"""PyIceberg's properties for file access."""

from sluice.settings import Settings


def file_io_properties(settings: Settings) -> dict[str, str]:
    """Return the properties for PyIceberg's file access. Credentials come from the environment."""
    properties = {"s3.endpoint": settings.aws_endpoint_url_s3, "s3.region": settings.aws_region}
    return {key: value for key, value in properties.items() if value}
