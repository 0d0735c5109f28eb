"""PyTorch's own attention, tensors returned"""

import torch
import torch.nn.functional as F


def attend_with_cache(q, k, v, cache):
    q, k, v = (torch.as_tensor(part) for part in (q, k, v))
    K = torch.cat([torch.as_tensor(cache[0]), k.unsqueeze(1)], dim=1)
    V = torch.cat([torch.as_tensor(cache[1]), v.unsqueeze(1)], dim=1)
    group = q.shape[0] // k.shape[0]
    keys, values = K.repeat_interleave(group, dim=0), V.repeat_interleave(group, dim=0)
    out = F.scaled_dot_product_attention(q.unsqueeze(1), keys, values)
    return out.squeeze(1), (K, V)
