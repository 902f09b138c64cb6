"""Reports and files at our NameNode and at Hadoop's, in one run."""

import asyncio
from typing import Final

from deploy.local.cluster.places import fresh_directory
from tests.campaigns.bench import blocks_files, blocks_image, blocks_reports
from tests.campaigns.bench.blocks_sides import both_sides
from tests.campaigns.bench.report import Row

IMAGE_BLOCKS: Final = 1_000_000
REPORTS_IN_A_ROUND: Final = 3


def namenode_rows(blocks: int, rounds: int) -> list[Row]:
    """Return the rows of both.

    Raises:
        JarsMissing, LocalClusterError: if Hadoop's jar is not here, or a part fails.
    """
    folder = fresh_directory("bench-blocks")
    image = blocks_image.made(blocks, folder / "image")
    with both_sides(folder) as sides:
        times = REPORTS_IN_A_ROUND * rounds
        reported = asyncio.run(blocks_reports.measured(sides, image, times))
        written = asyncio.run(blocks_files.measured(sides, rounds))
    return [*blocks_reports.report_rows(*reported, image), blocks_files.files_row(*written)]


def unmeasured_rows(why: str) -> list[Row]:
    return [*blocks_reports.unmeasured_rows(why), *blocks_files.unmeasured_rows(why)]
