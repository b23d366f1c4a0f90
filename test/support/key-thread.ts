// The key thread from src/, for tests that make services or key rings in their own process.
export const keyThreadEntry = new URL('./key-thread-entry.mjs', import.meta.url);
