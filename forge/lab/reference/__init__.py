"""Handles a user's own operation: a reference file that is foreign code, run in a guest and never on the host's side.

- `describe`: what the file is, from a guest that runs it once; parsed
- `answers`: the guest that runs the reference: outputs in the task's type and in fp64, weights, generated inputs
- `families`: how a tensor's values are distributed
- `family_values`: fresh values like them, by kind
- `faint`: operands so small that an eps decides, and what a kernel may err there
- `usual_kinds`: which kinds of values change something
- `binding`: a frozen contract as an operation that can be judged by
- `infer`: from a file to a contract, or a refusal with the reason
- `admission`: known wrong answers, tried against it
- `trial`: whether they are refused, with a narrower bound if necessary
- `locality`: which sizes its errors follow, and so how narrow a bound may be
"""
