"""A mixed cluster with Kerberos, in which Hadoop's daemons are another user's.

To our daemons the kernel's word for that user is that of a stranger, so only tickets let Hadoop's
in.  Its processes may read and write all files, as they use the folders of the test's user.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from ha.conf.configuration import load_configuration
from ha.security.kerberos.own import log_in
from ha.security.kerberos.settings import login, name_rules
from tests.ha.security.kdc import REALM, Kdc
from tests.interop.mixed.cluster import MixedCluster, mixed_cluster
from tests.interop.mixed.programs import JOURNAL_HOSTS
from tests.needs import STRANGER

NAMENODE: Final = f"nn/localhost@{REALM}"
WEB_HOSTS: Final = ("127.0.0.1", *JOURNAL_HOSTS.values())
FILTER: Final = "org.apache.hadoop.security.AuthenticationFilterInitializer"
KEYTAB: Final = "pages.keytab"
AS_ANOTHER: Final = (
    "setpriv", "--securebits=+no_setuid_fixup",  # or access(2) would not see the capabilities
    f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups",
    "--inh-caps=+dac_override,+fowner", "--ambient-caps=+dac_override,+fowner",
)  # fmt: skip


def secured_keys(realm: Kdc) -> dict[str, str]:
    """Return the keys of a cluster whose RPC, pages and transfers take tickets alone."""
    services = {"namenode": "nn", "journalnode": "jn", "datanode": "dn"}
    return {
        "hadoop.security.authentication": "kerberos",
        # As clusters have it.  Hadoop's JournalNode takes others for strangers that ask for edits.
        "hadoop.security.auth_to_local": "RULE:[2:$1](nn|jn|dn)s/.*/hdfs/ DEFAULT",
        "hadoop.rpc.protection": "authentication,integrity,privacy",
        "dfs.data.transfer.protection": "authentication,integrity,privacy",
        "dfs.block.access.token.enable": "true",
        "ignore.secure.ports.for.testing": "true",
        "dfs.web.authentication.kerberos.principal": f"HTTP/_HOST@{REALM}",
        "dfs.web.authentication.kerberos.keytab": str(realm.folder / KEYTAB),
        "dfs.namenode.kerberos.internal.spnego.principal": f"HTTP/127.0.0.1@{REALM}",
        # Without these Hadoop 3.5's own servers ask for no ticket, and fail where they need a name.
        "hadoop.http.filter.initializers": FILTER,
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.kerberos.principal": "*",
        "hadoop.http.authentication.kerberos.keytab": str(realm.folder / KEYTAB),
        **{
            f"dfs.{name}.kerberos.principal": f"{short}/localhost@{REALM}"
            for name, short in services.items()
        },
        **{
            f"dfs.{name}.keytab.file": str(realm.keytab(f"{short}/localhost"))
            for name, short in services.items()
        },
    }


@contextmanager
def secured_cluster(
    realm: Kdc,
    folder: Path,
    more: Mapping[str, str],
    patch: pytest.MonkeyPatch,
    *,
    datanodes: int = 0,
) -> Iterator[MixedCluster]:
    """Yield a cluster of which nothing is started yet; this process and clients are its superuser.

    Raises:
        JarsMissing, LocalClusterError: Hadoop's jar or a Java is not here.
    """
    realm.make_in(realm.folder / KEYTAB, *(f"HTTP/{host}" for host in WEB_HOSTS))
    patch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={realm.krb5_conf}")
    patch.setenv("KRB5CCNAME", str(realm.kinit("nn/localhost")))
    keys = secured_keys(realm) | dict(more)
    with mixed_cluster(folder, more_keys=keys, datanodes=datanodes) as cluster:
        cluster.programs.before_java.extend(AS_ANOTHER)
        for name, host in JOURNAL_HOSTS.items():
            principal = f"HTTP/{host}@{REALM}"
            cluster.programs.journal_keys[name] = {
                "dfs.journalnode.kerberos.internal.spnego.principal": principal
            }
        conf = load_configuration(cluster.programs.our_conf_dir)
        keytab = str(realm.keytab("nn/localhost"))
        log_in(login(conf, name_rules(conf), NAMENODE, keytab))
        try:
            yield cluster
        finally:
            log_in(None)


def may_be_another_user() -> bool:
    """Return whether this machine can start a process as ``AS_ANOTHER`` says."""
    return os.geteuid() == 0 and shutil.which("setpriv") is not None
