"""NumPy arrays of states"""

import numpy as np


def serve(model, prompts, slots, most):
    written = -np.ones((len(prompts), most), dtype=int)
    lengths, done = np.zeros(len(prompts), dtype=int), np.zeros(len(prompts), dtype=bool)
    running = np.array([], dtype=int)
    while not done.all():
        line = np.flatnonzero(~done)
        started = [i for i in line if i in running or i >= (running.max() + 1 if len(running) else 0) or lengths[i]]
        running = np.array(started[:slots])
        tokens = model([prompts[i] + written[i, : lengths[i]].tolist() for i in running])
        written[running, lengths[running]] = tokens
        lengths[running] += 1
        done[running] = (np.array(tokens) == 0) | (lengths[running] == most)
    return [written[i, : lengths[i]].tolist() for i in range(len(prompts))]
