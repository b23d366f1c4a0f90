// docs/providers/README.md: its table of claims, from the shapes that `init` reads. What stands around it is written by hand.
import { readFileSync } from 'node:fs';
import { describeSource } from '../../src/token/claim-source.ts';
import { type ClaimField, type ClaimShape, claimShapes } from '../../src/toolkit/init/claim-shapes.ts';

const page = new URL('../../docs/providers/README.md', import.meta.url);
const table = /(?<=\n\| provider \|.*\n\|[-|]+\n)(?:\|.*\n)*/;

export function makeProvidersPage(): string {
  const cell = (shape: ClaimShape, field: ClaimField): string => {
    const [source] = shape[field] ?? [];
    if (source === undefined) return field === 'acc' ? 'in `iss`' : '';
    return `\`${describeSource(source).replace(/^"(.*)"$/, '$1')}\``;
  };
  const rows = claimShapes.flatMap(shape => {
    const { provider, page: link, has, isReal = false } = shape;
    const cells = [
      `[${provider}](${link})`,
      has,
      ...(['uid', 'app', 'acc', 'role', 'scope'] as const).map(field => cell(shape, field)),
    ];
    return link === undefined ? [] : `| ${cells.join(' | ')} | ${isReal ? 'real' : 'shape'} |\n`;
  });
  return readFileSync(page, 'utf8').replace(table, () => rows.join(''));
}
