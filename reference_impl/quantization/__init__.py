"""How are weights stored in fewer bits? Formats and methods; `benchmarks/quality` judges them.

Start with `groupwise`: absmax integers with one scale per group, which lesson 4 builds. Formats: `rounding` to any grid
of 2 to 8 bits, stored as `weight`; `packing`; GGUF's blocks (`gguf_blocks`). Methods that look at the inputs:
`gptq` and `awq`. A whole model: `model` puts `linear` layers in place, and `calibrate` goes layer by layer with
`forward`.
"""
