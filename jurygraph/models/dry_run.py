"""Gateways for dry runs: they record requests and send nothing."""

from dataclasses import replace

from jurygraph.models.backends.cached import CachedBackend
from jurygraph.models.backends.recording import RecordingBackend
from jurygraph.models.call_sink import CallSink
from jurygraph.models.gateway import Gateway
from jurygraph.models.limiter import Limiter


def recording_gateway(gateway: Gateway, concurrency: int) -> tuple[RecordingBackend, Gateway]:
    """Return a recording backend and a gateway to it that has no cache and no store."""
    recorder = RecordingBackend(gateway.backend)
    return recorder, _recording_gateway(recorder, gateway, concurrency)


def caching_recording_gateway(
    gateway: Gateway, sink: CallSink | None, at_once: int
) -> tuple[RecordingBackend, Gateway]:
    """Return the same as `recording_gateway`, but with the replies in the sink and in the gateway's cache."""
    recorder = CachedBackend(gateway, sink)
    return recorder, _recording_gateway(recorder, gateway, at_once)


def _recording_gateway(backend: RecordingBackend, gateway: Gateway, at_once: int) -> Gateway:
    """Return a gateway with the limits of another, without deadline, cache and store, to another backend."""
    return Gateway(backend, Limiter(at_once), replace(gateway.limits, deadline=None), redactor=gateway.redactor)
