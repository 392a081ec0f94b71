"""A reader that goes away, as `| head` does, costs no file."""

import os
import subprocess
import sys

SCRIPT = """
import sys, time
from supermodel.shell.reader import say
time.sleep(0.2)  # the reader is gone
say("x" * 100_000)
say("again")
open(sys.argv[1], "w").write("written")
"""


def test_what_follows_is_done_though_nobody_reads(tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "file")], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.returncode == 0 and not done.stderr
    assert (tmp_path / "file").read_text() == "written"


def test_the_answer_is_printed_where_someone_reads(capsys):
    from supermodel.shell.reader import say

    say("an answer")
    assert capsys.readouterr().out == "an answer\n"
