// The Dockerfile without a container engine: its base images, its user, and its consistency with the code and the manifests.
import { readFile, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { renderText } from '../../../lab/kustomize.ts';
import { defaultConfigFile } from '../../../src/commands/command.ts';
import { parseListenAddress } from '../../../src/text/listen-address.ts';
import { parsePodPlan } from '../../../tools/rehearsal/pod-plan.ts';
import {
  allOf,
  demo,
  dockerfileProblems,
  execForm,
  lastOf,
  parseDockerfile,
  product,
} from '../../support/dockerfile.ts';
import { hadolint, runTool } from './python-tool.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const file = `${project}Dockerfile`;
const text = await readFile(file, 'utf8');
const { stages } = parseDockerfile(text);
const stageOf = (name: string) => stages.find(each => each.name === name);

describe('the Dockerfile', () => {
  it('L-023 follows the rules of an image', () => {
    expect(dockerfileProblems(text)).to.deep.equal([]);
  });

  for (const { name, from, to, problem } of [
    { name: 'a base without a digest', from: /@sha256:\w+\nARG RUN/, to: '\nARG RUN', problem: /^BUILD_IMAGE has no/ },
    { name: 'a base with a cut digest', from: /\w{8}\n\n# What/, to: '\n\n# What', problem: /^RUNTIME_IMAGE has no/ },
    {
      name: 'a base of its own',
      from: /FROM \S*RUNTIME_IMAGE\S* AS account/,
      to: 'FROM gcr.io/a:b AS account',
      problem: /^gcr\.io\/a:b is/,
    },
    { name: 'a base that is the latest', from: ':nonroot@', to: ':latest@', problem: /latest/ },
    { name: 'a user by name', from: /USER 65532:65532\nEXPOSE/, to: 'USER nonroot\nEXPOSE', problem: /numeric/ },
    { name: 'no user after root', from: /USER 65532:65532\nEXPOSE/, to: 'EXPOSE', problem: /numeric/ },
    { name: 'the user 0', from: /USER 65532:65532\nEXPOSE/, to: 'USER 0:0\nEXPOSE', problem: /numeric/ },
    {
      name: 'an entrypoint for a shell',
      from: /ENTRYPOINT .*main.js"\]/,
      to: 'ENTRYPOINT node dist/main.js',
      problem: /shell form/,
    },
    {
      name: 'a health check for a shell',
      from: /CMD \[.*"health".*\]/,
      to: 'CMD node dist/main.js health',
      problem: /shell form/,
    },
    { name: 'scripts of packages', from: 'npm ci --ignore-scripts', to: 'npm ci', problem: /runs scripts/ },
    {
      name: 'files of the user that runs it',
      from: 'COPY proto',
      to: 'COPY --chown=65532 proto',
      problem: /than root/,
    },
    { name: 'a command without a shell to run it', from: 'EXPOSE', to: 'RUN true\nEXPOSE', problem: /no shell/ },
    {
      name: 'a missing label',
      from: /org\.opencontainers\.image\.licenses=/g,
      to: 'licence=',
      problem: /lacks the label/,
    },
    {
      name: 'another image by default',
      from: /FROM \S+ AS account-authz\n/,
      to: 'FROM x AS y\n',
      problem: /without a target/,
    },
  ]) {
    it(`breaks a rule with ${name}`, () => {
      const planted = text.replace(from, to);
      expect(planted).to.not.equal(text);
      expect(dockerfileProblems(planted).join('\n')).to.match(problem);
    });
  }

  it('passes hadolint', async () => {
    expect(await runTool(hadolint, [file])).to.deep.equal({ good: true, output: '' });
  });

  it('starts the command of package.json with the default configuration', async () => {
    const { bin } = JSON.parse(await readFile(`${project}package.json`, 'utf8'));
    expect(execForm(lastOf(stageOf(product), 'ENTRYPOINT'))).to.deep.equal([
      '/nodejs/bin/node',
      '--max-semi-space-size=2',
      '--heap-growing-percent=120',
      `/app/${bin['account-authz']}`,
    ]);
    expect(execForm(lastOf(stageOf(product), 'CMD'))).to.deep.equal(['serve', '--config', defaultConfigFile]);
  });

  it('has the Node flags that docs/deploy/machine.md gives a process outside a container', async () => {
    const [, flags] =
      /^ExecStart=\S*\/node (.*?) \/opt/m.exec(await readFile(`${project}docs/deploy/machine.md`, 'utf8')) ?? [];
    expect(flags?.split(' ')).to.deep.equal(execForm(lastOf(stageOf(product), 'ENTRYPOINT'))?.slice(1, -1));
  });

  it('has a health check that runs the health command with the configuration', () => {
    const entryPoint = execForm(lastOf(stageOf(product), 'ENTRYPOINT')) ?? [];
    const [node, main] = [entryPoint.at(0), entryPoint.at(-1)];
    expect(execForm(lastOf(stageOf(product), 'HEALTHCHECK'))).to.deep.equal([
      ...[node, main, 'health', '--config', defaultConfigFile],
    ]);
  });

  it('exposes the ports of the example configuration', async () => {
    const example = await readFile(`${project}config.example.yaml`, 'utf8');
    const ports = ['listen', 'admin'].map(key => {
      const address = parseListenAddress(new RegExp(`^${key}: (\\S+)`, 'm').exec(example)?.[1] ?? '');
      return address.kind === 'tcp' ? address.port : 0;
    });
    expect(lastOf(stageOf(product), 'EXPOSE')).to.equal(ports.join(' '));
  });

  it('ships the bundle and no packages', () => {
    expect(allOf(stageOf(product), 'COPY')).to.deep.equal([
      'package.json LICENSE ./',
      'proto ./proto',
      'docs/runbooks.md ./docs/runbooks.md',
      '--from=build /app/dist ./dist',
    ]);
  });

  it('copies only existing files that .dockerignore includes', async () => {
    const ignore = await readFile(`${project}.dockerignore`, 'utf8');
    const [first, ...allowed] = ignore.split('\n').filter(line => line !== '' && !line.startsWith('#'));
    const copied = stages
      .flatMap(stage => allOf(stage, 'COPY'))
      .filter(each => !each.startsWith('--from'))
      .flatMap(each => each.split(/\s+/).slice(0, -1));
    expect(first).to.equal('*');
    expect([...new Set(copied)].sort()).to.deep.equal(allowed.map(line => line.replace(/^!/, '')).sort());
    for (const name of copied) expect(await stat(`${project}${name}`)).to.be.an('object');
  });

  it('contains what the manifests start', async () => {
    const { containers } = parsePodPlan(await renderText('k8s/overlays/demo'));
    const scripts = containers.filter(({ image }) => image.includes('-demo:')).map(({ args }) => args[0] ?? '');
    expect(new Set(scripts)).to.deep.equal(new Set([execForm(lastOf(stageOf(demo), 'CMD'))?.[0]]));
    for (const script of scripts) expect((await stat(`${project}${script}`)).isFile()).to.equal(true);
  });
});
