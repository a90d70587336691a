"""A pipeline from a few environment variables instead of a pipeline file."""

from collections.abc import Mapping

from pydantic import ValidationError

from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.validation_errors import plain_message

_VARIABLES = ("TABLE_NAME", "NAMESPACE", "BRANCH_NAME", "S3_PATH", "NOT_NULL_COLUMNS", "SOURCE_BUCKET")
_NEEDED = ("TABLE_NAME", "NAMESPACE", "S3_PATH")
_VARIABLES_OF = {"tables": "NAMESPACE and TABLE_NAME", "branch": "BRANCH_NAME", "name": "NAMESPACE and TABLE_NAME",
           "write": "S3_PATH"}  # fmt: skip


def pipeline_from_environment(environment: Mapping[str, str]) -> Pipeline:
    """Return the pipeline that loads S3_PATH into NAMESPACE.TABLE_NAME, with a null check on NOT_NULL_COLUMNS.

    A relative S3_PATH is below the bucket SOURCE_BUCKET, if that is set. A path that begins with `./` is local.

    Raises:
        InvalidPipeline: a variable is missing, or its value is not valid.
    """
    given = {name: environment.get(name, "").strip() for name in _VARIABLES}
    missing = [name for name in _NEEDED if not given[name]]
    if missing:
        raise InvalidPipeline(
            f"there is no pipeline file on the command line and no pipeline in the environment: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set (see .env.example). Name a pipeline file; `--help` shows "
            "the commands"
        )
    columns = [column.strip() for column in given["NOT_NULL_COLUMNS"].split(",") if column.strip()]
    table = f"{given['NAMESPACE']}.{given['TABLE_NAME']}"
    stated = {
        "name": table.replace(".", "-"),
        "branch": given["BRANCH_NAME"] or None,
        "write": {"source": {"path": _source_path(given["S3_PATH"], given["SOURCE_BUCKET"])}},
        "tables": {table: {"checks": [{"check": "not_null", "column": column} for column in columns]}},
    }
    try:
        pipeline = Pipeline.model_validate(stated)
    except ValidationError as error:
        problems = {
            f"{_VARIABLES_OF.get(str(e['loc'][0]), e['loc'][0])}: {plain_message(e)}"
            for e in error.errors()
            if e["loc"]
        }
        raise InvalidPipeline("\n".join(sorted(problems))) from error
    if pipeline.write.source:
        pipeline.write.source.reader_format()
    return pipeline


def _source_path(path: str, bucket: str) -> str:
    """Return the path of the files. A relative path is below the bucket, if there is one."""
    if not bucket or "://" in path or path.startswith(("/", "~", ".", "file:")):
        return path
    return f"s3://{bucket.removeprefix('s3://').strip('/')}/{path}"
