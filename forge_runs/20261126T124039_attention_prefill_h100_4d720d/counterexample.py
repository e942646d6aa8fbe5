from forge.lab.inputs.draw import draw
from forge.operations import find_operation
from kernel import attention_prefill

operation = find_operation('attention_prefill')
inputs = draw(operation, {'group': 4, 'head_dim': 128, 'kv_heads': 8, 'kv_len': 2048, 'tokens': 2048}, 'bf16', 'rows_apart', seed=277227662313078)
got = attention_prefill(*inputs, *())
print(got[(139, 0, 0, 0)], 'expected', -2.390625)
