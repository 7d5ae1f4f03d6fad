"""What a worker gives back to the system no longer counts as its memory."""

import mmap
import subprocess
import sys

_CHILD = """
import errno, mmap, threading
from gateway.engine.heap import refuse_lazy_free

def advised(advice):
    with mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        block[:] = b"x" * (1 << 20)
        try:
            block.madvise(advice)
        except OSError as error:
            return errno.errorcode[error.errno]
        return block[:1]

print(advised(mmap.MADV_FREE) != "EINVAL", refuse_lazy_free())
found = []
thread = threading.Thread(target=lambda: found.extend(map(advised, (mmap.MADV_FREE, mmap.MADV_DONTNEED))))
thread.start()
thread.join()
print(found)
"""


def test_lazy_free_is_refused_in_the_thread_and_those_that_it_starts_and_nothing_else() -> None:
    assert mmap.MADV_FREE == 8
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True True", "['EINVAL', b'\\x00']"]
