// Waits for a condition.

/** Polls until the condition is true; fails after `limitMs`. */
export async function until(condition: () => Promise<boolean> | boolean, limitMs = 100_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`the condition did not become true within ${limitMs} ms`);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}
