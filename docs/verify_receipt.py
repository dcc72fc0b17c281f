"""Verify a receipt of Footnote, or an export with proofs.

    python3 verify_receipt.py FILE [KEY]

It needs only Python, nothing of Footnote. It checks that each entry matches its leaf, that each leaf is in the tree
(RFC 6962) whose head the checkpoint names (c2sp.org/tlog-checkpoint), and that the key signed the checkpoint
(c2sp.org/signed-note, Ed25519 after RFC 8032). For an export it computes the whole tree. KEY is the public key that you
trust, such as one noted when the bot was set up; without it the file's own key is printed, for comparison.
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
    last, node = size - 1, leaf
    if not 0 <= place <= last:
        return False
    for sibling in proof:
        if not last:
            return False
        if place % 2 or place == last:
            node = hashlib.sha256(b"\x01" + sibling + node).digest()
            while place and not place % 2:
                place, last = place // 2, last // 2
        else:
            node = hashlib.sha256(b"\x01" + node + sibling).digest()
        place, last = place // 2, last // 2
    return not last and node == root


def hash_entry(entry):
    """Return the leaf of an entry that says what it commits to."""
    salt, commitment = decode_hex(entry["salt"]), decode_hex(entry["commitment"])
    if entry["body"]:
        committed = hashlib.sha256(salt + entry["body"].encode()).digest()
        require(len(salt) == 16 and committed == commitment, f"entry {entry['seq']} does not say what it said")
    require(bool(entry["body"]) == bool(salt), f"entry {entry['seq']} has a salt and no words")
    parts = [1, entry["seq"], entry["turn"], entry["kind"], entry["at"], entry["commitment"]]
    data = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
    return hashlib.sha256(b"\x00" + data).digest()


def verify_entry(entry, answer, size, root):
    require(entry["turn"] == answer, f"entry {entry['seq']} belongs to another answer")
    leaf, proof = hash_entry(entry), list(map(decode_hex, entry["proof"]))
    require(is_included(leaf, entry["place"], size, proof, root), f"entry {entry['seq']} is not in the record")


def verify_receipt(text, trusted=""):
    """Return what a receipt proves. Raises `ValueError`, `LookupError` or `TypeError` if it proves nothing."""
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


def add_leaf(peaks, leaf):
    """Add a leaf to the complete subtrees, each a pair of how many leaves it has and its hash, from left to right."""
    peaks.append((1, leaf))
    while len(peaks) > 1 and peaks[-1][0] == peaks[-2][0]:
        (size, right), (_, left) = peaks.pop(), peaks.pop()
        peaks.append((2 * size, hashlib.sha256(b"\x01" + left + right).digest()))


def fold_peaks(peaks):
    found = peaks[-1][1]
    for _, left in reversed(peaks[:-1]):
        found = hashlib.sha256(b"\x01" + left + found).digest()
    return found


def verify_export(lines, trusted=""):
    """Return the last line of an export, how many entries were erased, the size and when it was signed.

    Raises as `verify_receipt` does.
    """
    lines, parsed, peaks, count, blank, erased = iter(lines), {}, [], 0, [], []
    for number, line in enumerate(lines, 1):
        parsed = json.loads(line)
        require(json.dumps(parsed, sort_keys=True) + "\n" == line, f"line {number} is not in the form of an export")
        if "checkpoint" in parsed:
            break
        require(len(parsed) == 7, f"line {number} is not in the form of an export")
        add_leaf(peaks, hash_entry(parsed))
        count = number
        if not parsed["body"]:
            blank.append(parsed["seq"])
        elif parsed["kind"] == "erasure":
            erased += json.loads(parsed["body"])["erased"]
    require("checkpoint" in parsed, "its last line is missing")
    require(parsed["form"] == "footnote-export/1" and len(parsed) == 3, "it is not in the form of an export")
    require(next(lines, None) is None, "there is something behind its last line")
    require(parsed["key"] == (trusted or parsed["key"]), "it is signed by another key than the one you trust")
    size, root, at = open_checkpoint(parsed["checkpoint"], parsed["key"])
    require(count == size, f"it has {count} entries, and {size} were signed")
    require(peaks and fold_peaks(peaks) == root, "its entries are not those that were signed")
    for seq in blank:
        require(any(first <= seq <= last for first, last in erased), f"entry {seq} is blank, and no erasure names it")
    return parsed, len(blank), size, at


def print_receipt(text, trusted):
    receipt, size, at = verify_receipt(text, trusted)
    for entry in receipt["entries"]:
        print(f"{entry['at']}  {entry['kind']}{'' if entry['body'] else '  (erased)'}")
    print(f"These {len(receipt['entries'])} entries of answer {receipt['answer']} are in the record of {size} entries")
    print(f"that was signed on {at} by {receipt['key']}")
    return "A receipt cannot show that the record has no more entries of this answer."


def print_export(lines, trusted):
    signed, erased, size, at = verify_export(lines, trusted)
    print(f"These {size} entries, {erased} of them erased, are the whole record")
    print(f"that was signed on {at} by {signed['key']}")
    return "An export cannot show later entries."


def main(file, trusted=""):
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            is_receipt = opened.readline() == "{\n"
            opened.seek(0)
            limit = print_receipt(opened.read(), trusted) if is_receipt else print_export(opened, trusted)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return f"The file proves nothing: {error}."
    print("which is the key that you trust." if trusted else "Compare that key with the one that you trust.")
    print(limit)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]) if len(sys.argv) in {2, 3} else __doc__)
