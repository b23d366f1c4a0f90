// Waits for a condition.

/** Polls until the condition is true, less often the longer it takes; fails after `limitMs`. */
export async function until(condition: () => Promise<boolean> | boolean, limitMs = 100_000): Promise<void> {
  const end = performance.now() + limitMs;
  for (let waitMs = 5; !(await condition()); waitMs = Math.min(waitMs * 1.3, 50)) {
    if (performance.now() > end) throw new Error(`the condition did not become true within ${limitMs} ms`);
    await new Promise(resolve => setTimeout(resolve, waitMs));
  }
}
