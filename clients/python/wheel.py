"""wheel.py VERSION FOLDER: the package as a wheel, with the standard library alone."""
import base64
import hashlib
import pathlib
import sys
import zipfile

version, folder = sys.argv[1:]
here = pathlib.Path(__file__).parent
info = f"seqsvr-{version}.dist-info"
files = {f"seqsvr/{path.name}": path.read_bytes() for path in sorted((here / "seqsvr").iterdir()) if path.is_file()}
files[f"{info}/METADATA"] = (
    f"Metadata-Version: 2.1\nName: seqsvr\nVersion: {version}\nSummary: A client of seqsvr: sequences, tickets and marks, snowflake IDs\n"
    f"License: Apache-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{(here / 'README.md').read_text()}").encode()
files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: seqsvr\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
name = f"seqsvr-{version}-py3-none-any.whl"
with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
    for path, data in files.items():
        wheel.writestr(zipfile.ZipInfo(path), data)
print(name)
