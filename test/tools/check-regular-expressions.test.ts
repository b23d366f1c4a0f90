// The check of regular expressions, run as a process on planted sources.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { programArguments } from '../../lab/compiled.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

describe('tools/check-regular-expressions.ts', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-expressions-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function run(source: string): Promise<{ readonly code: number; readonly stderr: string }> {
    await writeFile(join(folder, 'planted.ts'), source);
    return new Promise(resolve => {
      const args = [...programArguments('tools/check-regular-expressions.ts'), folder];
      const child = execFile(process.execPath, args, { cwd: project }, (_, __, stderr) =>
        resolve({ code: child.exitCode ?? -1, stderr }),
      );
    });
  }

  const superlinear: readonly (readonly [name: string, source: string, complexity: string])[] = [
    ['a trailing run', 'export const trim = (text: string) => text.replace(/[ \\t]+$/, "");', '2nd degree polynomial'],
    ['nested repeats', 'const nested = /^(?:a+)+$/;', 'exponential'],
    ['two alternatives for one text', 'const both = new RegExp("^(a|a)*$", "u");', 'exponential'],
    ['one without `new`', 'const trim = globalThis.RegExp("a*a*$");', 'polynomial'],
    ['one in a type assertion', 'const any = (/^(?:.*,)+$/ satisfies RegExp) as RegExp;', 'exponential'],
  ];
  for (const [name, source, complexity] of superlinear) {
    it(`fails on ${name}, and prints its place`, async () => {
      const { code, stderr } = await run(`const fine = /^a$/;\n${source}\n`);
      expect(code).to.equal(1);
      expect(stderr)
        .to.match(/^planted\.ts:2 /m)
        .and.to.contain(complexity);
    });
  }

  it('fails on an expression that is only known at run time', async () => {
    const { code, stderr } = await run('const of = (text: string) => [new RegExp(text), RegExp("a", text)];');
    expect(code).to.equal(1);
    expect(stderr).to.match(/^planted\.ts:1 is not known before it runs.*\nplanted\.ts:1 is not known/);
  });

  it('fails if it finds no expression, as after a move of the sources', async () => {
    expect(await run('const slashes = "/a+a+$/"; // /b+b+$/')).to.include({ code: 1 });
  });

  it('passes linear expressions', async () => {
    expect(await run('const linear = [/^a+$/, /(?<!a)a+$/, new RegExp("^[ab]*c")];')).to.deep.equal({
      code: 0,
      stderr: '',
    });
  });

  it('is a step of `npm run check`', async () => {
    const { scripts } = JSON.parse(await readFile(`${project}package.json`, 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    expect(scripts.check).to.match(/ && tsx tools\/check-regular-expressions\.ts$/);
  });
});
