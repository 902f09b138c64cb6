"""Hadoop 3.5.0's own RPC client and server in a JVM, driven from Python; nothing is compiled.

py4j's gateway runs in the JVM of Hadoop's classes.  Java interfaces are implemented here in Python:
a call to Hadoop's server comes back to us as a callback, exceptions included.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from subprocess import DEVNULL, Popen
from typing import Any, TypeAlias

from py4j.java_gateway import (
    CallbackServerParameters,
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)
from py4j.protocol import Py4JJavaError

from deploy.local.cluster.java import class_path, find_jars, find_java

JavaObject: TypeAlias = Any
"""Something in the JVM; py4j finds its members at run time."""

JARS = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar")
ENGINE = "org.apache.hadoop.ipc.ProtobufRpcEngine2"
HA_SERVICE_PB = "org.apache.hadoop.ha.protocolPB.HAServiceProtocolPB"
ZKFC_PB = "org.apache.hadoop.ha.protocolPB.ZKFCProtocolPB"
CALL_TIMEOUT_MILLIS = 10_000


@dataclass(slots=True)
class JavaPeer:
    """The JVM, and what tests want of it."""

    gateway: JavaObject
    hadoop: JavaObject

    def class_named(self, name: str) -> JavaObject:
        return self.gateway.jvm.java.lang.Class.forName(name)

    def configuration(self, **settings: str) -> JavaObject:
        """Make a Hadoop Configuration; ``ipc_ping_interval`` stands for ``ipc.ping.interval``."""
        configuration = self.hadoop.conf.Configuration()
        for name, value in settings.items():
            configuration.set(name.replace("_", "."), value)
        return configuration

    def service_client(self, port: int, **settings: str) -> JavaObject:
        return self.hadoop.ha.protocolPB.HAServiceProtocolClientSideTranslatorPB(
            *self._client_arguments(port, settings)
        )

    def zkfc_client(self, port: int) -> JavaObject:
        return self.hadoop.ha.protocolPB.ZKFCProtocolClientSideTranslatorPB(
            *self._client_arguments(port, {})
        )

    def request_info(self, source: str) -> JavaObject:
        kind = self.class_named("org.apache.hadoop.ha.HAServiceProtocol$RequestSource")
        return self.hadoop.ha.HAServiceProtocol.StateChangeRequestInfo(
            kind.getField(source).get(None)
        )

    def state(self, name: str) -> JavaObject:
        kind = self.class_named("org.apache.hadoop.ha.HAServiceProtocol$HAServiceState")
        return kind.getField(name).get(None)

    @contextmanager
    def service_server(self, implementation: "JavaService") -> Iterator[JavaObject]:
        """Hadoop's server with HAServiceProtocol, carried out by a Python object."""
        protocols = self.hadoop.ha.proto.HAServiceProtocolProtos.HAServiceProtocolService
        face = self.hadoop.ha.protocolPB.HAServiceProtocolServerSideTranslatorPB(implementation)
        with self._server(HA_SERVICE_PB, protocols.newReflectiveBlockingService(face)) as server:
            yield server

    @contextmanager
    def zkfc_server(self, implementation: "JavaZkfc") -> Iterator[JavaObject]:
        protocols = self.hadoop.ha.proto.ZKFCProtocolProtos.ZKFCProtocolService
        face = self.hadoop.ha.protocolPB.ZKFCProtocolServerSideTranslatorPB(implementation)
        with self._server(ZKFC_PB, protocols.newReflectiveBlockingService(face)) as server:
            yield server

    @contextmanager
    def logged_in_with_a_token(self) -> Iterator[None]:
        """Log in as in a YARN container: the client holds a token, so it opens with SASL."""
        security = self.hadoop.security.UserGroupInformation
        before = security.getLoginUser()
        holder = security.createRemoteUser("alice")
        holder.addToken(self.hadoop.security.token.Token())
        security.setLoginUser(holder)
        try:
            yield
        finally:
            security.setLoginUser(before)

    @contextmanager
    def _server(self, interface: str, service: JavaObject) -> Iterator[JavaObject]:
        configuration = self.configuration()
        kind = self.class_named(interface)
        self.hadoop.ipc.RPC.setProtocolEngine(configuration, kind, self.class_named(ENGINE))
        builder = self.hadoop.ipc.RPC.Builder(configuration)
        builder.setProtocol(kind).setInstance(service).setVerbose(False)
        builder.setBindAddress("127.0.0.1").setPort(0).setNumHandlers(2)
        server = builder.build()
        server.start()
        try:
            yield server
        finally:
            server.stop()

    def _client_arguments(self, port: int, settings: dict[str, str]) -> tuple[JavaObject, ...]:
        configuration = self.configuration(**settings)
        factory = self.hadoop.net.NetUtils.getDefaultSocketFactory(configuration)
        address = self.gateway.jvm.java.net.InetSocketAddress("127.0.0.1", port)
        return address, configuration, factory, CALL_TIMEOUT_MILLIS


