from forge.lab.inputs.draw import draw
from forge.operations import find_operation
from kernel import matmul_fp8

operation = find_operation('matmul_fp8')
inputs = draw(operation, {'k': 639, 'm': 99, 'n': 5}, 'bf16', 'equal_operands', seed=28649230831146)
got = matmul_fp8(*inputs, *())
print(got[(3, 2)], 'expected', 0.0007145032154564334)
