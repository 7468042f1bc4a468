"""Sixteen clients that write to and read from a gRPC cache at once; BuildGrid's Python runs it.

    grpc_clients.py HOST:PORT TOKEN

Exit status: 0 if every client has read what it and the others have written.
"""

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2 as messages
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2_grpc as services

_CLIENTS = 16
_BLOBS = 8


def _content(client: int, number: int) -> bytes:
    # All clients write the first one.
    return f"blob {client if number else 'shared'} {number} ".encode() * 2000


def _client(client: int) -> bool:
    host, token = sys.argv[1:]
    metadata = [("authorization", f"Bearer {token}")]
    with grpc.insecure_channel(host) as channel:
        storage = services.ContentAddressableStorageStub(channel)
        blobs = [_content(client, number) for number in range(_BLOBS)]
        digests = [
            messages.Digest(hash=hashlib.sha256(blob).hexdigest(), size_bytes=len(blob))
            for blob in blobs
        ]
        for digest, blob in zip(digests, blobs, strict=True):
            entry = messages.BatchUpdateBlobsRequest.Request(digest=digest, data=blob)
            request = messages.BatchUpdateBlobsRequest(requests=[entry])
            answer = storage.BatchUpdateBlobs(request, metadata=metadata, timeout=60)
            if answer.responses[0].status.code:
                return False
        request = messages.BatchReadBlobsRequest(digests=digests)
        answer = storage.BatchReadBlobs(request, metadata=metadata, timeout=60)
        found = {response.digest.hash: response.data for response in answer.responses}
        return [found.get(digest.hash) for digest in digests] == blobs


with ThreadPoolExecutor(_CLIENTS) as pool:
    sys.exit(not all(pool.map(_client, range(_CLIENTS))))
