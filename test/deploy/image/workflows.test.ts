// The GitHub Actions workflows: their commands, their permissions, and that nothing is published without a tag.
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parseDockerfile } from '../../support/dockerfile.ts';
import { parseWorkflow, stepsOf, usesOf, workflowProblems } from './workflow.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const folder = `${project}.github/workflows/`;
const names = await readdir(folder);
const ciText = await readFile(`${folder}ci.yaml`, 'utf8');
const releaseText = await readFile(`${folder}release.yaml`, 'utf8');
const ci = parseWorkflow(ciText);
const release = parseWorkflow(releaseText);
const buildAction = 'docker/build-push-action';

describe('the workflows', () => {
  it('are these two', () => {
    expect(names.sort()).to.deep.equal(['ci.yaml', 'release.yaml']);
  });

  for (const { name, text } of [
    { name: 'ci.yaml', text: ciText },
    { name: 'release.yaml', text: releaseText },
  ]) {
    it(`follow the rules: ${name}`, () => {
      expect(workflowProblems(text)).to.deep.equal([]);
    });
  }

  for (const { name, text, from, to, problem } of [
    {
      name: 'an action by its tag',
      text: ciText,
      from: /checkout@\w{40} # v/,
      to: 'checkout@v',
      problem: /not pinned/,
    },
    { name: 'an action without its version', text: ciText, from: / # v7\.0\.1/, to: '', problem: /not pinned/ },
    {
      name: 'permissions for all jobs',
      text: ciText,
      from: 'permissions: {}',
      to: 'permissions: write-all',
      problem: /for a start/,
    },
    {
      name: 'a job that may write',
      text: ciText,
      from: 'contents: read',
      to: 'contents: write',
      problem: /may write contents/,
    },
    {
      name: 'a push from a branch',
      text: ciText,
      from: 'push: false',
      to: 'push: true',
      problem: /pushed without a tag/,
    },
    {
      name: 'a login in ci',
      text: ciText,
      from: 'docker/setup-buildx-action',
      to: 'docker/login-action',
      problem: /published without a tag/,
    },
    {
      name: 'a release from a branch',
      text: releaseText,
      from: /tags: \[.*\]/,
      to: 'branches: [main]',
      problem: /without a tag/,
    },
    {
      name: 'a release from branches and tags',
      text: releaseText,
      from: /(tags: \[.*\])/,
      to: '$1\n    branches: [main]',
      problem: /without a tag/,
    },
    {
      name: 'credentials left behind',
      text: ciText,
      from: 'persist-credentials: false',
      to: 'fetch-depth: 1',
      problem: /credentials/,
    },
    {
      name: 'a foreign text in a script',
      text: releaseText,
      from: '"v$version"',
      to: ['"v$', '{{ github.ref_name }}"'].join(''),
      problem: /expression/,
    },
    {
      name: 'no time limit',
      text: ciText,
      from: /timeout-minutes: 60/,
      to: 'continue-on-error: true',
      problem: /no time limit/,
    },
  ]) {
    it(`break a rule with ${name}`, () => {
      const planted = text.replace(from, to);
      expect(planted).to.not.equal(text);
      expect(workflowProblems(planted).join('\n')).to.match(problem);
    });
  }

  it('run the checks and tests on every supported Node', () => {
    expect(ci.jobs.test?.strategy?.matrix?.node).to.deep.equal(['20', '22', '24', '26']);
    expect(ci.jobs.test?.steps?.map(({ run }) => run)).to.include('.ci/run');
  });

  it('audit the dependencies', () => {
    const commands = stepsOf(ci).map(({ run = '' }) => run);
    expect(commands).to.include.members(['npm audit --omit=dev --audit-level=low', 'npm audit signatures']);
  });

  it('build the images for both platforms', () => {
    const builds = [...usesOf(ci, buildAction).slice(0, 1), ...usesOf(release, buildAction)];
    expect(builds.map(step => step.with?.platforms)).to.deep.equal([
      'linux/amd64,linux/arm64',
      'linux/amd64,linux/arm64',
    ]);
  });

  it('run the demo in the containers of compose.yaml', () => {
    const commands = stepsOf(ci).map(({ run = '' }) => run);
    expect(commands).to.include('docker compose --profile test up --no-build --exit-code-from client');
  });

  it('release after ci, with provenance, SBOM and a signature by the digest', () => {
    const [build] = usesOf(release, buildAction);
    expect(release.jobs.image?.needs).to.equal('ci');
    expect(release.jobs.ci?.uses).to.equal('./.github/workflows/ci.yaml');
    expect(build?.with).to.include({ provenance: 'mode=max', sbom: true });
    expect(stepsOf(release).some(({ run }) => run?.includes('cosign sign --yes --recursive "$NAME@$DIGEST"'))).to.equal(
      true,
    );
  });

  it('release under the version alone, never as the latest', () => {
    const [build] = usesOf(release, buildAction);
    expect(build?.with?.tags).to.match(/^\$\{\{ \S+ }}:\$\{\{ steps\.version\.outputs\.version }}$/);
    expect(releaseText).to.not.match(/:latest/);
  });

  it('release stages that the Dockerfile has, with arguments that it takes', async () => {
    const { stages } = parseDockerfile(await readFile(`${project}Dockerfile`, 'utf8'));
    const images = release.jobs.image?.strategy?.matrix?.image as readonly { readonly target: string }[];
    const [build] = usesOf(release, buildAction);
    const given = Array.from(String(build?.with?.['build-args']).matchAll(/^(\w+)=/gm), ([, name]) => name);
    for (const { target } of images) {
      const stage = stages.find(({ name }) => name === target);
      const taken = stage?.instructions.filter(({ name }) => name === 'ARG').map(({ text }) => text.split('=')[0]);
      expect(taken).to.include.members(given);
    }
  });
});
