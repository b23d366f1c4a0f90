// What real Envoys make of each form of YAML, beside what the lint reads: the same, or it says that Envoy ignores it or reads it otherwise.
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyVersions, startEnvoy } from '../../lab/envoy.ts';
import { parseYamlDocument } from '../../src/config/yaml-document.ts';
import { reader } from '../../src/toolkit/lint/envoy-problems.ts';
import { ProtoValue } from '../../src/toolkit/lint/proto-value.ts';
import { type Part, shippedText } from '../toolkit/lint/shipped.ts';

/** Values, of which each is that of a key. */
const same = String.raw`120;+5;-5;0;-0;0x1F;1e3;1.0e3;.5;5.;1.0;4294967296;9223372036854775808;"010";'08';1_000;0b11;1:30;190:20:30;yes;Yes;
  YES;y;N;no;on;Off;TRUE;true;false;"true";null;Null;NULL;~;"null";text;a:b;a#b;2001-12-14;"a\tb";"\u0041\x41";"a\/b";'it''s';=;'%x';-`;
const other = '010;-010;+010;017;0120050;00;089;0o17;!!str 010;!!int "010";! 010;!ignore 7';
/** Whole members. */
const members = {
  same: [
    '"in quotes": 1',
    '? long\n    : 1',
    'base: &b {x: 1}\n    alias: *b',
    'text: >-\n      010',
    'block: |\n      010',
  ],
  ignored: [
    '!ignore a: 1',
    '!<!ignore> b: 1',
    '!ignore "c": 1',
    '!ignore &k d: 1',
    '&l !ignore e: 1',
    'f: 1\n    !ignore f: 2',
  ],
  other: ['!!str strkey: 1', '! plainkey: 1', 'map: !!map {a: 1}', 'list: !!seq [1]'],
};
const valueRows = (list: string, kind: string): string[] =>
  list.split(/;\s*/).map((value, i) => `${kind}${i}: ${value === '-' ? '' : value}`);
const rows = [...valueRows(same, 'same'), ...valueRows(other, 'other'), ...Object.values(members).flat()];

/** What Envoy has made of the metadata of its node in this text. */
async function readByEnvoy(version: string, text: string): Promise<Readonly<Record<string, unknown>>> {
  const envoy = await startEnvoy({ version, file: writeFixture('forms.yaml', text) });
  const answer = await fetch(`http://127.0.0.1:${envoy.adminPort}/config_dump`);
  const dump: Part = await answer.json();
  await envoy.stop();
  return dump.configs[0].bootstrap.node.metadata;
}

/** Whether the lint reads the same: Envoy keeps a number that is none of 32 bits as text. */
function readsSame(own: unknown, ofEnvoy: unknown): boolean {
  const value = new ProtoValue({ it: own }, () => undefined).field('it');
  if (ofEnvoy === null) return !value.isPresent;
  if (typeof ofEnvoy === 'boolean') return value.flag() === ofEnvoy;
  if (typeof ofEnvoy === 'number') return value.number() === ofEnvoy;
  if (typeof ofEnvoy === 'object') return JSON.stringify(own) === JSON.stringify(ofEnvoy);
  return typeof own === 'number' ? own === Number(ofEnvoy) : own === ofEnvoy;
}

describe('forms of YAML', function () {
  this.timeout(60_000);
  const node = `node:\n  id: x\n  cluster: c\n  metadata:\n${rows.map(row => `    ${row}\n`).join('')}`;
  const text = `${shippedText.replaceAll(/port_value: \d+/g, 'port_value: 0')}\n${node}`;

  for (const version of [envoyVersions[0], envoyVersions[3]])
    it(`are read by the lint as Envoy ${version} reads them, or named`, async () => {
      const ofEnvoy = await readByEnvoy(version, text);
      const document = parseYamlDocument(Buffer.from(text), { reader, maxDepth: 64 });
      if (document.kind !== 'document') throw new Error(JSON.stringify(document.problems));
      const { metadata } = (document.value as { node: { metadata: Record<string, unknown> } }).node;
      const named = (list: typeof document.misread) => list.map(({ path }) => String(path[2]));
      const misread = named(document.misread);
      const keys = [...new Set([...Object.keys(metadata), ...Object.keys(ofEnvoy)])];
      const different = keys.filter(key => !misread.includes(key) && !readsSame(metadata[key], ofEnvoy[key]));
      expect(different.map(key => [key, metadata[key], ofEnvoy[key]])).to.deep.equal([]);
      expect(named(document.ignored).sort()).to.deep.equal(['a', 'b', 'c', 'd', 'e', 'f']);
      const others = valueRows(other, 'other').map(row => row.split(':')[0]);
      expect(misread.sort()).to.deep.equal([...others, 'strkey', 'plainkey', 'map', 'list'].sort());
      expect(document.problems).to.deep.equal([]);
    });

  // Envoy reads the first document alone, knows no merge keys, and takes the last of two equal keys.
  for (const [what, more] of Object.entries({
    'a second document': '---\nadmin: {}',
    'an end of the document': '...\nadmin: {}',
    'two equal keys': 'admin: {}',
    'an unknown tag': 'more: !foo 010',
  }))
    it(`are refused, whatever Envoy makes of them: ${what}`, () => {
      const document = parseYamlDocument(Buffer.from(`admin: {}\n${more}\n`), { reader });
      expect(document.problems).to.have.length.above(0);
    });

  it('have no merge keys, as for Envoy', () => {
    const document = parseYamlDocument(Buffer.from('a: &a {x: 1}\nb: { <<: *a }'), { reader });
    expect(document).to.deep.include({ value: { a: { x: 1 }, b: { '<<': { x: 1 } } } });
  });
});
