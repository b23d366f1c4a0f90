// This package: where its files are, and its version.
import { readFileSync } from 'node:fs';

/** A file of the package, by its name from the root. The same from src/ and from dist/; never from the working directory or the environment. */
export function packageFile(name: string): URL {
  return new URL(`../${name}`, import.meta.url);
}

const { version: packageVersion } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
  version: string;
};

export const version: string = packageVersion;
