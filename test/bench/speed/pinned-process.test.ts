import { expect } from 'chai';
import { startPinnedProcess } from '../../../bench/speed/pinned-process.ts';
import { until } from '../../support/service.ts';

const script = (text: string) => ({ command: process.execPath, args: ['-e', text] });
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('a program beside the bench', () => {
  it('ends when it is stopped, frozen though it is', async () => {
    const program = await startPinnedProcess(script('setInterval(() => {}, 1000)'), undefined);
    program.signal('SIGSTOP');
    expect(isAlive(program.pid)).to.equal(true);
    await program.stop();
    expect(isAlive(program.pid)).to.equal(false);
  });

  it('tells that it has ended, and what it said', async () => {
    const program = await startPinnedProcess(script('console.error("no such flag")'), undefined);
    expect(program.hasEnded()).to.equal(false);
    await until(() => program.hasEnded());
    expect(program.errors()).to.equal('no such flag\n');
    await program.stop();
  });

  it('is told where there is no such program', async () => {
    const start = startPinnedProcess({ command: '/nowhere/program', args: [] }, undefined);
    expect(await start.catch((error: Error) => error.message)).to.match(/ENOENT/);
  });
});
