"""The benchmark: every kernel of the course and its peers, as a share of a copy of the same bytes in the same run.

`python -m course_kernels.lab bench` runs it from a shell, `bench.run(...)` from Python. Both give, and write, this
JSON (as do the files in `lab/recorded/`):

    gpu, sms, l2_bytes, peak_gbps   the GPU's name, multiprocessors, L2 size in bytes, data sheet bandwidth in GB/s
                                    (null where it is not known)
    torch, triton, date, command    versions, ISO date, and the command that gave this file
    records                         a list of
        kernel         "copy", "torch", "eager", "compile", "liger", "quack", "softmax" (the dispatcher), a course
                       module's name, or "prototype" (survey only)
        op             "forward" or "backward"
        columns, rows  the matrix
        dtype          "float32", "bfloat16", "float16"
        gbps           bytes that must move (each input read once, each output written once) over time, in GB/s
        share_of_copy  gbps over that of "copy" (`y.copy_(x)`) in the same run; null where no copy was timed
        microseconds   the median time of one call
        spread         (upper − lower quartile) / median of the timings; null where it was not recorded
        timing         "events": CUDA events around each call, L2 flushed before it, so the launch counts;
                       "graph": many calls replayed from a CUDA graph, so that it does not
        note           a few words or null
    counters                        optional: DRAM traffic from Nsight Compute, a list of {kernel, columns, rows,
                                    dtype, read_mb, written_mb}, in 10**6 bytes
"""
