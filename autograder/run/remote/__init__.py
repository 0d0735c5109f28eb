"""Calls from the tests into a learner's kernel: values on the wire, the kernel's end, the tests' end."""
