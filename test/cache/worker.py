"""A worker for tests of remote execution. It runs in BuildGrid's environment:

    python worker.py ADDRESS NAME=VALUE ...      # properties that it announces

Each action runs in a temporary folder with its inputs, and a line with its outputs is printed.
It knows no isolation, timeouts or cancellation, as BuildBox does.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2 as messages
from buildgrid._protos.google.devtools.remoteworkers.v1test2 import bots_pb2 as bots
from buildgrid._protos.google.devtools.remoteworkers.v1test2 import bots_pb2_grpc, worker_pb2
from buildgrid.server.client.cas import download, upload

_POLL_S = 20


def main(address: str, *properties: str) -> None:
    """Asks the engine for actions until it is ended."""
    channel = grpc.insecure_channel(address)
    service = bots_pb2_grpc.BotsStub(channel)
    device = worker_pb2.Device(
        handle="0",
        properties=[
            worker_pb2.Device.Property(key=key, value=value)
            for key, _, value in (text.partition("=") for text in properties)
        ],
    )
    session = bots.BotSession(
        bot_id="worker", status=bots.OK, worker=worker_pb2.Worker(devices=[device])
    )
    session = service.CreateBotSession(bots.CreateBotSessionRequest(bot_session=session))
    while True:
        for lease in session.leases:
            if lease.state == bots.ACTIVE:
                lease.result.Pack(_run(channel, lease.payload))
                lease.state = bots.COMPLETED
        request = bots.UpdateBotSessionRequest(name=session.name, bot_session=session)
        session = service.UpdateBotSession(request, timeout=_POLL_S)


def _run(channel: grpc.Channel, payload: "messages.Any") -> messages.ActionResult:
    action, command = messages.Action(), messages.Command()
    with tempfile.TemporaryDirectory() as folder:
        with download(channel) as inputs:
            if not payload.Unpack(action):
                digest = messages.Digest()
                payload.Unpack(digest)
                inputs.get_message(digest, action)
            inputs.get_message(action.command_digest, command)
            inputs.download_directory(action.input_root_digest, folder)
        place = Path(folder, command.working_directory)
        # Bazel 4 says whether an output is a file or a folder, newer ones do not.
        names = [*command.output_paths, *command.output_files, *command.output_directories]
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            command.arguments,
            cwd=place,
            env={variable.name: variable.value for variable in command.environment_variables},
            capture_output=True,
            check=False,
        )
        result = messages.ActionResult(
            exit_code=done.returncode, stdout_raw=done.stdout, stderr_raw=done.stderr
        )
        with upload(channel) as outputs:
            for name in dict.fromkeys(names):
                output = place / name
                if output.is_dir():
                    tree = outputs.upload_tree(str(output), queue=False)
                    result.output_directories.add(path=name, tree_digest=tree)
                elif output.is_file():
                    result.output_files.add(
                        path=name,
                        digest=outputs.upload_file(str(output), queue=False),
                        is_executable=bool(output.stat().st_mode & 0o100),
                    )
    print(*names, flush=True)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
