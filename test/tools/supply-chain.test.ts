// Dependencies: pinned by hash, at least as new as the security fixes they need, and all listed in the SBOM.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { makeSbom, type Sbom } from '../../tools/sbom.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): Promise<string> => readFile(`${project}${path}`, 'utf8');

interface LockedPackage {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
}

interface Lockfile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface Minimum {
  readonly name: string;
  readonly version: string;
  /** The vulnerability that older versions have. */
  readonly reason: string;
}

const minima: readonly Minimum[] = [
  {
    name: '@grpc/grpc-js',
    version: '1.14.4',
    reason: 'CVE-2026-48068 and CVE-2026-48069: a malformed stream or message ends it',
  },
  {
    name: 'protobufjs',
    version: '7.6.1',
    reason: 'CVE-2026-44288 to 44294 and CVE-2026-48712: overlong UTF-8, recursion, prototypes',
  },
];

/**
 * By LTS line of Node; the other supported lines have had these fixes from their first release. No release of line 20 has an nghttp2
 * that random frames cannot abort (NGHTTP2_IB_IGN_ALL): `serve` and `check-config` warn of it (src/service/nghttp2.ts).
 */
const nodeMinima: Readonly<Record<string, Minimum>> = {
  20: { name: 'Node 20', version: '20.20.2', reason: 'CVE-2026-21714: HTTP/2 sessions leak' },
  22: { name: 'Node 22', version: '22.22.2', reason: 'CVE-2026-21714: HTTP/2 sessions leak' },
  24: { name: 'Node 24', version: '24.14.1', reason: 'CVE-2026-21714: HTTP/2 sessions leak' },
};

function isAtLeast(version: string, minimum: string): boolean {
  return version.localeCompare(minimum, 'en', { numeric: true }) >= 0;
}

describe('supply chain', () => {
  let packages: readonly (readonly [path: string, locked: LockedPackage])[];
  let lockfile: Lockfile;
  let sbom: Sbom;

  before(async () => {
    lockfile = JSON.parse(await read('package-lock.json')) as Lockfile;
    packages = Object.entries(lockfile.packages).filter(([path]) => path !== '');
    sbom = await makeSbom();
  });

  describe('lockfile', () => {
    it('L-022 has a SHA-512 hash for every package', () => {
      expect(lockfile.lockfileVersion).to.equal(3);
      expect(packages).to.have.length.above(100);
      const unhashed = packages.filter(([, { integrity = '' }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity));
      expect(unhashed.map(([path]) => path)).to.deep.equal([]);
    });

    it('contains no registry URL and no link', () => {
      expect(packages.filter(([, each]) => each.resolved !== undefined || each.link === true)).to.deep.equal([]);
    });

    for (const { name, version, reason } of minima) {
      it(`L-022 has ${name} ${version} or later: ${reason}`, () => {
        const versions = packages
          .filter(([path]) => path.endsWith(`node_modules/${name}`))
          .map(([, each]) => each.version);
        expect(versions).to.not.deep.equal([]);
        expect(versions.filter(each => !isAtLeast(each, version))).to.deep.equal([]);
      });
    }
  });

  it('L-022 compares versions numerically', () => {
    expect(isAtLeast('1.14.10', '1.14.4')).to.equal(true);
    expect(isAtLeast('1.14.4', '1.14.4')).to.equal(true);
    expect(isAtLeast('1.9.99', '1.14.4')).to.equal(false);
    expect(isAtLeast('0.99.0', '1.14.4')).to.equal(false);
  });

  it('L-022 G-019 runs on a Node release with the security fixes of its line', () => {
    const [major = ''] = process.versions.node.split('.');
    const minimum = nodeMinima[major] ?? { version: '25.0.0', reason: 'a line without long support' };
    expect(isAtLeast(process.versions.node, minimum.version), minimum.reason).to.equal(true);
  });

  it('runs no install scripts of packages', async () => {
    expect((await read('.npmrc')).split('\n')).to.include('ignore-scripts=true');
  });

  it('keeps registry URLs out of the lockfile by .npmrc', async () => {
    expect((await read('.npmrc')).split('\n')).to.include('omit-lockfile-registry-resolved=true');
  });

  describe('SBOM', () => {
    it('is a CycloneDX document of this product, with unique references and no dangling ones', async () => {
      const { name, version } = JSON.parse(await read('package.json'));
      expect(sbom).to.include({ bomFormat: 'CycloneDX', specVersion: '1.5' });
      expect(sbom.metadata.component).to.include({ type: 'application', name, version });
      const references = [sbom.metadata.component, ...sbom.components].map(each => each['bom-ref']);
      expect(new Set(references)).to.have.property('size', references.length);
      const used = sbom.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]);
      expect(used.filter(each => !references.includes(each))).to.deep.equal([]);
    });

    it('lists exactly the production packages of the lockfile, each with its hash', () => {
      const { components } = sbom;
      const locked = packages
        .filter(([, { dev = false }]) => !dev)
        .map(([path, { version }]) => `${path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`);
      expect(new Set(components.map(({ name, version }) => `${name}@${version}`))).to.deep.equal(new Set(locked));
      expect(components.filter(({ hashes = [] }) => hashes.length === 0)).to.deep.equal([]);
    });

    it('lists every package that dist/ bundles code from', async () => {
      const licences = await read('dist/third-party-licenses.txt');
      const bundled = Array.from(
        licences.matchAll(/^(\S+) (\d+\.\d+\.\S+) \(.+\)$/gm),
        ([, name, version]) => `${name}@${version}`,
      );
      expect(bundled).to.include.members(['jose', 'protobufjs'].map(name => `${name}@${versionOf(name)}`));
      const listed = new Set(sbom.components.map(({ name, version }) => `${name}@${version}`));
      expect(bundled.filter(each => !listed.has(each))).to.deep.equal([]);
    });
  });

  function versionOf(name: string): string | undefined {
    return lockfile.packages[`node_modules/${name}`]?.version;
  }
});
