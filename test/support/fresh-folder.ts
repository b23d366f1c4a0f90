// An empty folder for a test, which is removed when the process exits.
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { fixtureFolder } from '../../lab/config-file.ts';

export const freshFolder = (): string => mkdtempSync(join(fixtureFolder(), 'folder-'));
