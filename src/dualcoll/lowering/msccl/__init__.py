"""MSCCL XML: the algorithm files of MSCCL, msccl-executor-nccl and RCCL."""
