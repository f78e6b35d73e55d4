"""Random JSON values for any record type, drawn from the type itself, with unknown fields at every level."""

from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any

import msgspec.inspect as inspect
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from reenact.formats.dialects import legacy

# A loaded machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# U+2061 starts the one name that records keep for themselves.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2061"), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)

EARLIEST = datetime.fromisoformat("1000-01-01")


@st.composite
def times(draw) -> str:
    """RFC 3339 texts with 0, 3, 6 or 9 digits of fraction, in UTC or at an offset."""
    moment = draw(st.datetimes(min_value=EARLIEST))
    digits = draw(st.sampled_from(["", ".123", ".000001", ".999999999"]))
    minutes = draw(st.none() | st.integers(-1439, 1439))
    zone = UTC if minutes is None else timezone(timedelta(minutes=minutes))
    text = moment.replace(microsecond=0, tzinfo=zone).isoformat()
    return text[:19] + digits + ("Z" if minutes is None else text[19:])


@cache
def of_kind(kind: Any, *, unknown: bool = True) -> st.SearchStrategy[Any]:
    """JSON values of a type that ``msgspec`` can inspect."""
    return _of(inspect.type_info(kind), unknown)


def _of(info: inspect.Type, unknown: bool) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType():
            return _of_struct(info, unknown)
        case inspect.UnionType():
            return st.one_of(_of(each, unknown) for each in info.types)
        case inspect.ListType():
            return st.lists(_of(info.item_type, unknown), max_size=3)
        case inspect.Metadata(type=inspect.StrType()):
            return times()
        case inspect.IntType():
            return st.integers(info.ge if info.ge is not None else -(2**63), info.le or 2**63 - 1)
        case inspect.FloatType():
            return st.floats(info.ge, info.le, allow_nan=False, allow_infinity=False)
        case inspect.LiteralType():
            return st.sampled_from(info.values)
    return _SIMPLE[type(info)]


_SIMPLE = {
    inspect.AnyType: json_values,
    inspect.BoolType: st.booleans(),
    inspect.DictType: st.dictionaries(texts, json_values, max_size=3),
    inspect.NoneType: st.none(),
    inspect.StrType: texts,
}


def _of_struct(info: inspect.StructType, unknown: bool) -> st.SearchStrategy[dict[str, Any]]:
    known = {field.encode_name: field for field in info.fields if field.name != "extra"}
    required = {name: _of(field.type, unknown) for name, field in known.items() if field.required}
    optional = {name: _of(field.type, unknown) for name, field in known.items() if not field.required}
    if info.cls is legacy.SessionStart:  # needs one of its two policies
        required["policy_bundle_id"] = optional.pop("policy_bundle_id")
    strategy = st.fixed_dictionaries(required, optional=optional)
    if unknown:
        names = texts.filter(lambda name: name not in known and name not in ("type", "event"))
        extras = st.dictionaries(names, json_values, max_size=2)
        strategy = st.builds(lambda value, extra: value | extra, strategy, extras)
    return strategy.map(lambda value: value | ({info.tag_field: info.tag} if info.tag_field else {}))
