// Long revocation lists for tests and bench. No token of a test is on them.

/** A realistic mix: most entries are token ids, the others users or users in an account, with a time. */
export function revocationList(length: number): string {
  return Array.from({ length }, (_, i) => {
    const id = `${String(i).padStart(8, '0')}-4f1c-4a55-8f2e-5d1a3c0b9e61`;
    if (i % 10 === 8) return `{"uid":"user-${id}","issuedBefore":"2026-11-23T04:00:00Z"}\n`;
    if (i % 10 === 9) return `{"uid":"user-${id}","acc":"acct-${i}","expires":"2126-11-23T04:00:00Z"}\n`;
    return `{"jti":"${id}"}\n`;
  }).join('');
}
