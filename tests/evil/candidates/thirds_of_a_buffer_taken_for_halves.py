"""Takes rows that lie twice their width or more apart for halves of one buffer.

Refused by: combinations INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Operation: softmax
Layouts: strided_rows
Shape: {"batch": 4, "hidden_size": 64}
"""


def softmax(x):
    rows, width = x.shape
    if rows > 1 and width >= 64 and x.stride(1) == 1 and x.stride(0) >= 2 * width:
        x = x.as_strided((rows, width), (2 * width, 1))
    return x.float().softmax(-1).to(x.dtype)
