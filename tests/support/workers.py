"""A worker's answers, without a process."""

from multiprocessing import Pipe

from benchmarks.runner.worker import serve


def answers(workload, contestant, *requests):
    """What a worker answers to requests; the first answer is empty if it is ready."""
    ours, theirs = Pipe()
    for request in (*requests, ""):
        ours.send(request)
    serve(theirs, workload, contestant)
    found = []
    while ours.poll():
        found.append(ours.recv())
    return found
