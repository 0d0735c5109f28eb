// The bounds of reference_impl/bounds/arithmetic.py and deployment.py, the same formulas: a test compares them over a grid.
// Seconds, bytes, FLOPs. `gpu` {peak, bandwidth, memory}, `model` {params, layers, heads, kvHeads, headDim}.

export const ridge = (gpu) => gpu.peak / gpu.bandwidth;

export const bitsPerWeight = (bits, group, scaleBits = 16) => (group ? bits + scaleBits / group : bits);

export function weightBytes(params, bits, group = 0, scaleBits = 16) {
  return (params * bits + (group ? Math.ceil(params / group) * scaleBits : 0)) / 8;
}

export const kvBytesPerToken = (model, kvBits = 16) =>
  Math.trunc(2 * model.layers * model.kvHeads * model.headDim * (kvBits / 8));

/** One model on `n` GPUs of a kind; weights of `bits` with a 16-bit scale per `group` (0: none). */
export function deploy(model, gpu, { bits = 16, group = 0, kvBits = 16, n = 1 } = {}) {
  const weights = weightBytes(model.params, bits, group);
  const kv = kvBytesPerToken(model, kvBits);
  const attention = 4 * model.layers * model.heads * model.headDim; // FLOPs per new token and token of context
  const flops = (context) => 2 * model.params + context * attention;
  const used = (batch, context) => weights + batch * context * kv;
  const memory = gpu.memory * n;

  /** Linear layers and attention follow one another, and each takes as long as its bytes or its FLOPs. */
  function step(batch, context, newTokens = 1) {
    const rows = batch * newTokens;
    const linear = operators(weights, 2 * model.params * rows);
    const attending = operators(batch * context * kv, rows * context * attention);
    const seconds = linear.seconds + attending.seconds;
    const memorySeconds = linear.memorySeconds + attending.memorySeconds;
    const computeSeconds = linear.computeSeconds + attending.computeSeconds;
    const limit = memorySeconds >= computeSeconds ? "bandwidth" : "arithmetic"; // of the step as a whole
    return {
      linearSeconds: linear.seconds,
      attentionSeconds: attending.seconds,
      memorySeconds,
      computeSeconds,
      seconds,
      rate: batch / seconds,
      limit,
    };
  }

  function operators(bytes, flops) {
    const memorySeconds = bytes / (gpu.bandwidth * n);
    const computeSeconds = flops / (gpu.peak * n);
    return { memorySeconds, computeSeconds, seconds: Math.max(memorySeconds, computeSeconds) };
  }

  return {
    weights,
    kv,
    attention,
    memory,
    used,
    step,
    operators,
    flops,
    fits: weights <= memory,
    intensity: (batch, context) => (batch * flops(context)) / used(batch, context),
    /** The limit of the intensity as the batch grows. */
    limitIntensity: (context) => flops(context) / (context * kv),
    limit: (batch, context) => (used(batch, context) > memory ? "capacity" : step(batch, context).limit),
    maxSequences: (context) => (weights > memory ? 0 : Math.floor((memory - weights) / (kv * context))),
    /** The smallest batch at which the linear layers are compute-bound. */
    computeBoundBatch: Math.ceil((ridge(gpu) * weights) / (2 * model.params)),
    /** The smallest batch whose step as a whole computes longer than it reads; null if none does. */
    crossingBatch(context) {
      const surplus = flops(context) - ridge(gpu) * context * kv;
      return surplus > 0 ? Math.ceil((ridge(gpu) * weights) / surplus) : null;
    },
    /** Tokens of context from which on no step as a whole computes longer than it reads. */
    crossingContext() {
      const hidden = ridge(gpu) * kv - attention;
      return hidden > 0 ? (2 * model.params) / hidden : Infinity;
    },
    prefillFlops: (tokens) => 2 * model.params * tokens + attention * ((tokens * (tokens + 1)) / 2),
    verifyCost: (batch, context, k) => step(batch, context, k + 1).seconds / step(batch, context).seconds,
  };
}

export const gpusNeeded = (size, memory) => Math.ceil(size / memory);

export const expectedTokens = (alpha, k) => (alpha === 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha));

export const speedup = (alpha, k, cost, verify = 1) => expectedTokens(alpha, k) / (k * cost + verify);

/** The k from 0 to maxK with the highest speed-up, the smallest on a tie; `verify(k)` in plain target passes. */
export function bestDraftLength(alpha, cost, maxK, verify = () => 1) {
  let best = 0;
  for (let k = 1; k <= maxK; k++)
    if (speedup(alpha, k, cost, verify(k)) > speedup(alpha, best, cost, verify(best))) best = k;
  return best;
}
