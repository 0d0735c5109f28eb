"""Times added up one by one, pure Python."""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = weight_bytes / bandwidth
    for _ in range(batch):
        seconds += context * kv_bytes_per_token / bandwidth
    return seconds, batch / seconds
