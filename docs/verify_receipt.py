"""Verify a receipt of Footnote.

    python3 verify_receipt.py RECEIPT [KEY]

It needs Python alone, and nothing of Footnote. It checks that each entry says what its leaf commits to, that each leaf
stands in the tree (RFC 6962) whose head the checkpoint names (c2sp.org/tlog-checkpoint), and that the key signed the
checkpoint (c2sp.org/signed-note, Ed25519 after RFC 8032). KEY is the public key that you trust, such as one that you
noted when the bot was set up; without it the receipt's own is shown, for you to compare.
"""

import base64
import hashlib
import json
import re
import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
BASE_Y = 4 * pow(5, -1, P) % P


def recover_x(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (not x and sign):
        raise ValueError("a point is not on the curve")
    return P - x if x % 2 != sign else x


def decode_point(data):
    number = int.from_bytes(data, "little")
    y, sign = number % 2**255, number >> 255
    x = recover_x(y, sign)
    return x, y, 1, x * y % P


def add(one, other):
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % P, (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(number, point):
    found = (0, 1, 1, 0)
    while number:
        found = add(found, point) if number % 2 else found
        point, number = add(point, point), number // 2
    return found


def is_signed(public, signature, message):
    if len(public) != 32 or len(signature) != 64:
        return False
    number = int.from_bytes(signature[32:], "little")
    if number >= L:
        return False
    key, point = decode_point(public), decode_point(signature[:32])
    digest = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = multiply(number, decode_point(BASE_Y.to_bytes(32, "little"))), add(point, multiply(digest, key))
    return not any((left[i] * right[2] - right[i] * left[2]) % P for i in (0, 1))


def decode64(text):
    decoded = base64.b64decode(text, validate=True)
    require(base64.b64encode(decoded).decode() == text, "its base64 is not canonical")
    return decoded


def decode_hex(text):
    require(bytes.fromhex(text).hex() == text, "a hash is not written as it should be")
    return bytes.fromhex(text)


def require(holds, fault):
    if not holds:
        raise ValueError(fault)


def open_checkpoint(note, key):
    """Return the size and the root that a key signed, and when."""
    name, digest, encoded = key.split("+", 2)
    algorithm_and_key = decode64(encoded)
    named = hashlib.sha256(name.encode() + b"\n" + algorithm_and_key).digest()[:4]
    require(algorithm_and_key[:1] == b"\x01" and named.hex() == digest, "its key is malformed")
    body, _, signature = note.rpartition("\n\n")
    line = re.fullmatch("\u2014 ([^ \n]+) ([^ \n]+)\n", signature)
    require(line and line[1] == name, "its checkpoint is not signed by its key")
    signed = decode64(line[2])
    require(signed[:4] == named, "its checkpoint is not signed by its key")
    require(is_signed(algorithm_and_key[1:], signed[4:], f"{body}\n".encode()), "its checkpoint's signature is wrong")
    origin, size, root, at = body.split("\n")
    require(origin == name, "its checkpoint is that of another record")
    return int(size), decode64(root), at.removeprefix("at ")


def is_included(leaf, place, size, proof, root):
    """Walk from a leaf to the root (RFC 9162, 2.1.3.2)."""
    last, found = size - 1, leaf
    if not 0 <= place <= last:
        return False
    for beside in proof:
        if not last:
            return False
        if place % 2 or place == last:
            found = hashlib.sha256(b"\x01" + beside + found).digest()
            while place and not place % 2:
                place, last = place // 2, last // 2
        else:
            found = hashlib.sha256(b"\x01" + found + beside).digest()
        place, last = place // 2, last // 2
    return not last and found == root


def verify_entry(entry, answer, size, root):
    salt, commitment = decode_hex(entry["salt"]), decode_hex(entry["commitment"])
    if entry["body"]:
        committed = hashlib.sha256(salt + entry["body"].encode()).digest()
        require(len(salt) == 16 and committed == commitment, f"entry {entry['seq']} does not say what it said")
    require(bool(entry["body"]) == bool(salt), f"entry {entry['seq']} has a salt and no words")
    require(entry["turn"] == answer, f"entry {entry['seq']} belongs to another answer")
    parts = [1, entry["seq"], entry["turn"], entry["kind"], entry["at"], entry["commitment"]]
    data = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
    leaf, proof = hashlib.sha256(b"\x00" + data).digest(), list(map(decode_hex, entry["proof"]))
    require(is_included(leaf, entry["place"], size, proof, root), f"entry {entry['seq']} is not in the record")


def verify_receipt(text, trusted=""):
    """Return what a receipt proves. Raises `ValueError`, `LookupError` or `TypeError` where it proves nothing."""
    receipt = json.loads(text)
    require(json.dumps(receipt, indent=1, sort_keys=True) + "\n" == text, "it is not in the form of a receipt")
    require(receipt["form"] == "footnote-receipt/1" and len(receipt) == 5, "it is not in the form of a receipt")
    require(receipt["key"] == (trusted or receipt["key"]), "it is signed by another key than the one you trust")
    size, root, at = open_checkpoint(receipt["checkpoint"], receipt["key"])
    require(receipt["entries"], "it has no entries")
    for entry in receipt["entries"]:
        require(len(entry) == 9, "it is not in the form of a receipt")
        verify_entry(entry, receipt["answer"], size, root)
    numbers = [entry["seq"] for entry in receipt["entries"]]
    require(numbers == sorted(set(numbers)), "its entries are not in their order")
    return receipt, size, at


def main(file, trusted=""):
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            receipt, size, at = verify_receipt(opened.read(), trusted)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return f"The receipt proves nothing: {error}."
    for entry in receipt["entries"]:
        print(f"{entry['at']}  {entry['kind']}{'' if entry['body'] else '  (erased)'}")
    print(
        f"These {len(receipt['entries'])} entries of answer {receipt['answer']} stand in the record of {size} entries"
    )
    print(f"that was signed on {at} by {receipt['key']}")
    print("which is the key that you trust." if trusted else "Compare that key with the one that you trust.")
    print("That the record has no more entries of this answer, a receipt cannot show.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]) if len(sys.argv) in {2, 3} else __doc__)
