// The thread that reads a revocation list from src/, for tests that make services in their own process.
export const revocationThreadEntry = new URL('./revocation-thread-entry.mjs', import.meta.url);
