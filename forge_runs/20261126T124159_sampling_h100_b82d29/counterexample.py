import torch
from kernel import sampling

logits = torch.tensor([0, -0.0, -0.0, -0.0, -0.0], dtype=torch.bfloat16).reshape([1, 5])
temperature = torch.tensor([22.83959197998047], dtype=torch.float32).reshape([1])
top_k = torch.tensor([10], dtype=torch.int32).reshape([1])
top_p = torch.tensor([0], dtype=torch.float32).reshape([1])
u = torch.tensor([0.9970088005065918], dtype=torch.float32).reshape([1])
got = sampling(logits, temperature, top_k, top_p, u)
print(got[(0,)].item(), 'expected', '4.0', 'within', '0.0')
