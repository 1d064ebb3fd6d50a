"""Object stores: rates and latencies of GET, range GET, PUT and multipart uploads."""
