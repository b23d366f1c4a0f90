// The Dockerfile, compose.yaml and the workflows, by the published linters, and what these do not know of ours.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { blocksOf } from '../../lab/document.ts';
import { runProgram } from '../../lab/programs.ts';

interface Service {
  readonly image?: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly ports?: readonly { readonly host_ip?: string }[];
  readonly volumes?: readonly { readonly read_only?: boolean }[];
  readonly mem_limit?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const read = (name: string): Promise<string> => readFile(path(name), 'utf8');

/** The services as Docker Compose reads these files, each merged into the one before. */
async function compose(...files: readonly string[]): Promise<Readonly<Record<string, Service>>> {
  const given = ['--profile', 'test', '--profile', 'observability', ...files.flatMap(file => ['-f', file])];
  const { good, output } = await runProgram('docker-compose', [...given, 'config', '--format=json']);
  if (!good) throw new Error(output);
  return JSON.parse(output).services;
}

describe('the Dockerfile', () => {
  it('has no finding of hadolint', async () => {
    expect(await runProgram('hadolint', [path('Dockerfile')])).to.deep.equal({ good: true, output: '' });
  });

  it('L-023 pins its bases by digest and runs as a numeric user without a shell', async () => {
    const text = await read('Dockerfile');
    const bases = text.match(/^ARG (?:BUILD|RUNTIME)_IMAGE=.*$/gm) ?? [];
    expect(bases).to.have.lengthOf(2);
    for (const base of bases) expect(base).to.match(/:[\w.-]+@sha256:[0-9a-f]{64}$/);
    const product = text.slice(text.search(/^FROM .* AS account-authz$/m));
    expect(product.match(/^USER .*$/gm)?.at(-1)).to.equal('USER 65532:65532');
    expect(product)
      .to.match(/^ENTRYPOINT \["\/nodejs\/bin\/node"/m)
      .and.match(/ CMD \["\/nodejs\/bin\/node".* "health"/);
  });

  it('has the Node flags that docs/deploy/machine.md gives a process outside a container', async () => {
    const [, flags = ''] = /^ExecStart=\S*\/node (.*?) \/opt/m.exec(await read('docs/deploy/machine.md')) ?? [];
    const words = flags.split(' ').map(flag => `"${flag}"`);
    expect(await read('Dockerfile')).to.include(
      `ENTRYPOINT ["/nodejs/bin/node", ${words.join(', ')}, "/app/dist/main.js"]`,
    );
  });

  // Node does not use what was compiled under other flags, and says nothing.
  it('compiles serve under the flags and the path that it runs with', async () => {
    const text = await read('Dockerfile');
    const [, entry = ''] = /^ENTRYPOINT \[(.*)\]$/m.exec(text.slice(text.search(/^FROM .* AS account-authz$/m))) ?? [];
    expect(text).to.include(`RUN [${entry}, "serve", "--help"]`);
  });
});

describe('compose.yaml', () => {
  it('is hardened as the manifests are, and reachable from this machine only', async () => {
    for (const [name, service] of Object.entries(await compose(path('compose.yaml')))) {
      expect(service, name).to.deep.include({ read_only: true, cap_drop: ['ALL'] });
      expect(service.security_opt, name).to.deep.equal(['no-new-privileges:true']);
      expect(service.user, name).to.match(/^[1-9]\d*:\d+$/);
      expect(service.mem_limit, name).to.be.a('string');
      for (const port of service.ports ?? []) expect(port.host_ip, name).to.equal('127.0.0.1');
      for (const volume of service.volumes ?? []) expect(volume.read_only, name).to.equal(true);
    }
  });

  it('runs the Envoy of the manifests, and every other image by its digest', async () => {
    const { envoy, 'account-authz': _ours, ...others } = await compose(path('compose.yaml'));
    const [, tag] = /envoy:distroless-(\S+)$/m.exec(await read('k8s/quickstart.yaml')) ?? [];
    expect(envoy?.image).to.equal(`docker.io/envoyproxy/envoy:${tag}`);
    const foreign = Object.values(others).filter(({ image }) => image !== 'account-authz-demo:dev');
    expect(foreign).to.have.lengthOf(3);
    for (const { image } of foreign) expect(image).to.match(/@sha256:[0-9a-f]{64}$/);
  });

  it('has the health check of the image for account-authz', async () => {
    const { 'account-authz': ours } = await compose(path('compose.yaml'));
    const [, command = '[]'] = /HEALTHCHECK .*\\\n *CMD (\[.*\])/.exec(await read('Dockerfile')) ?? [];
    expect(ours?.healthcheck?.test).to.deep.equal(['CMD', ...JSON.parse(command)]);
  });

  it('has a configuration that agrees with envoy.yaml', async () => {
    const config = path('demo/compose/account-authz/config.yaml');
    const { code, stdout } = await runCommand('check-config', ['--config', config, '--envoy', path('envoy.yaml')]);
    expect(code).to.equal(0);
    expect(stdout).to.include('no dangerous setting found');
  });

  it('runs with a service of the user in the place of the demo, as docs/deploy/compose.md says', async () => {
    const override = blocksOf(await read('docs/deploy/compose.md')).find(({ text }) => text.startsWith('# compose.ov'));
    const file = writeFixture('compose.override.yaml', override?.text ?? '');
    const args = ['-f', path('compose.yaml'), '-f', file, 'config', '--services'];
    const { good, output } = await runProgram('docker-compose', args);
    const services = output.trim().split('\n').toSorted();
    expect({ good, services }).to.deep.equal({ good: true, services: ['account-authz', 'envoy', 'pod', 'upstream'] });
  });
});

describe('the workflows', () => {
  // Below medium it reports only style.
  it('have no finding of zizmor: pinned actions, least permissions, no expression in a script, no credentials left', async () => {
    const options = '--offline --no-progress --quiet --no-config --persona=pedantic --min-severity=medium'.split(' ');
    const { good, output } = await runProgram('zizmor', [...options, path('.github/workflows/')]);
    expect(good, output).to.equal(true);
  });

  it('publish from a tag alone, after ci, and never as the latest', async () => {
    const text = await read('.github/workflows/release.yaml');
    const { on, jobs } = parse(text);
    expect(on).to.deep.equal({ push: { tags: ['v[0-9]+.[0-9]+.[0-9]+*'] } });
    expect(jobs.image.needs).to.equal('ci');
    expect(text).to.not.match(/:latest/);
    expect(await read('.github/workflows/ci.yaml')).to.not.match(/login-action|\bcosign\b|docker push|push: true/);
  });
});
