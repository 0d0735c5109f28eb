"""Row by row with plain lists, the inverse shrunk by one elimination a column"""


def gptq(weight, hessian, scales):
    import numpy as np

    result = []
    for row, scale in zip(weight.tolist(), scales.tolist(), strict=True):
        inverse = np.linalg.inv(hessian).tolist()
        integers = []
        for i in range(len(row)):
            n = min(max(round(row[i] / scale), -8), 7)
            error = row[i] - n * scale
            pivot = inverse[i][i]
            for j in range(i + 1, len(row)):
                row[j] -= error * inverse[i][j] / pivot
            for a in range(i + 1, len(row)):
                for b in range(i + 1, len(row)):
                    inverse[a][b] -= inverse[a][i] * inverse[i][b] / pivot
            integers.append(n)
        result.append(integers)
    return result
