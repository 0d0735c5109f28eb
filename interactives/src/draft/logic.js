// Speed-up of speculative decoding for each draft length, at one acceptance rate, draft cost and batch.
import { bestDraftLength, deploy, expectedTokens, speedup } from "../shared/arithmetic.js";

export const MAX_K = 16;

/** {rows: [{k, tokens, verify, speedup}], best}; cost and verify are in plain target passes. */
export function draftLengths(model, gpu, { alpha, cost, batch, context }, maxK = MAX_K) {
  const here = deploy(model, gpu);
  const verify = (k) => here.verifyCost(batch, context, k);
  const rows = Array.from({ length: maxK + 1 }, (_, k) => ({
    k,
    tokens: expectedTokens(alpha, k),
    verify: verify(k),
    speedup: speedup(alpha, k, cost, verify(k)),
    free: speedup(alpha, k, cost), // if checking k + 1 tokens cost as much as writing one
  }));
  return { rows, best: bestDraftLength(alpha, cost, maxK, verify) };
}
