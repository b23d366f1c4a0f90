// The GitHub Actions workflows: their commands, their permissions, and that nothing is published without a tag.
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parseDockerfile } from '../../support/dockerfile.ts';
import { runTool, zizmor } from './python-tool.ts';
import { parseWorkflow, stepsOf, usesOf } from './workflow.ts';

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

  // Below medium it reports only style.
  it('have no finding of zizmor: pinned actions, least permissions, no expression in a script, no credentials left', async () => {
    const options = [
      '--offline',
      '--no-progress',
      '--quiet',
      '--no-config',
      '--persona=pedantic',
      '--min-severity=medium',
    ];
    const { good, output } = await runTool(zizmor, [...options, folder]);
    expect(good, output).to.equal(true);
  });

  it('name the release of each pinned commit', () => {
    const pinned = /uses: (?:\.\/\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/;
    const lines = `${ciText}\n${releaseText}`.split('\n').filter(line => /\buses:/.test(line));
    expect(lines).to.have.length.above(5);
    expect(lines.filter(line => !pinned.test(line))).to.deep.equal([]);
  });

  it('have a time limit in every job', () => {
    const jobs = [...Object.entries(ci.jobs), ...Object.entries(release.jobs)];
    const unlimited = jobs.filter(([, job]) => job.uses === undefined && job['timeout-minutes'] === undefined);
    expect(unlimited).to.deep.equal([]);
  });

  it('publish from a tag alone, by one job', () => {
    expect(release.on).to.deep.equal({ push: { tags: ['v[0-9]+.[0-9]+.[0-9]+*'] } });
    expect(release.jobs.image?.permissions).to.deep.equal({ contents: 'read', packages: 'write', 'id-token': 'write' });
    const others = [...Object.values(ci.jobs), ...Object.values(release.jobs)].filter(
      job => job !== release.jobs.image,
    );
    for (const { permissions } of others) expect(permissions).to.deep.equal({ contents: 'read' });
    expect(usesOf(release, buildAction).map(step => step.with?.push)).to.deep.equal([true]);
    expect(new Set(usesOf(ci, buildAction).map(step => step.with?.push))).to.deep.equal(new Set([false]));
    expect(ciText).to.not.match(/login-action|\bcosign\b|docker push/);
  });

  it('run the checks and tests on every supported Node', () => {
    expect(ci.jobs.test?.strategy?.matrix?.node).to.deep.equal(['20', '22', '24', '26']);
    expect(ci.jobs.test?.steps?.map(({ run }) => run)).to.include('.ci/run');
  });

  it('audit the dependencies', () => {
    const commands = stepsOf(ci).map(({ run = '' }) => run);
    expect(commands).to.include.members(['npm audit --omit=dev --audit-level=low', 'npm audit signatures']);
  });

  it('leave out no job and no step: a condition only adds what a failure needs', () => {
    const conditions = `${ciText}\n${releaseText}`.match(/^ *(?:- )?(?:if|continue-on-error):.*$/gm) ?? [];
    expect(new Set(conditions.map(line => line.trim()))).to.deep.equal(new Set(['if: failure()', 'if: always()']));
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
