"""Finding a public file: in a folder, in the user's cache, or at its public address."""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from forback.files.atomic import write

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Source:
    """A public file: its place below a data folder, its public address and its checksum.

    Attributes
    ----------
    folder, file : str
        Where the file lies below a data folder.
    origin : str
        Owner, name and commit on GitHub and the folder there, or any https address.
    sha256 : str
        Checksum of the unpacked content, in hexadecimal digits.
    """

    folder: str
    file: str
    origin: str
    sha256: str

    @property
    def address(self) -> str:
        """Return the address to download the file from.

        Examples
        --------
        >>> Source("home", "log.txt", "owner/name/commit/the data", "0").address
        'https://raw.githubusercontent.com/owner/name/commit/the%20data/log.txt'
        >>> Source("home", "log.txt", "https://example.org/~me/data", "0").address
        'https://example.org/~me/data/log.txt'
        """
        if self.origin.startswith("https://"):
            return f"{self.origin}/{self.file}"
        return f"https://raw.githubusercontent.com/{quote(self.origin)}/{self.file}"


def read(source: Source, folder: str | os.PathLike[str] | None = None) -> str:
    """Return the text of a public file, plain or packed by xz (with `.xz` added to its name).

    Parameters
    ----------
    source : Source
        Which file.
    folder : str or path, optional
        The data folder that must hold it. By default the file is looked for below the folder named
        by the environment variable FORBACK_DATA, then in the user's cache; if neither has it, it is
        downloaded into the cache.

    Returns
    -------
    str
        The content, decoded as UTF-8.

    Raises
    ------
    FileNotFoundError
        If `folder` does not hold the file, or if it cannot be downloaded.
    ValueError
        If the checksum of the downloaded content is not that of the source.
    """
    shared = os.environ.get("FORBACK_DATA")
    roots = [Path(shared)] if shared else []
    for root in [*roots, cache_folder()] if folder is None else [Path(folder)]:
        plain = root / source.folder / source.file
        packed = plain.with_name(f"{source.file}.xz")
        if plain.is_file():
            return _decode(plain.read_bytes())
        if packed.is_file():
            return _decode(lzma.decompress(packed.read_bytes()))
    if folder is not None:
        raise FileNotFoundError(
            f"folder must hold {source.folder}/{source.file} (or that with .xz), got "
            f"{os.fspath(folder)!r}, which does not. The file is public: {source.address}"
        )
    return _decode(_download(source))


