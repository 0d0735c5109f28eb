"""Diagrams of what a GPU has: memories with their sizes and rates, and arithmetic units."""

from interactives.diagrams.drawing import Diagram, Drawing
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.deployment import Deployment
from reference_impl.bounds.hardware import GPUS, H100_L2_BYTES, HOST_LINK

H100 = GPUS["h100-sxm"]
LLAMA = Deployment(MODELS["llama-3-8b"], H100)


def memory_hierarchy() -> Diagram:
    """An H100's memories and the channels between them: sizes as lengths, rates as widths, both to scale."""
    drawing = Drawing("memory-hierarchy", height=345)
    left, full = 12.0, 336.0  # the longest bar is the GPU's memory
    length = full / H100.memory_bytes
    thickness = 44 / H100.bandwidth

    drawing.label(left, 8, full, 34, f"arithmetic units: {H100.peak_flops / 1e12:.1f} TFLOP/s", "arithmetic", bold=True)
    drawing.text(left, 66, f"L2 cache on the chip: {H100_L2_BYTES / 1e6:.0f} MB", bold=True)
    drawing.bar(left, 74, length * H100_L2_BYTES, 18, "memory")
    drawing.line(left, 74, left, 92, "memory", width=0.6)
    drawing.text(left + 8, 87.5, "less than this line", colour="soft")

    wide = thickness * H100.bandwidth
    drawing.bar(230, 56, wide, 92, "memory")
    drawing.text(222, 126, f"{H100.bandwidth / 1e12:.2f} TB/s", "end", bold=True)

    weights = length * LLAMA.weight_bytes
    drawing.box(left, 148, full, 44, "memory")
    drawing.bar(left, 148, weights, 44, "memory")
    drawing.text(left + weights + 10, 166, f"GPU memory (HBM): {H100.memory_bytes / 1e9:.0f} GB", bold=True)
    drawing.text(left + weights + 10, 184, f"full part: weights, {LLAMA.weight_bytes / 1e9:.2f} GB")

    drawing.bar(252 - thickness * HOST_LINK / 2, 192, thickness * HOST_LINK, 66, "memory")
    drawing.text(242, 222, f"{HOST_LINK / 1e9:.0f} GB/s, as wide as", "end", bold=True)
    drawing.text(242, 239, "this line", "end", bold=True)
    drawing.box(left, 258, full, 34, "memory", dashed=True)
    drawing.text(left + full / 2, 279.5, "the CPU's memory: larger still", "middle")

    near, far = 1e9 / H100.bandwidth, 1e9 / HOST_LINK
    drawing.text(left, 318, f"A gigabyte takes {1000 * near:.1f} ms from GPU memory")
    drawing.text(left, 335, f"and {1000 * far:.0f} ms from the CPU's.")
    return drawing.finish(
        "Memories of an H100",
        f"From top to bottom: arithmetic units that do {H100.peak_flops / 1e12:.1f} TFLOP/s; an L2 cache on the chip "
        f"of {H100_L2_BYTES / 1e6:.0f} MB; a channel of {H100.bandwidth / 1e12:.2f} TB/s to "
        f"{H100.memory_bytes / 1e9:.0f} GB of GPU memory, of which the weights of Llama 3 8B take "
        f"{LLAMA.weight_bytes / 1e9:.2f} GB; and a channel of {HOST_LINK / 1e9:.0f} GB/s to the memory of the CPU. The "
        f"first channel is drawn {H100.bandwidth / HOST_LINK:.0f} times as wide as the second.",
        see="Lengths show bytes and widths show rates, both to scale. The weights do not fit on the chip, so every "
        "step brings all of them through the channel in the middle.",
        source="H100 SXM data sheet, a PCIe 5 link as it is in practice, and Llama 3 8B in 16 bits.",
    )


def memory_and_arithmetic() -> Diagram:
    """What an H100 can compute while one byte arrives from its memory."""
    drawing = Drawing("memory-and-arithmetic", height=302)
    drawing.box(6, 8, 118, 92, "memory")
    drawing.text(65, 32, "memory", "middle", bold=True)
    drawing.text(65, 54, f"{H100.memory_bytes / 1e9:.0f} GB", "middle")
    drawing.text(65, 74, "of weights and", "middle")
    drawing.text(65, 91, "KV caches", "middle")
    drawing.box(228, 8, 126, 92, "arithmetic")
    drawing.text(291, 32, "arithmetic", "middle", bold=True)
    drawing.text(291, 54, f"{H100.peak_flops / 1e12:.1f}", "middle")
    drawing.text(291, 74, "trillion FLOPs", "middle")
    drawing.text(291, 91, "a second", "middle")
    drawing.line(128, 60, 222, 60, width=3, arrow=True)
    drawing.text(175, 34, f"{H100.bandwidth / 1e12:.2f} TB", "middle", bold=True)
    drawing.text(175, 50, "a second", "middle")

    operations = round(H100.ridge)
    drawing.text(6, 132, "While one byte arrives ...", bold=True)
    drawing.bar(6, 142, 9, 9, "memory")
    drawing.text(6, 180, f"... there is time for {operations} operations:", bold=True)
    columns = 32
    for i in range(operations):
        drawing.bar(6 + 11 * (i % columns), 190 + 11 * (i // columns), 9, 9, "arithmetic")
    return drawing.finish(
        "Memory and arithmetic units of a GPU",
        f"An H100 has {H100.memory_bytes / 1e9:.0f} GB of memory, which delivers {H100.bandwidth / 1e12:.2f} TB a "
        f"second to arithmetic units that do {H100.peak_flops / 1e12:.1f} trillion floating-point operations a "
        f"second. While one byte arrives, they could do {operations} operations.",
        see="One blue square is a byte that arrives, one orange square an operation for which there is time meanwhile.",
        source="H100 SXM data sheet, 16-bit numbers: operations a second divided by bytes a second.",
    )
