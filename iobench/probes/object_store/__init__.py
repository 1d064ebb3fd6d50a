"""The probe of object stores: rates and latencies of GET, range GET, PUT and multipart uploads.

- ``probe``: one trial, and its figures;
- ``objects``: the objects that trials read and write;
- ``clients``: the Protocols of clients;
- ``s3_client``, ``native_clients`` and ``copy_clients``: the clients of this package.
"""
