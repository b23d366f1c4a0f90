// The shipped envoy.yaml and its optional settings on every supported Envoy: valid without a warning.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { envoyBinary, envoyVersions } from '../../lab/envoy.ts';

const file = fileURLToPath(new URL('../../envoy.yaml', import.meta.url));
const text = await readFile(file, 'utf8');

interface Validation {
  readonly valid: boolean;
  readonly output: string;
}

/** Runs `envoy --mode validate`. A valid configuration logs nothing above `info`. */
async function validate(version: string, configuration: readonly string[]): Promise<Validation> {
  const binary = await envoyBinary(version);
  const args = ['--mode', 'validate', '--disable-hot-restart', '--log-level', 'warning', ...configuration];
  return new Promise(resolve => {
    execFile(binary, args, (error, stdout, stderr) => resolve({ valid: error === null, output: stdout + stderr }));
  });
}

describe('envoy.yaml', () => {
  for (const version of envoyVersions) {
    it(`is valid on Envoy ${version} without a warning`, async () => {
      const { valid, output } = await validate(version, ['--config-path', file]);
      expect({ valid, output: output.trim() }).to.deep.equal({ valid: true, output: `configuration '${file}' OK` });
    });
  }

  // For whom takes parts of it into a bootstrap without this setting of the runtime: 100 is the default of Envoys before 1.39.
  it('has no pattern of more than 100 instructions', async () => {
    const strict = text.replace('re2.max_program_size.error_level: 32768', 're2.max_program_size.error_level: 100');
    expect(strict).to.not.equal(text);
    for (const version of ['1.36.4', '1.38.3'])
      expect(await validate(version, ['--config-yaml', strict])).to.include({ valid: true });
  });

  // `# setting: value # needs 1.37 …`
  const optional = Array.from(
    text.matchAll(/^( *)# (\w+: .+) # needs (1\.\d+).*$/gm),
    ([line, indent, setting, needs]) => ({
      line,
      setting: `${indent}${setting}`,
      needs: Number(needs?.slice(2)),
    }),
  );
  const minorOf = (version: string): number => Number(version.split('.')[1]);

  it('has comments with optional settings for newer Envoy versions', () => {
    expect(optional.map(({ setting }) => setting.trim().split(':')[0])).to.deep.equal(['allow_paths']);
  });

  for (const { line, setting, needs } of optional) {
    for (const version of envoyVersions) {
      const known = minorOf(version) >= needs;
      it(`has the optional ${setting.trim().split(':')[0]}, which Envoy ${version} ${known ? 'accepts' : 'rejects'}`, async () => {
        const { valid, output } = await validate(version, ['--config-yaml', text.replace(line, setting)]);
        expect({ valid, unknownField: /no\s+such\s+field/.test(output) }).to.deep.equal({
          valid: known,
          unknownField: !known,
        });
      });
    }
  }
});
