"""What kernel.py must compute, in plain PyTorch."""


def softmax(x):
    return x.float().softmax(-1).to(x.dtype)
