"""Fewer bits per weight, from the idea to a judged model.

The lesson's own: absmax integers with a scale for each group (`groupwise`), their error by arithmetic (`error`), the
exercise's program (`report`). Formats: any grid of 2 to 8 bits (`rounding`, stored as `weight`), `packing`, `fp8`,
GGUF's blocks (`gguf_blocks`). Methods that look at the inputs: `gptq`, `awq`; a whole model with them, layer by layer:
`calibrate`, on `passes`. What it costs: `held_out` text, `tasks`, `evaluate`, and one `table` of all (`table_command`).
"""