def cache_folder() -> Path:
    """Return the folder that downloads are kept in: `forback` in XDG_CACHE_HOME or ~/.cache."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore a relative one.
    root = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return root / "forback"


def _decode(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")


def _download(source: Source) -> bytes:
    """Return the content at the public address; cache it if its checksum is right."""
    wanted = f"{source.folder}/{source.file}"
    advice = (
        f"Download it elsewhere, put it at {wanted} below a folder of your choice, and set the "
        "environment variable FORBACK_DATA to that folder (or pass it as folder)"
    )
    try:
        with urlopen(source.address, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(
            f"{wanted} is neither below FORBACK_DATA nor in {cache_folder()}, and could not be "
            f"downloaded from {source.address}: {error}. {advice}"
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise ValueError(
            f"{source.address} has changed: its sha256 must be {source.sha256}, got {digest}; it "
            f"was not kept. {advice}"
        )
    # A cache that cannot be written to costs the next call a download, nothing more.
    with contextlib.suppress(OSError):
        place = cache_folder() / source.folder / source.file
        place.parent.mkdir(parents=True, exist_ok=True)
        write(place, content)
    return content


#: Checksum of the unpacked content of each file; no two files have the same name.
SHA256 = {
    "P01.txt": "f2f1172d1e2796ea8a3b921ddfe4ede4eb45e31ac6dec837b7f254ca35cdbbe1",
    "P02.txt": "ddfaf3b4d6a5cfefc7f7b1bfa47c4c8bd2f5afc4311e0b1bd8c09ae6c2639602",
    "P03.txt": "bb11e3a1c89cfe7fcd26156a696cd72b333d9ff46666e687fd276aa73e6a97a5",
    "P04.txt": "14514578948b357338e0ba0ead3985339b216000f40081849253ee1cf6c9c517",
    "P05.txt": "7c3424b11e2fdf55949fad77a064abf1fd47ef019df1515b2bcc122051e00133",
    "P06.txt": "3c4a476b985227e464d083c017209a7f6274a82310b350467c161670bc95596a",
    "P07.txt": "422c7306cd929a4a21a54f610a00cf86114af8887575d5b510212034dde9b4cf",
    "P08.txt": "f2fd6fed111577636efe73f4ba9768e9428eecdadbc8cc30310b704e954127ae",
    "P09.txt": "7d36942fb11ae557b870ebbc289d02c8353311097b5ba0afb2e149a2cae7802d",
    "P10.txt": "c130109290958eb601a2aaced9fe0a1a8258694b39a82ce9fe3fc788eab903d3",
    "P11.txt": "b4a8e96e49171bf83ee47f7d82c73d27cb2c0856af2e8195eec7d85d1fe60923",
    "P12.txt": "078d896b25efd89024ffe44fe6b93f4fa83e129572b95d9d1cb9c1e3b2f3f539",
    "P13.txt": "1698d6034ab846385bc60806ed6903bc4144cbfe24f20895c1d68959f7838792",
    "P14.txt": "acddd9d02c763d8100f2cb1f936dd3f5ecfc007cd2ba6ba3707a617708e80751",
    "P15.txt": "6eaeeb9bee909b9abb3bd87212b067fe812ab108cd5fe6a8cbe19d9412363d12",
    "P16.txt": "5bdac208d5f1bc59cc0757d9c798620b09b7d0ba5600c4e0f0ea10226551a086",
    "P17.txt": "fbecce9cbce708f3ff3a5019ca2dbbe5a7b0d23376e283b8965d104c7113d743",
    "P18.txt": "5cb09301b80b6a2f841a510bc86d58136bce261e4c33b71854b78b871e2f20da",
    "P19.txt": "3645aa8d20373e109ca13e4f146236fbaf722b8e51b9e5967ad46111b9cc2912",
    "P20.txt": "594ebe4eff19b9296ed96830e7feae6d89f9b9ca4ce3d4f96fbb4df18fc658f7",
    "P21.txt": "1f49f7b0138e7646fe41d00b98dd3bb399ca1baa9997c6301b5e52a869067a1f",
    "P22.txt": "cc31e23d6926597f01d050d0ff0da77f19fbcb870327937fd277642e89320b11",
    "P23.txt": "86d6629442273fbe50cb2d5601af4d924a681d9932653433dba6cc02664099a3",
    "P24.txt": "bf7a04611aa871e723eed4c1824f1540cd21f666647fb291fbde1dd3f7dd3253",
    "P25.txt": "0295eec7a633eb03cf5392e64af591e8ffc375e30f1bf8926800a94ddcfa5eb7",
    "P26.txt": "199cca01aa43ec80c0fddd58e1c821964a33363b418969ab0e124182cdaae9ef",
    "data": "0076775b756cc276a74f8004746ac044aad28f47c783c1c2f4862ce6409aee94",
    "OrdonezA_Sensors.txt": "98e4521999fc901e6f13c0657cd00980aaab0543b6a723f2861114491e2dcdc6",
    "OrdonezA_ADLs.txt": "a886e6d78b4f5fb121e2d9b447c795f90698289c44405c0db68bf947f6a83bda",
    "OrdonezB_Sensors.txt": "fc6d24556a8cb91bd6d14d983f62d75058306273d162833908883836e8c39a5f",
    "OrdonezB_ADLs.txt": "13e5813e5b8c6b5867a97757e281516c2796f4d02773f236d89c0e58b7102b13",
    "kasterenSenseData.txt": "6c8f828a1f121eeea449e354e30964d34339de0723223619d3d2b8458fcbb24c",
    "kasterenActData.txt": "36f600f1fa47b98b7ea332b9762a3d2a67e86beea61e315fbff763a985bfdbc2",
    "cytometry.csv": "a6a2cf6673ac6426a1c674dbac603946623d1d45cd47aa80e9eca72c53f4bea7",
    "a1a": "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
    "a1a.t": "0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d",
    "a2a": "535782f1be62e60938d8accb1573043542b3ac11265522927574dcbb28360a2f",
    "a2a.t": "5b4cd01725b4c364acda943067b4b859a48f1b9c43207f828b8e15e1e0f09767",
    "a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    "a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    "w1a": "0ae2b1c40f6a99061d1c6f4a1f3b50eea58a2f3b8bf851a337c25c2a65a49d32",
    "w1a.t": "c5e489a499286d69c8c2035cb04bc48e2ea1f73e56153c72cc50b29732a9316a",
    "w8a": "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
    "w8a.t": "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde",
}

ADLMR = "thiilelli/SmartActivityRecognition_IoT/46edc6a669b269d9833326f43281cdade9c962ea/data"
SMARTHOME = "WSU-CASAS/AL-Smarthome/b0d39496e0eb52eb6a67f16addf1790eb0de84be"
KASTEREN = "tcsvn/pyadlml/58fae5fd739334b1087e018c6bfdefdde21a9781/datasets/kasteren"
PROX_MCMC = "xinkai-zhou/ProxMCMCExamples/31ebf4d01151be6e725c58f724027eac2da2fd7b/data"
LIBSVM_COLLECTION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"

# The author moved the files within the repository; each is named where it is known to have been.
ORDONEZ = (
    "Anjin-Liu/ConceptDriftDatasets/c52bc1f1c7a2008e7f7d4a295e4fa8b9ffec55f1/"
    "RealWorld/activities_of_daily_living"
)
ORDONEZ_B_ADLS = (
    "Anjin-Liu/ConceptDriftDatasets/c9a7ede3a327f615867398049edd427223e0a2d3/"
    "RealWorld/Drift Detection/activities_of_daily_living"
)


def _sources(folder: str, origin: str, *files: str) -> tuple[Source, ...]:
    return tuple(Source(folder, file, origin, SHA256[file]) for file in files)


#: The files of each sensor log; where there are two, sensors come first, then activities.
SOURCES: dict[str, tuple[Source, ...]] = {
    "casas-adlmr": _sources("casas-adlmr", ADLMR, *(f"P{pair:02d}.txt" for pair in range(1, 27))),
    "casas-al-smarthome": _sources("casas-al-smarthome", SMARTHOME, "data"),
    "ordonez-a": _sources("ordonez-adl", ORDONEZ, "OrdonezA_Sensors.txt", "OrdonezA_ADLs.txt"),
    "ordonez-b": (
        *_sources("ordonez-adl", ORDONEZ, "OrdonezB_Sensors.txt"),
        *_sources("ordonez-adl", ORDONEZ_B_ADLS, "OrdonezB_ADLs.txt"),
    ),
    "van-kasteren-2008": _sources(
        "van-kasteren-2008", KASTEREN, "kasterenSenseData.txt", "kasterenActData.txt"
    ),
}

(CYTOMETRY,) = _sources("sachs-cytometry", PROX_MCMC, "cytometry.csv")

#: The training file and the test file of each problem.
LIBSVM: dict[str, tuple[Source, ...]] = {
    "a1a": _sources("libsvm-adult", LIBSVM_COLLECTION, "a1a", "a1a.t"),
    "a2a": _sources("libsvm-adult", LIBSVM_COLLECTION, "a2a", "a2a.t"),
    "a9a": _sources("libsvm-adult", LIBSVM_COLLECTION, "a9a", "a9a.t"),
    "w1a": _sources("libsvm-web", LIBSVM_COLLECTION, "w1a", "w1a.t"),
    "w8a": _sources("libsvm-web", LIBSVM_COLLECTION, "w8a", "w8a.t"),
}
