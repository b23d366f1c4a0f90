// Authorities and certificates for the cluster runs, made by openssl.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** PEM. */
export interface Certificate {
  readonly key: string;
  readonly certificate: string;
}

export function createAuthority(name: string): Promise<Certificate> {
  return inFolder(async folder => {
    await newKey(folder);
    const extensions = ['basicConstraints=critical,CA:TRUE,pathlen:0', 'keyUsage=critical,keyCertSign'];
    const added = extensions.flatMap(each => ['-addext', each]);
    const request = [
      'req',
      '-x509',
      '-new',
      '-key',
      'tls.key',
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      '-out',
      'tls.crt',
    ];
    await run('openssl', [...request, ...added], { cwd: folder });
    return certificateIn(folder);
  });
}

/** Each call gives another key and serial number. */
export function issue(authority: Certificate, host: string, usage: 'serverAuth' | 'clientAuth'): Promise<Certificate> {
  return inFolder(async folder => {
    await newKey(folder);
    await writeFile(join(folder, 'ca.key'), authority.key);
    await writeFile(join(folder, 'ca.crt'), authority.certificate);
    const extensions = [
      `subjectAltName=DNS:${host}`,
      'basicConstraints=critical,CA:FALSE',
      `extendedKeyUsage=${usage}`,
    ];
    await writeFile(join(folder, 'extensions'), `${extensions.join('\n')}\n`);
    await run('openssl', ['req', '-new', '-key', 'tls.key', '-subj', `/CN=${host.slice(0, 60)}`, '-out', 'csr'], {
      cwd: folder,
    });
    const signing = [
      'x509',
      '-req',
      '-in',
      'csr',
      '-CA',
      'ca.crt',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '2',
    ];
    await run('openssl', [...signing, '-extfile', 'extensions', '-out', 'tls.crt'], { cwd: folder });
    return certificateIn(folder);
  });
}

async function newKey(folder: string): Promise<void> {
  const curve = ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  await run('openssl', ['genpkey', ...curve, '-out', 'tls.key'], { cwd: folder });
}

async function certificateIn(folder: string): Promise<Certificate> {
  return {
    key: await readFile(join(folder, 'tls.key'), 'utf8'),
    certificate: await readFile(join(folder, 'tls.crt'), 'utf8'),
  };
}

async function inFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'cluster-certificates-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
