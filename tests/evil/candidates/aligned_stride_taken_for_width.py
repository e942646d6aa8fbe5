"""Takes rows for packed where their distance and their width are multiples of four.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I8
Operation: softmax
Layouts: strided_rows
Shape: {"batch": 4, "hidden_size": 256}
"""


def softmax(x):
    rows, width = x.shape
    if x.numel() and rows > 1 and width % 4 == 0 and x.stride(0) % 4 == 0 and x.stride(0) != width:
        x = x.as_strided((rows, width), (width, 1))
    return x.float().softmax(-1).to(x.dtype)
