"""Status and doctor name certificates that end soon."""

import dataclasses
from datetime import timedelta
from pathlib import Path

from ha.cli.explain.doctor.cluster import check_cluster
from ha.cli.explain.doctor.local import check_security
from ha.cluster.check_result import Severity
from ha.cluster.problems import problems
from ha.security.caller import Role
from ha.security.certificates import now
from ha.security.own_tls import acting_as, ending_certificates
from ha.security.tls_files import TlsFiles
from tests.ha.cli.test_cluster_view import WELL
from tests.ha.cli.test_doctor import configured
from tests.ha.security.authority import Authority


async def test_certificates_that_end_soon_are_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    old = now() - timedelta(hours=20)
    folder = authority.issue(Role.ADMIN, "root", days=1, at=old, folder="admin")
    given = configured(tmp_path, nnha_security_tls_dir=str(tmp_path / "tls"))
    first, second = check_security(given)
    assert (first.check, first.verdict) == ("certificate", Severity.FAIL)
    assert f"{folder}: it ends at " in first.found
    assert second.verdict is Severity.OK


async def test_status_tells_whose_certificate_ends_soon(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    old = now() - timedelta(hours=20)
    server = TlsFiles(authority.issue(Role.ZKFC, "nn1", days=1, at=old), 10)
    caller = authority.holder(Role.ADMIN, "root")
    assert caller.ending() == ()
    shown = server.material.pair.certificate
    assert caller.why_no_server(shown, Role.ZKFC) == ""
    with acting_as(caller):
        (told,) = ending_certificates()
    assert told.startswith("the certificate of zkfc nn1 ends at ")
    view = dataclasses.replace(WELL, certificates=(told,))
    assert told in problems(view)
    assert told in {one.found for one in check_cluster(view)}
