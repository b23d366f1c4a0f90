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

  // For whom takes parts of it into a bootstrap without this setting of the runtime: 100 is the default of Envoy.
  it('has no pattern of more than 100 instructions', async () => {
    const strict = text.replace('re2.max_program_size.error_level: 32768', 're2.max_program_size.error_level: 100');
    expect(strict).to.not.equal(text);
    for (const version of envoyVersions)
      expect(await validate(version, ['--config-yaml', strict])).to.include({ valid: true });
  });

  it('has the optional allow_paths in a comment, which an Envoy before the version that it names does not know', async () => {
    const optional = Array.from(text.matchAll(/^( *)# (allow_paths: .+) # needs (1\.\d+).*$/gm));
    expect(optional).to.have.length(1);
    for (const [line, indent, setting, needs = ''] of optional) {
      for (const version of envoyVersions) {
        const { valid, output } = await validate(version, ['--config-yaml', text.replace(line, `${indent}${setting}`)]);
        const isUnknown = /no\s+such\s+field/.test(output);
        const isOlder = version.localeCompare(needs, 'en', { numeric: true }) < 0;
        expect({ valid, isUnknown }, version).to.deep.equal({ valid: !isOlder, isUnknown: isOlder });
      }
    }
  });
});
