// A bill of bytes: what one model, its scales, its KV caches and a reserve take, on how many GPUs, and how fast it can be.
import { deploy, gpusNeeded, weightBytes } from "../shared/arithmetic.js";

/** Bytes; `reserve` is a share of each GPU's memory kept free for activations and the rest. */
export function bill(
  model,
  gpu,
  { weight_bits: bits, group, kv_bits: kvBits, context, sequences, reserve, n_gpus: n },
) {
  const here = deploy(model, gpu, { bits, group, kvBits, n });
  const payload = weightBytes(model.params, bits);
  const kv = sequences * context * here.kv;
  const usable = gpu.memory * (1 - reserve / 100);
  const need = here.weights + kv;
  const needed = gpusNeeded(need, usable);
  const step = here.step(sequences, context);
  const room = usable * n - here.weights;
  return {
    payload,
    scales: here.weights - payload,
    kvPerToken: here.kv,
    kv,
    reserve: gpu.memory * n - usable * n,
    need,
    total: gpu.memory * n,
    needed, // GPUs
    fits: need <= usable * n,
    most: room < 0 ? 0 : Math.floor(room / (here.kv * context)), // sequences
    step: step.seconds,
    rate: step.rate,
    limit: step.limit,
  };
}
