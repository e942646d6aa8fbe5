from forge.lab.inputs.draw import draw
from forge.operations import find_operation
from kernel import matmul_fp8

operation = find_operation('matmul_fp8')
inputs = draw(operation, {'k': 523, 'm': 73, 'n': 5}, 'bf16', 'large', seed=204299648717810)
got = matmul_fp8(*inputs, *())
print(got[(50, 0)], 'expected', -186.94124979825574)
