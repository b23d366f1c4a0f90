import { execFileSync } from 'node:child_process';
import { closeSync, createReadStream, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { openLogDestination } from '../../src/operations/log-destination.ts';

describe('log destination', () => {
  const directory = mkdtempSync(join(tmpdir(), 'log-destination-'));
  after(() => rmSync(directory, { recursive: true }));
  const open = () => {
    const file = join(mkdtempSync(join(directory, 'log-')), 'log');
    const fd = openSync(file, 'w');
    return {
      destination: openLogDestination({ fd }),
      written: () => readFileSync(file, 'utf8'),
      close: () => closeSync(fd),
    };
  };

  it('writes by itself what it was given, in order', async () => {
    const { destination, written, close } = open();
    const lines = Array.from({ length: 2000 }, (_, i) => `{"line":${i},"filling":"${'é'.repeat(50)}"}\n`);
    for (const line of lines) destination.write(line);
    while (written().length < lines.join('').length) await delay(5);
    expect(written()).to.equal(lines.join(''));
    close();
  });

  it('has written everything once it is flushed', () => {
    const { destination, written, close } = open();
    destination.write('one\n');
    destination.write('two\n');
    destination.flushSync();
    expect(written()).to.equal('one\ntwo\n');
    close();
  });

  it('loses lines rather than memory where nobody reads, and says how many', async () => {
    const pipe = join(mkdtempSync(join(directory, 'log-')), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const fd = openSync(pipe, 'r+');
    const destination = openLogDestination({ fd, maxHeldBytes: 200_000 });
    const line = `${'x'.repeat(999)}\n`;
    const count = 1000;
    for (let i = 0; i < count; i += 1) destination.write(line);
    let text = '';
    for await (const chunk of createReadStream('', { fd, encoding: 'utf8', autoClose: false })) {
      text += chunk;
      if (text.includes('"lines":') && text.endsWith('\n')) break;
    }
    const lines = text.split('\n').slice(0, -1);
    const told = JSON.parse(lines.at(-1) ?? '') as { lines: number };
    expect(told.lines).to.be.greaterThan(0);
    expect(lines.length - 1 + told.lines).to.equal(count);
    closeSync(fd);
  });
});
