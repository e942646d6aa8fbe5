"""Values that many readers share. Their fields are set once, when they are made."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class Frozen:
    """A value whose fields can't be set, changed or removed after it was made."""

    __slots__ = ()

    def _fill(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        names: tuple[str, ...] = self.__slots__
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names if not name.startswith("_"))
        return f"{type(self).__name__}({fields})"

    def __setattr__(self, name: str, value: object) -> "NoReturn":
        raise AttributeError(f"{type(self).__name__} is shared and can't be changed: {name!r} stays")

    def __delattr__(self, name: str) -> "NoReturn":
        raise AttributeError(f"{type(self).__name__} is shared and can't be changed: {name!r} stays")
