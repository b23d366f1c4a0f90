// docs/deploy/README.md: its table of what each data plane can do, from the one table of the product.
import { readFile } from 'node:fs/promises';
import { capabilities, type DataPlane, dataPlanes } from '../../src/toolkit/render/capabilities.ts';

const page = new URL('../../docs/deploy/README.md', import.meta.url);
const start = '<!-- npm run derive writes this part from src/toolkit/render/capabilities.ts. -->\n';
const end = '<!-- end of the part -->\n';

export async function makeDeployPage(): Promise<string> {
  const text = await readFile(page, 'utf8');
  const [before = '', rest = ''] = text.split(start);
  const [, after = ''] = rest.split(end);
  return `${before}${start}\n${table()}\n${end}${after}`;
}

function table(): string {
  const planes: readonly DataPlane[] = Object.values(dataPlanes);
  const rows = [
    ['target', ...capabilities.map(({ heading }) => heading)],
    ['---', ...capabilities.map(() => '---')],
    ...planes.map(({ title, can }) => [`\`${title}\``, ...capabilities.map(({ name }) => can[name] ?? '**no**')]),
  ];
  const notes = planes.flatMap(({ title, lost, releases }) =>
    [...lost, ...releases].map(sentence => `- \`${title}\`: ${sentence}\n`),
  );
  return `${rows.map(cells => `| ${cells.join(' | ')} |\n`).join('')}\n${notes.join('')}`;
}
