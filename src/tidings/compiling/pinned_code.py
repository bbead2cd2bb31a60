"""What numba makes of a `Pinned`: a type of its own, an address, and the instruction that loads what lies there."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.typing.typeof import typeof
from numba.extending import NativeValue, intrinsic, register_model, unbox


class PinnedType(types.Type):  # type: ignore[misc]
    def __init__(self, inner: Any) -> None:
        self.inner = inner
        super().__init__(name=f"Pinned({inner})")


@register_model(PinnedType)
class PinnedModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(8).as_pointer())


@unbox(PinnedType)  # type: ignore[untyped-decorator]
def _address(kind: Any, pinned: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(pinned, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


def type_of(value: tuple[Any, ...]) -> PinnedType:
    return PinnedType(typeof(value))


def _opened(typing_context: Any, pinned: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lies = context.get_value_type(signature.return_type).as_pointer()
        return builder.load(builder.bitcast(arguments[0], lies))

    return pinned.inner(pinned), generate


opened = intrinsic(_opened)
