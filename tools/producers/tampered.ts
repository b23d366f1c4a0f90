// Changes of a signed token, each of which must be refused.

/** Every token differs from the given one in its bytes, its header, its claims or its signature. */
export function tampered(token: string): readonly string[] {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const members: Record<string, unknown> = JSON.parse(decoded(header));
  const claims: Record<string, unknown> = JSON.parse(decoded(payload));
  const headerWith = (changes: Readonly<Record<string, unknown>>): string =>
    `${encoded({ ...members, ...changes })}.${payload}.${signature}`;
  const payloadWith = (changes: Readonly<Record<string, unknown>>): string =>
    `${header}.${encoded({ ...claims, ...changes })}.${signature}`;
  return [
    ...flipped(signature, 8).map(each => `${header}.${payload}.${each}`),
    ...flipped(payload, 8).map(each => `${header}.${each}.${signature}`),
    ...flipped(header, 8).map(each => `${each}.${payload}.${signature}`),
    ...['none', 'None', 'HS256', 'HS512', 'RS512', 'ES512', ''].map(alg => headerWith({ alg })),
    headerWith({ kid: 'another' }),
    headerWith({ kid: undefined }),
    headerWith({ crit: ['exp'] }),
    payloadWith({ acc: 'another' }),
    payloadWith({ role: 'admin' }),
    payloadWith({ exp: Number(claims.exp) + 1000 }),
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${header}..${signature}`,
    `.${payload}.${signature}`,
    `${token}.`,
    `${token}=`,
    `${token}A`,
    `${header}.${payload}.${signature.slice(0, -4)}`,
    `${header}.${payload}.${signature}${signature}`,
    `${header}.${payload}.${Buffer.from(signature, 'base64url').reverse().toString('base64url')}`,
    `${header}.${payload}.${Buffer.alloc(Buffer.from(signature, 'base64url').length).toString('base64url')}`,
  ].filter(each => each !== token);
}

/** The part with one bit of one byte changed, at evenly spread places. */
function flipped(part: string, count: number): string[] {
  const bytes = Buffer.from(part, 'base64url');
  return Array.from({ length: count }, (_, i) => {
    const changed = Buffer.from(bytes);
    const place = Math.floor((i * (bytes.length - 1)) / (count - 1));
    changed[place] = (bytes[place] ?? 0) ^ (1 << (i % 8));
    return changed.toString('base64url');
  });
}

function decoded(part: string): string {
  return Buffer.from(part, 'base64url').toString();
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
