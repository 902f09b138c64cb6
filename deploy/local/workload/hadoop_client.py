"""How to start a JVM with Hadoop's own client and a cluster's configuration."""

from pathlib import Path

from deploy.local.cluster.java import Java, class_path, quick_start_flags
from deploy.local.cluster.zookeeper import LOG4J2

HEAP_MEGABYTES = 256

_JARS = (
    "hadoop-client-api-*.jar",
    "hadoop-client-runtime-*.jar",
    "slf4j-api-*.jar",
    "log4j-*.jar",
    "jcl-over-slf4j-*.jar",
    "commons-io-*.jar",
    "commons-lang3-*.jar",
    "py4j-*.jar",
)


def client_argv(java: Java, conf_dir: Path, main_class: str, *, log_directory: Path) -> list[str]:
    """Return the command line up to the main class; its arguments follow.

    The conf directory stands first on the class path, the only place where FsShell looks for
    core-site.xml.  The log settings, errors only, are written into ``log_directory``.
    """
    log_directory.mkdir(parents=True, exist_ok=True)
    settings = log_directory / "client-log4j2.properties"
    text = LOG4J2.format(level="error")
    if not settings.exists() or settings.read_text() != text:
        settings.write_text(text)
    return [
        str(java.executable),
        *quick_start_flags(java, heap_megabytes=HEAP_MEGABYTES),
        f"-Dlog4j2.configurationFile={settings.resolve()}",
        "-cp",
        class_path(*_JARS, first=conf_dir.resolve()),
        main_class,
    ]
