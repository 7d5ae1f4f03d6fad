"""The catalogs that either runner opens, and the folders that statements may name."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.catalog.base import Catalog
from gateway.catalog.local import LocalCatalog
from gateway.catalog.paths import AllowedRoots
from gateway.catalog.samples import open_samples
from gateway.catalog.volumes import VolumePath


def open_catalogs(warehouse: str, samples: str, allow_paths: Sequence[str]) -> tuple[dict[str, Catalog], AllowedRoots]:
    """``main`` in the folder `warehouse`, ``samples`` in its own, and these with `allow_paths` as what may be named."""
    main = LocalCatalog("main", warehouse, others=(samples, *allow_paths), places=allow_paths)
    catalogs: dict[str, Catalog] = {"main": main, "samples": open_samples(samples)}

    def volume(path: VolumePath) -> str | None:
        catalog = catalogs.get(path.catalog.lower())
        return None if catalog is None else catalog.volume_folder(path.schema, path.volume)

    return catalogs, AllowedRoots([warehouse, samples, *allow_paths], volume)
