"""What a store is run by, for Prometheus: counted for all stores of this process, by the kind of their log.

    from eventlog.metrics import serve_metrics

    with serve_metrics(9464):      # http://127.0.0.1:9464/metrics
        ...

docs/metrics.md says what each means and what to do about it. An application that serves metrics already takes `registry()` instead, which
is a `CollectorRegistry` of this library's own: nothing is added to the client's global one.
"""

from eventlog.metrics.collected import registry
from eventlog.metrics.server import MetricsServer, serve_metrics

__all__ = ["MetricsServer", "registry", "serve_metrics"]
