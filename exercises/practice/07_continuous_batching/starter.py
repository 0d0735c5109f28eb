import sys

lines = sys.stdin.read().splitlines()
slots = int(lines[0])
lengths = [int(token) for token in lines[1].split()]

# In which step does each answer come?
print("static: ?")
print("? steps, mean ?, ? % used")
print("continuous: ?")
print("? steps, mean ?, ? % used")