@dataclass(slots=True)
class JavaService:
    """HAServiceProtocol in Python for Hadoop's server: Java calls these methods."""

    peer: JavaPeer
    state: str = "STANDBY"
    not_ready: str = ""
    refusal: JavaObject = None
    asked: list[tuple[str, str]] = field(default_factory=list)

    class Java:
        implements = ("org.apache.hadoop.ha.HAServiceProtocol",)

    def getServiceStatus(self) -> JavaObject:
        status = self.peer.hadoop.ha.HAServiceStatus(self.peer.state(self.state))
        return (
            status.setNotReadyToBecomeActive(self.not_ready)
            if self.not_ready
            else status.setReadyToBecomeActive()
        )

    def monitorHealth(self) -> None:
        self._refuse()

    def transitionToActive(self, info: JavaObject) -> None:
        self.asked.append(("active", info.getSource().toString()))
        self._refuse()

    def transitionToStandby(self, info: JavaObject) -> None:
        self.asked.append(("standby", info.getSource().toString()))
        self._refuse()

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise Py4JJavaError("refused", self.refusal)


@dataclass(slots=True)
class JavaZkfc:
    refusal: JavaObject = None
    ceded: list[int] = field(default_factory=list)

    class Java:
        implements = ("org.apache.hadoop.ha.ZKFCProtocol",)

    def cedeActive(self, millis: int) -> None:
        self.ceded.append(millis)

    def gracefulFailover(self) -> None:
        if self.refusal is not None:
            raise Py4JJavaError("refused", self.refusal)


@contextmanager
def java_peer(*more_jars: str) -> Iterator[JavaPeer]:
    """Start the JVM; it ends with the block, or with this process.

    ``more_jars`` join Hadoop's client on the class path.

    Raises:
        LocalClusterError: if there is no Java or no Hadoop client here.
    """
    java = find_java()
    port, token, process = launch_gateway(
        jarpath=str(next(find_jars().glob("py4j-*.jar"))),
        classpath=os.pathsep.join([class_path(*JARS), *more_jars]),
        javaopts=["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        java_path=str(java.executable),
        die_on_exit=True,
        enable_auth=True,
        redirect_stderr=DEVNULL,
        return_proc=True,
    )
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token),
        callback_server_parameters=CallbackServerParameters(
            port=0, daemonize=True, daemonize_connections=True, propagate_java_exceptions=True
        ),
    )
    try:
        entry = gateway.java_gateway_server
        entry.resetCallbackClient(
            entry.getCallbackClient().getAddress(),
            gateway.get_callback_server().get_listening_port(),
        )
        yield JavaPeer(gateway, gateway.jvm.org.apache.hadoop)
    finally:
        _end(gateway, process)


def _end(gateway: JavaObject, process: "Popen[bytes]") -> None:
    gateway.shutdown()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()  # with its standard input gone, the JVM ends
    try:
        process.wait(10)
    finally:
        process.kill()


def java_fault(error: Py4JJavaError) -> tuple[str, str]:
    """Return the class and first line of the exception that travelled to a Java client."""
    exception: JavaObject = error.java_exception
    name = exception.getClassName() if hasattr(exception, "getClassName") else ""
    return name, str(exception.getMessage()).partition("\n")[0]
