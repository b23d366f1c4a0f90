// The asynchronous log destination: order, flush, and dropped lines when the reader is too slow.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { openLogDestination } from '../../src/files/log-destination.ts';
import { freshFolder } from '../support/fresh-folder.ts';

describe('log destination', () => {
  const directory = freshFolder();
  const open = () => {
    const file = join(mkdtempSync(join(directory, 'log-')), 'log');
    const fd = openSync(file, 'w');
    return {
      destination: openLogDestination({ fd }),
      written: () => readFileSync(file, 'utf8'),
      close: () => closeSync(fd),
    };
  };

  it('writes lines in order without a flush', async () => {
    const { destination, written, close } = open();
    const lines = Array.from({ length: 2000 }, (_, i) => `{"line":${i},"filling":"${'é'.repeat(50)}"}\n`);
    for (const line of lines) destination.write(line);
    while (written().length < lines.join('').length) await delay(5);
    expect(written()).to.equal(lines.join(''));
    close();
  });

  it('writes all pending lines on flush', () => {
    const { destination, written, close } = open();
    destination.write('one\n');
    destination.write('two\n');
    destination.flushSync();
    expect(written()).to.equal('one\ntwo\n');
    close();
  });

  it('drops lines when the reader is too slow, and logs their number', async () => {
    const pipe = join(mkdtempSync(join(directory, 'log-')), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const fd = openSync(pipe, 'r+');
    const destination = openLogDestination({ fd, maxPendingLength: 200_000 });
    const line = `${'x'.repeat(999)}\n`;
    const count = 1000;
    for (let i = 0; i < count; i += 1) destination.write(line);
    let text = '';
    let lost = 0;
    let kept = 0;
    // Not a file stream: its blocked thread-pool read of a pipe would keep the process alive.
    const reader = new Socket({ fd: openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK) }).setEncoding('utf8');
    for await (const chunk of reader) {
      const lines = (text + chunk).split('\n');
      text = lines.pop() ?? '';
      for (const each of lines) {
        if (each.startsWith('x')) kept += 1;
        else lost += (JSON.parse(each) as { lines: number }).lines;
      }
      if (kept + lost >= count) break;
    }
    expect(kept + lost).to.equal(count);
    expect(lost).to.be.greaterThan(0);
    closeSync(fd);
  });
});
