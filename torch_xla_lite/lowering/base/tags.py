"""The kinds of arguments in the words of a call (csrc/ops/words.h).

[Tag.TENSOR, Tag.INT_LIST.head(2), 0, 1]     # a tensor, and the list [0, 1]
"""

import enum


class Tag(enum.IntEnum):
    """What a head word, `tag | payload << 8`, is the head of."""

    NONE = 0
    TENSOR = 1
    BOOL = 2
    INT = 3
    DOUBLE = 4
    COMPLEX = 5
    STRING = 6
    LIST = 7
    SCALAR = 8
    DEVICE = 9
    INT_LIST = 10
    DOUBLE_LIST = 11
    BOOL_LIST = 12

    def head(self, payload: int) -> int:
        """The head word with a payload, such as the length of a list."""
        return self | payload << 8


# In the payload of a SCALAR, which is a dtype: a Python number in the place of a tensor.
WRAPPED_NUMBER = 1 << 7
