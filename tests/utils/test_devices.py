"""What is no file is written to, and stays what it is."""

import os
import stat
import threading

import pytest

from skcalib.utils._output import write_atomically


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with write_atomically(path) as file:
        file.write(b"text")
    reader.join()
    assert read == [b"text"]
    assert stat.S_ISFIFO(path.stat().st_mode)
