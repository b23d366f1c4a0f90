// `npm run package`: packs the built product as account-authz-VERSION.tgz. The bundle carries its libraries, so the package has no
// dependencies, and its installation needs no network.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../', import.meta.url));
const { name, version, description, license, type, engines, bin, files } = JSON.parse(
  readFileSync(join(project, 'package.json'), 'utf8'),
);

const folder = mkdtempSync(join(tmpdir(), 'account-authz-package-'));
try {
  for (const file of [...files, 'README.md', 'LICENSE'])
    cpSync(join(project, file), join(folder, file), { recursive: true });
  const manifest = { name, version, description, license, type, engines, bin, files };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const [destination = project] = process.argv.slice(2);
  execFileSync('npm', ['pack', '--silent', '--pack-destination', destination], { cwd: folder, stdio: 'inherit' });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
