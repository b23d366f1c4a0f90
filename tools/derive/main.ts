// `npm run derive`: writes every derived file of the repository.
import { writeFile } from 'node:fs/promises';
import { derivedFiles } from './derived-files.ts';

for (const { path, make } of derivedFiles) await writeFile(new URL(`../../${path}`, import.meta.url), await make());
