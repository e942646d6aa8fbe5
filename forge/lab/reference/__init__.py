"""Operations of the user's own: a reference file that is foreign code, asked in a guest and never run on this side.

- `describe`: what the file is, from a guest that is asked once; parsed
- `answers`: the guest that runs the reference: outputs in the task's type and in fp64, weights, generated inputs
- `families`: how a tensor's values are distributed, and fresh ones like them
- `binding`: a frozen contract as an operation that can be judged by
- `infer`: from a file to a contract, or a refusal that says why
- `admission`: known wrong answers against it
- `trial`: whether they are refused, if need be by a narrower bound
- `locality`: which sizes its errors follow, and so how narrow that may be
- `gates`: what a candidate is asked
"""
