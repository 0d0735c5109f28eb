"""The standard library's function"""


def median(values):
    import statistics

    return statistics.median(values)
