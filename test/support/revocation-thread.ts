// The revocation thread from src/, for tests that create services in process.
export const revocationThreadEntry = new URL('./revocation-thread-entry.mjs', import.meta.url);
