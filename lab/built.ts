// Files of dist/ that tests run. A build that is older than the source would test code that is no longer there.
import { readdirSync, statSync } from 'node:fs';

const root = new URL('../', import.meta.url);
let isCurrent = false;

/** A file of dist/. Throws if dist/ is missing or older than a file of src/. */
export function builtFile(name: string): URL {
  if (!isCurrent && builtMs() < Math.max(...sourceTimesMs()))
    throw new Error('dist/ is missing or older than src/: npm run build');
  isCurrent = true;
  return new URL(`dist/${name}`, root);
}

function builtMs(): number {
  return statSync(new URL('dist/main.js', root), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function sourceTimesMs(): number[] {
  const files = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' });
  return files.filter(file => file.endsWith('.ts')).map(file => statSync(new URL(`src/${file}`, root)).mtimeMs);
}
