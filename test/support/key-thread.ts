// The key thread from src/, for tests that create services or key rings in process.
export const keyThreadEntry = new URL('./key-thread-entry.mjs', import.meta.url);
