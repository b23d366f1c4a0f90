// Whether 32 bytes are a public key that Ed25519 is safe with: canonical, on the curve, not of small order.
// OpenSSL takes any 32 bytes as a key; under a point of small order one signature can be good for every message.
const p = 2n ** 255n - 19n;
const d = mod(-121665n * inverse(121666n));

/** RFC 8032 section 5.1.3, decoding without recovering x: only its square is needed here. */
export function isEd25519Point(bytes: Uint8Array): boolean {
  if (bytes.length !== 32) return false;
  const encoded = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
  const y = encoded & (2n ** 255n - 1n);
  if (y >= p) return false;
  const xSquared = xSquaredOf(y);
  if (xSquared !== 0n && power(xSquared, (p - 1n) / 2n) !== 1n) return false;
  return !isSmallOrder(y);
}

function isSmallOrder(y: bigint): boolean {
  // The cofactor is 8: three doublings lead exactly the points of small order to the neutral element (0, 1).
  let doubled = y;
  for (let i = 0; i < 3; i += 1) {
    const xSquared = xSquaredOf(doubled);
    const ySquared = mod(doubled * doubled);
    doubled = mod((ySquared + xSquared) * inverse(mod(1n - d * xSquared * ySquared)));
  }
  return doubled === 1n;
}

// −x² + y² = 1 + d·x²·y², solved for x².
function xSquaredOf(y: bigint): bigint {
  const ySquared = mod(y * y);
  return mod((ySquared - 1n) * inverse(mod(d * ySquared + 1n)));
}

function mod(value: bigint): bigint {
  const rest = value % p;
  return rest < 0n ? rest + p : rest;
}

function inverse(value: bigint): bigint {
  return power(mod(value), p - 2n);
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = (result * square) % p;
    square = (square * square) % p;
  }
  return result;
}
