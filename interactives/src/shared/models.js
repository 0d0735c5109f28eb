// The choices that several figures offer, as controls.
import { MODELS } from "../generated/constants.js";
import { stops } from "./controls.js";

export { MODELS };

const options = Object.entries(MODELS).map(([key, model]) => [key, model.name]);

export const modelChoice = { kind: "choice", key: "model", label: "Model", options };
export const bitsChoice = {
  kind: "choice",
  key: "weight_bits",
  label: "Bits per weight",
  options: [
    [16, "16 (bf16)"],
    [8, "8"],
    [4, "4"],
  ],
};
export const batchSlider = (max = 1024) => ({
  kind: "number",
  key: "batch",
  label: "Batch",
  unit: "sequences",
  min: 1,
  max,
  stops: stops(1, max, 6),
});
/** Tokens of each sequence, at most as many as the chosen model was trained for. */
export function contextSlider({ model }) {
  const max = MODELS[model]?.maxContext ?? 131072;
  return { kind: "number", key: "context", label: "Context", unit: "tokens", min: 64, max, stops: stops(64, max, 6) };
}
