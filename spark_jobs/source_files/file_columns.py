"""Compare the columns and fields of files with those of a table or a schema."""

from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion
from sluice.sizes import format_list
from spark_jobs.source_files.folder_columns import columns_of_folders
from spark_jobs.values.schemas import field_paths, lost_fields

_SHOWN = 5
"""Maximum number of names in a message about missing fields."""


Path = tuple[str, ...]
"""Names of the fields from a column to a nested field, with `LIST` between a list and a field of its elements."""
LIST = "[]"


def shown_path(path: Path) -> str:
    """Return the path of a field as messages show it."""
    return ".".join(name for name in path if name != LIST)


class NamesDifferInCase(InvalidInput):
    """The names of two fields of the files differ in capital letters alone."""

    def __init__(self, first: Path, second: Path) -> None:
        self.paths = (first, second)
        super().__init__(
            f"the files contain the fields {shown_path(first)} and {shown_path(second)}, which differ in capital "
            "letters alone: rename one of them in the files"
        )


def check_names(given: Sequence[str], table: str, wanted: Sequence[str]) -> None:
    """Check that the input and the table have the same column names, in any order.

    Raises:
        InvalidInput: a column is missing, unknown, or given twice.
    """
    have, want = {name.lower(): name for name in given}, {name.lower(): name for name in wanted}
    extra = [name for key, name in have.items() if key not in want]
    missing = [name for key, name in want.items() if key not in have]
    if not extra and not missing and len(have) == len(given):
        return
    problems = [f"{table} has no column {name!r}{suggestion(name, missing)}" for name in extra]
    problems += [f"the input has no column {name!r}" for name in missing]
    if len(have) < len(given):
        problems.append("a column occurs twice")
    raise InvalidInput(f"the columns of the input are not those of {table}: {'; '.join(problems)}")


def check_fields(schemas: Sequence[StructType], wanted: StructType, spec: IngestSpec) -> None:
    """Check that files contain no field that reading them with the wanted schema would drop.

    Raises:
        InvalidInput: a field would be dropped.
    """
    source, folders = spec.write.source, columns_of_folders(spec)
    lost = {name for schema in schemas for name in lost_fields(schema, wanted) if name not in folders}
    if lost:
        owner = "source.schema" if source and source.schema_ else next(iter(spec.tables))
        raise InvalidInput(
            f"the files contain fields that {owner} does not have: {', '.join(sorted(lost))}. Add them to {owner}, or "
            "leave them out by a transform"
        )


def in_order_of(names: Sequence[str], wanted: StructType, spec: IngestSpec) -> StructType:
    """Return the wanted fields in the order of the files."""
    check_names(names, next(iter(spec.tables)), wanted.names)
    by_name = {field.name.lower(): field for field in wanted.fields}
    return StructType([by_name[name.lower()] for name in names])


def check_merged_fields(read: Sequence[StructType], wanted: StructType, table: str) -> None:
    """Check that no nested field is missing in all files, since a merge would set it to NULL.

    Raises:
        InvalidInput: a nested field is in no file.
    """
    nested = ({name for name in lost_fields(wanted, schema) if "." in name} for schema in read)
    if missing := set.intersection(*nested):
        raise InvalidInput(
            f"the files have no field {', '.join(sorted(missing))}, and a merge would set it to NULL in {table}: add "
            "it to the records, or take its value from the table by a transform"
        )


def check_merged_files(spec: IngestSpec, target: StructType) -> None:
    """Check that Parquet and ORC files have all columns and fields of the table.

    A merge would set the missing ones to NULL, also in rows of the table.

    Raises:
        InvalidInput: a file lacks what other files have.
    """
    of_table = {path.lower() for path in field_paths(target)}
    for each in spec.missing_fields:
        if names := [path for path in each.fields if path.lower() in of_table]:
            raise InvalidInput(
                f"{each.file} has no column or field {format_list(names, _SHOWN)}, and a merge would set it to NULL in "
                f"{next(iter(spec.tables))}: write it into the file, or state `transform: SELECT * FROM source` if "
                "NULL is right"
            )


def named_as_in_files(wanted: StructType, read: Sequence[StructType]) -> StructType:
    """Return a schema with the names of fields as in the files, since Spark's JSON reader is case-sensitive.

    Raises:
        NamesDifferInCase: the names of two fields of the files differ in capital letters alone.
    """
    named = _named(wanted, read, ())
    assert isinstance(named, StructType)
    return named


def _named(wanted: DataType, read: Sequence[DataType], path: Path) -> DataType:
    match wanted:
        case StructType():
            inner = [field for each in read if isinstance(each, StructType) for field in each]
            names: dict[str, str] = {}
            for field in inner:
                if (other := names.setdefault(field.name.lower(), field.name)) != field.name:
                    raise NamesDifferInCase((*path, other), (*path, field.name))
            fields = []
            for field in wanted:
                name = names.get(field.name.lower(), field.name)
                below = [each.dataType for each in inner if each.name == name]
                type = _named(field.dataType, below, (*path, name))
                fields.append(StructField(name, type, field.nullable, field.metadata))
            return StructType(fields)
        case ArrayType():
            elements = [each.elementType for each in read if isinstance(each, ArrayType)]
            return ArrayType(_named(wanted.elementType, elements, (*path, LIST)), wanted.containsNull)
        case MapType():  # JSON has no maps, so Spark inferred a field for each key
            values = [field.dataType for each in read if isinstance(each, StructType) for field in each]
            return MapType(wanted.keyType, _named(wanted.valueType, values, (*path, LIST)), wanted.valueContainsNull)
    return wanted
