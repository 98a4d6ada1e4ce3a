"""Other tools' files, read and written: untrusted input.

- `networks`: ASTRA-sim's and NCCL's files of a network, or of the order of rings in it.
- `msccl`: schedules as MSCCL's XML, both ways; `goal`: schedules as GOAL text, for LogGOPSim.
- `logs`: what collective benchmarks print; a new one is one file with two functions, and one line.
- `profiles`: a calibrated machine; `tuner`: choices of algorithms for NCCL; `python_hook`: a user's own schedule.
"""
