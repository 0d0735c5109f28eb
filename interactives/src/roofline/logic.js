// Where a decode step and a prefill stand under the roof: FLOPs per byte, and what the GPU reaches there at best.
import { deploy, ridge } from "../shared/arithmetic.js";

export const attainable = (gpu, intensity) => Math.min(gpu.peak, gpu.bandwidth * intensity);

/** The decode step of `batch` sequences and the prefill of one prompt. */
export function roofline(model, gpu, { batch, context, prompt, weight_bits: bits }) {
  const here = deploy(model, gpu, { bits });
  const step = here.step(batch, context);
  const prefill = here.prefillFlops(prompt) / here.used(1, prompt);
  return {
    // Linear layers, then attention: each as long as its bytes or its FLOPs take.
    stages: [
      here.operators(here.weights, 2 * model.params * batch),
      here.operators(batch * context * here.kv, batch * context * here.attention),
    ],
    ridge: ridge(gpu),
    decode: here.intensity(batch, context),
    step: step.seconds,
    rate: step.rate,
    limit: here.limit(batch, context),
    share: (batch * here.flops(context)) / step.seconds / gpu.peak, // of the peak that the decode step uses
    ceiling: here.limitIntensity(context), // of decode at any batch
    computeBoundBatch: here.computeBoundBatch,
    crossingBatch: here.crossingBatch(context),
    crossingContext: here.crossingContext(),
    maxBatch: here.maxSequences(context),
    prefill,
    prefillLimit: prefill < ridge(gpu) ? "bandwidth" : "arithmetic",
  };
}

/** The same for several batch sizes: one row of the table each. */
export function rows(model, gpu, state, batches) {
  return batches.map((batch) => ({ batch, ...roofline(model, gpu, { ...state, batch }) }));
}

/** Of `list` the value whose intensity is nearest on a logarithmic scale; the smaller one where two are equal. */
function nearestBy(list, wanted, intensityOf) {
  const far = (value) => Math.abs(Math.log(intensityOf(value) / wanted));
  return list.reduce((best, value) => (far(value) < far(best) - 1e-12 ? value : best));
}

export const batchAt = (model, gpu, state, intensity, batches) =>
  nearestBy(batches, intensity, (batch) => roofline(model, gpu, { ...state, batch }).decode);

export const promptAt = (model, gpu, state, intensity, prompts) =>
  nearestBy(prompts, intensity, (prompt) => roofline(model, gpu, { ...state, prompt }).prefill);
