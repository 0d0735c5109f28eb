"""The engine on a CUDA GPU: is it right, and how near to the bounds?"""
