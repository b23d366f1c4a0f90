// The file of a revocation list: lines and their ends, and bounds.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadRevocations } from '../../src/revocation/revocation-file.ts';
import { freshFolder } from '../support/fresh-folder.ts';

describe('revocation file', () => {
  const folder = freshFolder();
  const file = join(folder, 'revoked.jsonl');

  async function load(content: string | Uint8Array) {
    await writeFile(file, content);
    return loadRevocations(file);
  }
  async function entriesOf(content: string | Uint8Array): Promise<unknown> {
    const loaded = await load(content);
    return loaded.kind === 'revocations' ? loaded.list.entries : loaded;
  }
  async function problemsOf(content: string | Uint8Array): Promise<readonly string[]> {
    const loaded = await load(content);
    if (loaded.kind !== 'problems') return [];
    return loaded.problems.map(({ line, member = '', message }) => `${line} ${member}: ${message}`);
  }

  const alice = '{"uid":"alice"}';
  const comment = `# ${'x'.repeat(100_000)}`;
  const good: readonly (readonly [name: string, content: string | Uint8Array, entries: number])[] = [
    ['an empty file', '', 0],
    ['empty lines alone', '\n\r\n\n', 0],
    ['a comment without a line end', '# nobody', 0],
    ['lines that end in LF', `${alice}\n${alice}\n`, 2],
    ['lines that end in CR LF', `${alice}\r\n\r\n# nobody\r\n${alice}\r\n`, 2],
    ['a last line without a line end', `${alice}\n${alice}`, 2],
    ['comments with any text', Buffer.from([0x23, 0xff, 0x0a, ...Buffer.from(alice)]), 1],
    ['a comment that is longer than a slice', `${alice}\n${comment}\n${alice}\n`, 2],
    ['a long comment at the end', `${alice}\n${comment}`, 1],
    ['a line of 1,024 bytes', `{"jti":"${'j'.repeat(1024 - 10)}"}\n`, 1],
    ['a line of 1,024 bytes with CR LF', `{"jti":"${'j'.repeat(1024 - 10)}"}\r\n${alice}`, 2],
  ];
  for (const [name, content, entries] of good)
    it(`may have ${name}`, async () => expect(await entriesOf(content)).to.equal(entries));

  const tooLong = 'must not be longer than 1024 bytes';
  const notJson = 'must be a JSON object on a line of its own';
  const bad: readonly (readonly [name: string, content: string | Uint8Array, ...problems: readonly string[]])[] = [
    [
      'a byte order mark',
      `\ufeff${alice}`,
      '1 : must not start with a byte order mark: save the file as UTF-8 without it',
    ],
    [
      'a byte order mark before a comment',
      '\ufeff# x',
      '1 : must not start with a byte order mark: save the file as UTF-8 without it',
    ],
    ['a byte order mark in a later line', `${alice}\n\ufeff${alice}`, `2 : ${notJson}`],
    ['UTF-16', Buffer.from(`${alice}\n`, 'utf16le'), `1 : ${notJson}`, `2 : ${notJson}`],
    ['YAML', '- uid: alice\n', `1 : ${notJson}`],
    ['lines that end in CR', `${alice}\r${alice}\r`, `1 : ${notJson}`],
    ['JSON on many lines', '{\n"uid":"alice"\n}\n', `1 : ${notJson}`, `2 : ${notJson}`, `3 : ${notJson}`],
    ['half a line', `${alice}\n{"uid":"bo`, `2 : ${notJson}`],
    ['a line of 1,025 bytes', `${alice}\n{"jti":"${'j'.repeat(1025 - 10)}"}\n`, `2 : ${tooLong}`],
    [
      'a line of 1,025 bytes, of which a slice ends with 1,024',
      `#${'x'.repeat(65_536 - 1024 - 2)}\n{"jti":"${'j'.repeat(1024 - 10)}"} \n`,
      `2 : ${tooLong}`,
    ],
    [
      'a line that is longer than a slice',
      `{"jti":"${'j'.repeat(100_000)}"}\n{"uid":1}\n`,
      `1 : ${tooLong}`,
      '2 uid: must be text: put it in quotes',
    ],
    ['a long line without a line end', `{"jti":"${'j'.repeat(100_000)}`, `1 : ${tooLong}`],
    [
      'problems in several lines',
      `{"uid":1}\n# x\n\n${alice}\n{"acc":"/"}`,
      '1 uid: must be text: put it in quotes',
      '5 acc: must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..',
    ],
  ];
  for (const [name, content, ...problems] of bad)
    it(`must not have ${name}`, async () => expect(await problemsOf(content)).to.deep.equal(problems));

  it('reads lines in the same way wherever a slice ends', async () => {
    // A slice has 64 KiB: each padding moves its end to another byte of the lines after it.
    for (let padding = 65_536 - 40; padding <= 65_536; padding += 1) {
      const content = `#${'x'.repeat(padding - 2)}\n${alice}\r\n{"uid":"zoë"}\n${alice}\n`;
      expect(await problemsOf(content), `${padding}`).to.deep.equal([
        '3 uid: must be 1 to 128 visible ASCII characters without space , ; and "',
      ]);
    }
  });

  it('lists at most a hundred problems', async () => {
    const problems = await problemsOf('x\n'.repeat(5000));
    expect(problems).to.have.lengthOf(101);
    expect(problems.at(-1)).to.equal('5001 : more problems are not listed');
    expect(await problemsOf('{"uid":1,"acc":1,"app":1}\n'.repeat(5000))).to.have.lengthOf(101);
  });

  it('has at most 100,000 entries', async () => {
    const lines = `${alice}\n`.repeat(100_000);
    expect(await entriesOf(`# full\n${lines}`)).to.equal(100_000);
    expect(await problemsOf(`# full\n${lines}${alice}\n${alice}\n`)).to.deep.equal([
      '100002 : the list must not have more than 100000 entries: remove those that have expired',
    ]);
  });

  it('hands out each valid entry', async () => {
    await writeFile(file, '{"iss":"https://one.test"}\n# x\n{"iss":1}\n{"iss":"https://two.test","uid":"a"}');
    const issuers: unknown[] = [];
    await loadRevocations(file, ({ values }) => issuers.push(values.iss));
    expect(issuers).to.deep.equal(['https://one.test', 'https://two.test']);
  });

  it('gives the reason why a file cannot be read', async () => {
    expect(await loadRevocations(join(folder, 'none'))).to.include({ kind: 'problem', reason: 'missing' });
    expect(await loadRevocations(folder)).to.include({ kind: 'problem', reason: 'not regular' });
    expect(await loadRevocations('/dev/zero')).to.include({ kind: 'problem', reason: 'not regular' });
  });
});
