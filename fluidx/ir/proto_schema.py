"""The messages of a saved program, described at run time.

Field numbers and types were found by looking at saved models and at what the reference
writes for programs with one of everything; `tests/golden/proto` keeps those bytes. The
field names are ours: they do not stand in the bytes. Enumerations are plain numbers
here, and strings are bytes, so that a wrong one gives our error and not protobuf's.

Not seen, but inferred: BOOLEANS (kind 7 in field 11), which no op of the reference has.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

__all__ = ["messages"]

# message -> "number name type", type* for a repeated field
_MESSAGES = {
    "Version": ["1 version int64"],
    "Attribute": [
        "1 name bytes",
        "2 kind int32",
        "3 i int32",
        "4 f float",
        "5 s bytes",
        "6 ints int32*",
        "7 floats float*",
        "8 strings bytes*",
        "10 b bool",
        "11 bools bool*",
        "12 block int32",
        "13 l int64",
        "14 blocks int32*",
        "15 longs int64*",
    ],
    "Slot": ["1 name bytes", "2 arguments bytes*"],
    "Operator": [
        "1 inputs Slot*",
        "2 outputs Slot*",
        "3 type bytes",
        "4 attrs Attribute*",
        "5 is_target bool",
    ],
    "Tensor": ["1 dtype int32", "2 dims int64*"],
    "LoDTensor": ["1 tensor Tensor", "2 lod_level int32"],
    "Reader": ["1 tensors LoDTensor*"],
    "Kind": [
        "1 kind int32",
        "2 selected_rows Tensor",
        "3 lod_tensor LoDTensor",
        "4 tensor_array LoDTensor",
        "5 reader Reader",
    ],
    "Variable": [
        "1 name bytes",
        "2 type Kind",
        "3 persistable bool",
        "4 need_check_feed bool",
    ],
    "Block": [
        "1 idx int32",
        "2 parent_idx int32",
        "3 vars Variable*",
        "4 ops Operator*",
        "5 forward_block_idx int32",
    ],
    # op_versions: a list of ops and since when they are as they are, left unread
    "Program": ["1 blocks Block*", "3 op_versions bytes", "4 version Version"],
}


@cache
def messages() -> Any:
    """The message classes by name; protobuf is imported here and not before."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    package = "fluidx"
    file = descriptor_pb2.FileDescriptorProto(
        name="fluidx/program.proto", package=package, syntax="proto2"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for line in fields:
            _add_field(message, package, *line.split())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return SimpleNamespace(
        **{
            name: message_factory.GetMessageClass(
                pool.FindMessageTypeByName(f"{package}.{name}")
            )
            for name in _MESSAGES
        }
    )


def _add_field(message: Any, package: str, number: str, name: str, type: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    scalar = type.removesuffix("*")
    field = message.field.add(name=name, number=int(number))
    field.label = Field.LABEL_REPEATED if type[-1] == "*" else Field.LABEL_OPTIONAL
    if scalar in _MESSAGES:
        field.type = Field.TYPE_MESSAGE
        field.type_name = f".{package}.{scalar}"
    else:
        field.type = Field.Type.Value(f"TYPE_{scalar.upper()}")
